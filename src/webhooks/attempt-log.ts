import { type Clock, DAY, HOUR } from '../platform/clock.ts'
import { type Log, type LogEvent, type LogFields, writeLog } from '../platform/log.ts'
import { TtlMap } from '../platform/ttl-map.ts'
import type { Attempt } from './attempt.ts'
import type { DueDelivery } from './delivery-store.ts'
import { DISABLED_REASONS, type DisabledCode } from './endpoint.ts'
import { WEBHOOK_LOG } from './telemetry.ts'

/** Logs an attempt; `disabled` is the reason if it disabled its webhook. */
export type AttemptLog = (due: DueDelivery, attempt: Attempt, disabled: DisabledCode | null) => void

/**
 * Logs each attempt at debug level, and at info and warn level each kind of result once per hour
 * and webhook, regardless of the number of events.
 */
export function createAttemptLog({ log, clock }: { log: Log; clock: Clock }): AttemptLog {
  const countSinceLogged = createHourlyCounter(clock)
  return (due, { statusCode, durationMs, error, next }, disabled) => {
    const { webhook, eventId } = due
    const about = { webhook: webhook.id, event: eventId, status: statusCode }
    const attempts = due.attempt + 1
    writeLog(log, WEBHOOK_LOG.attempt, {
      ...about,
      attempt: attempts,
      state: next.state,
      ms: durationMs,
    })
    const logHourly = (event: LogEvent, fields: LogFields) => {
      const times = countSinceLogged(`${webhook.id} ${event.message}`)
      if (times === 0) return
      writeLog(log, event, { ...about, ...fields, times: times > 1 ? times : undefined })
    }
    const failure = { attempts, why: error }
    if (next.state === 'retry_scheduled') logHourly(WEBHOOK_LOG.attemptFailed, failure)
    if (next.state === 'failed') logHourly(WEBHOOK_LOG.deliveryFailed, failure)
    if (next.state === 'delivered' && webhook.failingSince !== null)
      logHourly(WEBHOOK_LOG.endpointRecovered, {})
    if (disabled !== null) {
      const why = DISABLED_REASONS[disabled]
      writeLog(log, WEBHOOK_LOG.endpointDisabled, { ...about, code: disabled, why })
    }
  }
}

type LoggedMessage = { readonly at: number; suppressed: number }

/**
 * Returns how often a message occurred since it was last logged, or 0 if that was within the hour
 * and it should be suppressed.
 */
function createHourlyCounter(clock: Clock): (message: string) => number {
  const logged = new TtlMap<LoggedMessage>({ sizeMax: SIZE_MAX, clock })
  return message => {
    const at = clock.monotonicNow()
    const last = logged.get(message)
    if (last !== undefined && at - last.at < HOUR) {
      last.suppressed++
      return 0
    }
    logged.set(message, { at, suppressed: 0 }, RETENTION_MS)
    return (last?.suppressed ?? 0) + 1
  }
}

/** With more entries than this, some messages are logged more often. */
const SIZE_MAX = 10_000
/** Longer than the longest wait between two attempts. */
const RETENTION_MS = 2 * DAY
