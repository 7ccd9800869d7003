import { type Clock, SECOND, sleep } from './clock.ts'
import { errorMessage } from './error.ts'
import { type Log, type LogEvent, LogThrottle } from './log.ts'
import { backoff } from './retry.ts'

export type LoopOptions = {
  /** Runs once; the run ends when its promise settles. `signal` aborts when the loop is stopped. */
  readonly run: (signal: AbortSignal) => unknown
  /** Wait between the end of a run and the start of the next; a function if it varies (jitter). */
  readonly everyMs: number | (() => number)
  /** Wait before the first run. Default: none. */
  readonly startAfterMs?: number
  /** Wait after a failure, doubled with each consecutive one. Default: `everyMs`. */
  readonly retryMs?: number
  /** Upper bound of that wait. Default: four times `everyMs`, but at most 10 seconds. */
  readonly retryMaxMs?: number
  readonly clock: Clock
  /** Stops the loop. */
  readonly signal?: AbortSignal
} & (LoggedFailures | HandledFailures)

type LoggedFailures = {
  readonly log: Log
  /** Logged when a run fails; see `loopFailure`. */
  readonly failed: LogEvent
}

type HandledFailures = {
  /** Called for each failure; none is logged. */
  readonly onFailure: (error: unknown) => void
}

export interface Loop {
  /** Ends the wait. During a run, another run follows immediately. */
  wake(): void
  /** Starts no further run; resolves when the current one has ended. May be called repeatedly. */
  stop(): Promise<void>
}

/** Returns the event of a loop whose run fails. `repeated` counts the failures that were not logged. */
export const loopFailure = (message: string) =>
  ({ level: 'error', message, fields: ['why', 'repeated'] }) as const satisfies LogEvent

/** A loop has one kind of failure. */
const FAILURE = 'failure'
const RETRY_FACTOR_MAX = 4
const RETRY_MAX_MS = 10 * SECOND

/**
 * Calls `run` repeatedly, one run at a time. A continuing failure is logged once, then once a
 * minute.
 */
export function startLoop(o: LoopOptions): Loop {
  const stopping = new AbortController()
  const signal =
    o.signal === undefined ? stopping.signal : AbortSignal.any([o.signal, stopping.signal])
  const throttle = new LogThrottle(o.clock)
  let pause = new AbortController()
  let failures = 0
  signal.addEventListener('abort', () => pause.abort(), { once: true })

  const attempt = async () => {
    try {
      await o.run(signal)
      failures = 0
      throttle.forget(FAILURE)
    } catch (error) {
      failures++
      if (!signal.aborted) report(error)
    }
  }
  const report = (error: unknown) => {
    if ('onFailure' in o) return o.onFailure(error)
    throttle.write(o.log, FAILURE, o.failed, { why: errorMessage(error) })
  }
  const delayMs = () => {
    const everyMs = typeof o.everyMs === 'number' ? o.everyMs : o.everyMs()
    if (failures === 0) return everyMs
    const { retryMs = everyMs } = o
    const longMs = Math.max(everyMs, Math.min(RETRY_FACTOR_MAX * everyMs, RETRY_MAX_MS))
    return backoff(retryMs, o.retryMaxMs ?? Math.max(retryMs, longMs))(failures)
  }
  const run = async () => {
    if (o.startAfterMs !== undefined) await sleep(o.clock, o.startAfterMs, pause.signal)
    while (!signal.aborted) {
      pause = new AbortController()
      await attempt()
      if (!signal.aborted) await sleep(o.clock, delayMs(), pause.signal)
    }
  }
  const running = run()
  return {
    wake: () => pause.abort(),
    stop() {
      stopping.abort()
      return running
    },
  }
}
