import { type Database, isStorageError, writeConcurrent } from '../../db/database.ts'
import { Batcher } from '../../platform/batcher.ts'
import { type Clock, DAY, HOUR } from '../../platform/clock.ts'
import { errorMessage } from '../../platform/error.ts'
import type { Log } from '../../platform/log.ts'
import { retry } from '../../platform/retry.ts'
import { TtlMap } from '../../platform/ttl-map.ts'
import { type DueDelivery, type NewAttempt, recordAttempts } from '../delivery-store.ts'
import { DISABLED_REASONS, type DisabledCode } from '../endpoint.ts'
import type { Attempt } from './attempt.ts'
import { DEFAULT_DELIVERY_TIMINGS, type DeliveryTimings } from './delivery-timings.ts'

export type AttemptRecorder = {
  /** Resolves when it is durable: true; false: it was given up, as this has been stopped. Rejects where it cannot be written ever. */
  record(attempt: NewAttempt): Promise<boolean>
  /** Writes what has come until now, if it can be written at once, and nothing that comes later. */
  stop(): Promise<void>
}

export type RecorderParts = {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
  readonly timings?: Pick<DeliveryTimings, 'retryMs'>
}

/** More in one transaction would keep others waiting. */
const GROUP_MAX = 200

/**
 * Writes down what came of attempts, together for as long as each turn of the event loop brings more: a commit of many
 * costs little more than one of one.
 */
export function attemptRecorder(deps: RecorderParts): AttemptRecorder {
  const { database, clock, log, timings = DEFAULT_DELIVERY_TIMINGS } = deps
  const stopping = new AbortController()
  const { signal } = stopping
  const batcher = new Batcher<NewAttempt, boolean>({
    ...{ clock, sizeMax: GROUP_MAX, whileBusy: true },
    async run(attempts) {
      const write = () =>
        writeConcurrent(database, trx => recordAttempts(trx, attempts, { now: clock.now() }))
      const onRetry = (error: unknown) => {
        const fields = { attempts: attempts.length, why: errorMessage(error) }
        log.error('deliveries: not written, tried again', fields)
      }
      const o = { clock, signal, isRetryable: isStorageError, delayMs: timings.retryMs, onRetry }
      const isDurable = await retry(write, o).then(
        () => true,
        error => {
          if (isStorageError(error)) return false
          throw error
        },
      )
      return attempts.map(() => isDurable)
    },
    // What is wrong with one is nothing to the others.
    onFailure: (_, { length }) => (length > 1 ? 'split' : 'reject'),
  })
  return {
    // What ends after the stop was ended by it, which says nothing of the endpoint.
    record: async attempt => !signal.aborted && batcher.add(attempt),
    async stop() {
      stopping.abort()
      await batcher.close()
    },
  }
}

/** Tells the log what came of an attempt; `disabled` is why its webhook was switched off with it, if it was. */
export type AttemptLog = (due: DueDelivery, attempt: Attempt, disabled: DisabledCode | null) => void

/** Each attempt is told to who looks closely. All others hear of each webhook once an hour, however many events there are. */
export function attemptLog({ log, clock }: { log: Log; clock: Clock }): AttemptLog {
  const timesOf = hourly(clock)
  return (due, { statusCode, durationMs, error, next }, disabled) => {
    const { webhook, eventId } = due
    const about = { webhook: webhook.id, event: eventId, status: statusCode }
    const attempts = due.attempt + 1
    log.debug('an attempt to deliver', {
      ...{ ...about, attempt: attempts },
      ...{ state: next.state, ms: durationMs },
    })
    const say = (level: 'info' | 'warn', message: string, fields: object) => {
      const times = timesOf(`${webhook.id} ${message}`)
      if (times === 0) return
      log[level](message, { ...about, ...fields, times: times > 1 ? times : undefined })
    }
    if (next.state === 'retry_scheduled') say('info', NOT_TAKEN, { attempts, why: error })
    if (next.state === 'failed') say('warn', 'an event was given up', { attempts, why: error })
    if (next.state === 'delivered' && webhook.failingSince !== null) say('info', AGAIN, {})
    if (disabled !== null) {
      const why = DISABLED_REASONS[disabled]
      log.warn('a webhook was switched off', { ...about, code: disabled, why })
    }
  }
}

const NOT_TAKEN = 'a webhook did not take an event, which is sent again'
const AGAIN = 'a webhook that failed takes events again'

type Said = { readonly at: number; suppressed: number }

/** How often something happened since it was said last; 0: it need not be said, as it was within the hour. */
function hourly(clock: Clock): (what: string) => number {
  const said = new TtlMap<Said>({ sizeMax: SIZE_MAX, clock })
  return what => {
    const at = clock.monotonicNow()
    const last = said.get(what)
    if (last !== undefined && at - last.at < HOUR) {
      last.suppressed++
      return 0
    }
    said.set(what, { at, suppressed: 0 }, RETENTION_MS)
    return (last?.suppressed ?? 0) + 1
  }
}

/** With more of them some are said more often. */
const SIZE_MAX = 10_000
/** Longer than the longest wait between two attempts. */
const RETENTION_MS = 2 * DAY
