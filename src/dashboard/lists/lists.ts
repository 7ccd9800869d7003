import { Hono } from 'hono'
import type { DashboardParts, Env } from '../parts.ts'
import { actionRoutes } from './actions.ts'
import { chartRoutes } from './charts.ts'
import { downloadRoutes } from './download.ts'
import { intakeRoutes } from './intake.ts'
import { jobRoutes } from './job.ts'
import { overviewRoutes } from './overview.ts'
import { progressRoutes } from './progress.ts'

/** Lists: looking at one before it starts, sending it, watching it, and what came out. */
export function listRoutes(parts: DashboardParts): Hono<Env> {
  const router = new Hono<Env>()
  router.route('/', overviewRoutes(parts))
  router.route('/', intakeRoutes(parts))
  router.route('/', progressRoutes(parts))
  router.route('/', chartRoutes())
  router.route('/', downloadRoutes())
  router.route('/', actionRoutes(parts))
  router.route('/', jobRoutes(parts))
  return router
}
