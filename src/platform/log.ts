import { type Clock, MINUTE, SECOND } from './clock.ts'

/** Where ev reports what happens inside, as a door to the world. Fields never hold secrets. */
export interface Log {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
}

export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} }

/** What is said again within this time is the same trouble: whoever tries again does so every few seconds. */
const SAME_MS = 15 * SECOND
/** So often trouble that goes on is told of. */
const REMIND_MS = MINUTE
/** Different things that are remembered as said; the one that was said first is forgotten beyond that. */
const SAID_MAX = 500

type LastLog = { loggedAt: number; at: number; suppressed: number }

/** Tells trouble that goes on once, then once a minute. */
export class ReminderOptions {
  readonly #clock: Clock
  readonly #said = new Map<string, LastLog>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Call each time there is that trouble: null where it is not to be told now, else how often it was not told since. */
  due(failure: string): number | null {
    const now = this.#clock.monotonicNow()
    const before = this.#said.get(failure)
    const isSame = before !== undefined && now - before.at <= SAME_MS
    if (isSame && now - before.loggedAt < REMIND_MS) {
      before.at = now
      before.suppressed++
      return null
    }
    this.#note(failure, { loggedAt: now, at: now, suppressed: 0 })
    return isSame ? before.suppressed : 0
  }

  /** It is over: when it comes again, it is told at once. */
  forget(failure: string): void {
    this.#said.delete(failure)
  }

  #note(failure: string, one: LastLog): void {
    this.#said.delete(failure)
    this.#said.set(failure, one)
    for (const oldest of this.#said.keys()) {
      if (this.#said.size <= SAID_MAX) return
      this.#said.delete(oldest)
    }
  }
}

/**
 * A log for whoever tries again by itself: a warning or error that is word for word what was said a moment ago is told
 * once, then once a minute while it goes on, with how often it was `repeated`.
 */
export function throttledLog(log: Log, clock: Clock): Log {
  const reminders = new ReminderOptions(clock)
  const calm = (level: 'warn' | 'error') => (message: string, fields?: LogFields) => {
    const repeated = reminders.due(JSON.stringify([level, message, { ...fields, stack: null }]))
    if (repeated === null) return
    log[level](message, repeated === 0 ? fields : { ...fields, repeated })
  }
  const { debug, info } = log
  return { debug, info, warn: calm('warn'), error: calm('error') }
}
