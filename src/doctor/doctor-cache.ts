import { type Clock, MINUTE } from '../platform/clock.ts'
import { errorMessage } from '../platform/error.ts'
import { type Log, type LogEvent, writeLog } from '../platform/log.ts'
import { type Check, type DoctorDeps, runChecks } from './doctor.ts'

export const CHECKS_FAILED = {
  level: 'error',
  message: 'doctor checks failed',
  fields: ['why'],
} as const satisfies LogEvent

/** The doctor checks and the state of their run. */
export type DoctorChecks = {
  /** Results of the last completed run; partial results during the first run. */
  readonly checks: readonly Check[]
  /** When the last run completed, epoch ms; null if none has. */
  readonly at: number | null
  readonly isRunning: boolean
  /** Why the last run failed; null if it did not. */
  readonly fault: string | null
}

type DoctorCacheDeps = {
  readonly clock: Clock
  readonly log: Log
  /** Runs the checks until done or aborted. */
  readonly runChecks: (signal: AbortSignal) => AsyncIterable<Check>
}

/** Runs the checks of `ev doctor` on demand and caches the result. */
export interface DoctorCache {
  /** The latest result; starts nothing. */
  readonly latest: DoctorChecks
  /** Returns the latest result, and starts a run if it is stale. */
  read(): DoctorChecks
  /** Starts a run, unless one is running or started within the last minute. */
  rerun(): void
  /** Aborts a running check and prevents further runs. */
  close(): Promise<void>
}

/** A result older than this is refreshed when it is read. */
const CACHE_TTL_MS = 10 * MINUTE
/**
 * A result with a failure is refreshed earlier, because pages say that nothing can be verified until
 * it is fixed.
 */
const FAILED_TTL_MS = 2 * MINUTE
/** Each run queries mail servers and blocklists, so limit how often a user can start one. */
const RUN_INTERVAL_MIN_MS = MINUTE

/** Creates the cache. At most one run at a time, in the background: readers never wait. */
export function createDoctorCache({ clock, log, runChecks }: DoctorCacheDeps): DoctorCache {
  const closing = new AbortController()
  let latest: DoctorChecks = { checks: [], at: null, isRunning: false, fault: null }
  let startedAt = Number.NEGATIVE_INFINITY
  let endedAt = Number.NEGATIVE_INFINITY
  let running: Promise<void> = Promise.resolve()

  const run = async () => {
    const checks: Check[] = []
    const isFirst = latest.at === null
    try {
      for await (const check of runChecks(closing.signal)) {
        checks.push(check)
        if (isFirst) latest = { ...latest, checks: [...checks] }
      }
      endedAt = clock.monotonicNow()
      latest = { checks, at: clock.now(), isRunning: false, fault: null }
    } catch (error) {
      writeLog(log, CHECKS_FAILED, { why: errorMessage(error) })
      latest = { ...latest, isRunning: false, fault: errorMessage(error) }
    }
  }
  const rerun = () => {
    const isTooSoon = clock.monotonicNow() - startedAt < RUN_INTERVAL_MIN_MS
    if (latest.isRunning || isTooSoon || closing.signal.aborted) return
    startedAt = clock.monotonicNow()
    latest = { ...latest, isRunning: true }
    running = run()
  }
  return {
    get latest() {
      return latest
    },
    rerun,
    read() {
      const isFailed = latest.checks.some(({ state }) => state === 'fail')
      if (clock.monotonicNow() - endedAt > (isFailed ? FAILED_TTL_MS : CACHE_TTL_MS)) rerun()
      return latest
    },
    close() {
      closing.abort()
      return running
    },
  }
}

/** Returns a function that runs the checks, each time with new dependencies and an empty DNS cache. */
export const runDoctor = (createDeps: () => DoctorDeps & { close(): void }) =>
  async function* (signal: AbortSignal): AsyncGenerator<Check> {
    const deps = createDeps()
    try {
      yield* runChecks(deps, signal)
    } finally {
      deps.close()
    }
  }

/**
 * Returns why no mail server accepted a connection of an egress; null if one did, or none was
 * contacted.
 */
export function findPortFailure({ checks }: DoctorChecks, egress: string): string | null {
  const failed = checks.find(one => one.blocked && (one.egress ?? egress) === egress)
  return failed?.says ?? null
}
