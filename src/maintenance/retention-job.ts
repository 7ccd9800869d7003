import type { Database } from '../db/database.ts'
import { deleteJobsBefore } from '../jobs/delete-job.ts'
import { deleteLoadingJobs } from '../jobs/import/item-import.ts'
import { type Clock, HOUR } from '../platform/clock.ts'
import type { Log } from '../platform/log.ts'
import { type Loop, startLoop } from '../platform/loop.ts'
import { ClockCheck } from './clock-check.ts'
import { expire, retentions, SANDBOX_KEPT_MS } from './retention.ts'

export type JanitorDeps = {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
  readonly dataDir: string
  readonly keepResultsMs: number
  readonly keepHistoryMs: number
  /** How often; an hour when left out. */
  readonly everyMs?: number
}

const EVERY_MS = HOUR
/** A list that is being stored for longer never will be. */
const LOADING_MS_MAX = HOUR

/** Removes, every hour and at the start, what was kept long enough, as long as the clock can be trusted. */
export function startJanitor(deps: JanitorDeps): Loop {
  const { clock, log, everyMs = EVERY_MS } = deps
  const clockCheck = new ClockCheck(deps)
  return startLoop({
    ...{ name: 'retention run', everyMs, clock, log },
    async run(signal) {
      if (await clockCheck.isTrusted()) await cleanUp(deps, signal)
    },
  })
}

async function cleanUp(deps: JanitorDeps, signal: AbortSignal): Promise<void> {
  const { database, clock, log, dataDir, keepResultsMs, keepHistoryMs } = deps
  const now = clock.now()
  const sandboxBefore = now - SANDBOX_KEPT_MS
  const jobs = await deleteJobsBefore(database, dataDir, now - keepResultsMs, sandboxBefore)
  const halves = await deleteLoadingJobs(database, now - LOADING_MS_MAX)
  const removed: Record<string, number> = { jobs: jobs.length + halves }
  for (const old of retentions(now, keepHistoryMs)) {
    removed[old.name] = await expire(database, old, signal)
  }
  const all = Object.values(removed).reduce((sum, count) => sum + count, 0)
  if (all > 0) log.info('what is old was removed', removed)
}
