import { Hono } from 'hono'
import type { DashboardDeps, Env } from '../deps.ts'
import { actionRoutes } from './actions.ts'
import { chartRoutes } from './charts.ts'
import { downloadRoutes } from './download.ts'
import { jobRoutes } from './job.ts'
import { overviewRoutes } from './overview.ts'
import { progressRoutes } from './progress.ts'
import { intakeRoutes } from './upload.ts'

/** Lists: looking at one before it starts, sending it, watching it, and what came out. */
export function listRoutes(deps: DashboardDeps): Hono<Env> {
  const router = new Hono<Env>()
  router.route('/', overviewRoutes(deps))
  router.route('/', intakeRoutes(deps))
  router.route('/', progressRoutes(deps))
  router.route('/', chartRoutes())
  router.route('/', downloadRoutes())
  router.route('/', actionRoutes(deps))
  router.route('/', jobRoutes(deps))
  return router
}
