import { Hono } from 'hono'
import { clearDrafts, openDrafts } from '../../work/upload/drafts.ts'
import type { DashboardParts, Env } from '../parts.ts'
import { actionRoutes } from './actions.ts'
import { chartRoutes } from './charts.ts'
import { downloadRoutes } from './download.ts'
import { draftRoutes } from './draft.ts'
import { intakeRoutes } from './intake.ts'
import { jobRoutes } from './job.ts'
import { overviewRoutes } from './overview.ts'
import { progressRoutes } from './progress.ts'

/** Lists: sending one, looking at it before it starts, watching it, and what came out. */
export function listRoutes(parts: DashboardParts): Hono<Env> {
  const { settings, clock, random } = parts
  clearDrafts(settings.dataDir)
  const drafts = openDrafts(settings.dataDir, { clock, random })
  const router = new Hono<Env>()
  router.route('/', overviewRoutes(parts))
  router.route('/', intakeRoutes(drafts, parts))
  router.route('/', draftRoutes(drafts, parts))
  router.route('/', progressRoutes(parts))
  router.route('/', chartRoutes())
  router.route('/', downloadRoutes())
  router.route('/', actionRoutes(parts))
  router.route('/', jobRoutes(parts))
  return router
}
