import { type Clock, MINUTE, SECOND } from './clock.ts'

/** Log sink. Fields never contain secrets. */
export interface Log {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
}

type LogValue = string | number | boolean | null | undefined

export type LogFields = Readonly<Record<string, LogValue>>

/**
 * A log event: its level, its message, and the names of its fields. `…` in a message stands for a
 * part that varies. A module declares its events in its `telemetry.ts`, or in the only file that
 * logs. docs/logs.md lists those of level warn and error.
 */
export type LogEvent = {
  readonly level: keyof Log
  readonly message: string
  readonly fields: readonly string[]
}

type EventFields<Event extends LogEvent> = Readonly<
  Partial<Record<Event['fields'][number], LogValue>>
>

/** The last argument of `writeLog`: required if the message contains `…`, which it replaces. */
type EventPart<Event extends LogEvent> = Event['message'] extends `${string}…${string}`
  ? [part: string]
  : []

/** Logs an event. */
export function writeLog<Event extends LogEvent>(
  log: Log,
  event: Event,
  fields?: EventFields<Event>,
  ...part: EventPart<Event>
): void
export function writeLog(log: Log, event: LogEvent, fields?: LogFields, part?: string): void {
  log[event.level](part === undefined ? event.message : fillMessage(event, part), fields)
}

/** Returns the message of an event whose varying part is `part`. */
export const fillMessage = ({ message }: LogEvent, part: string): string =>
  message.replaceAll('…', () => part)

/** Wraps a log that callers pass in: an error in it must not end what is logged about. */
export function guardedLog(log: Log): Log {
  const guard = (level: keyof Log) => (message: string, fields?: LogFields) => {
    try {
      log[level](message, fields)
    } catch {
      // There is no other place to report it.
    }
  }
  return {
    debug: guard('debug'),
    info: guard('info'),
    warn: guard('warn'),
    error: guard('error'),
  }
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} }

/** A failure repeated within this time is the same incident: retries are a few seconds apart. */
const INCIDENT_GAP_MS = 15 * SECOND
/** Interval at which a continuing failure is logged. */
const REMIND_MS = MINUTE
/** Failures tracked at once; the oldest is evicted first. */
const TRACKED_MAX = 500

type LastLog = { loggedAt: number; at: number; suppressed: number }

/** Logs a repeated failure: immediately, then once a minute while it continues. */
export class LogThrottle {
  readonly #clock: Clock
  readonly #lastLogs = new Map<string, LastLog>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Logs a failure if it is due, with the number of suppressed ones in `repeated`. */
  write(log: Log, failure: string, event: Omit<LogEvent, 'fields'>, fields?: LogFields): void {
    const repeated = this.#due(failure)
    if (repeated !== null)
      log[event.level](event.message, repeated === 0 ? fields : { ...fields, repeated })
  }

  /** Marks a failure as resolved: the next one is logged immediately. */
  forget(failure: string): void {
    this.#lastLogs.delete(failure)
  }

  /**
   * Returns null if a failure must not be logged now, otherwise how often it was suppressed since it
   * was last logged.
   */
  #due(failure: string): number | null {
    const now = this.#clock.monotonicNow()
    const before = this.#lastLogs.get(failure)
    const isSame = before !== undefined && now - before.at <= INCIDENT_GAP_MS
    if (isSame && now - before.loggedAt < REMIND_MS) {
      before.at = now
      before.suppressed++
      return null
    }
    this.#track(failure, { loggedAt: now, at: now, suppressed: 0 })
    return isSame ? before.suppressed : 0
  }

  #track(failure: string, lastLog: LastLog): void {
    this.#lastLogs.delete(failure)
    this.#lastLogs.set(failure, lastLog)
    for (const oldest of this.#lastLogs.keys()) {
      if (this.#lastLogs.size <= TRACKED_MAX) return
      this.#lastLogs.delete(oldest)
    }
  }
}

/**
 * Wraps a log for code that retries: an identical warning or error is logged once, then once a
 * minute while it continues, with the count in `repeated`.
 */
export function throttledLog(log: Log, clock: Clock): Log {
  const throttle = new LogThrottle(clock)
  const throttled = (level: 'warn' | 'error') => (message: string, fields?: LogFields) => {
    const failure = JSON.stringify([level, message, { ...fields, stack: null }])
    throttle.write(log, failure, { level, message }, fields)
  }
  const { debug, info } = log
  return { debug, info, warn: throttled('warn'), error: throttled('error') }
}
