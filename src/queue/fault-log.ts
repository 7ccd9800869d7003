import type { Clock } from '../platform/clock.ts'
import { type Log, type LogFields, ReminderOptions } from '../platform/log.ts'

export type FaultLogDeps = {
  readonly clock: Clock
  readonly log: Log
  /** The database works again after a success and so many ms without a fault. */
  readonly clearMs: number
}

const DATABASE = 'database'

/**
 * Reports trouble of a queue. All faults of its database are one trouble, whatever failed by them: it is told once, then
 * once a minute while it goes on, and once that it is over.
 */
export class FaultLog {
  readonly #clock: Clock
  readonly #log: Log
  readonly #clearMs: number
  readonly #reminders: ReminderOptions
  /** When the last fault was; null: there was none since the database works. */
  #faultAt: number | null = null

  constructor({ clock, log, clearMs }: FaultLogDeps) {
    this.#clock = clock
    this.#log = log
    this.#clearMs = clearMs
    this.#reminders = new ReminderOptions(clock)
  }

  /** A fault of the database. */
  fault(message: string, fields: LogFields): void {
    this.#faultAt = this.#clock.monotonicNow()
    this.#write(DATABASE, message, fields)
  }

  /** The database did what it was asked. */
  success(): void {
    if (this.#faultAt === null || this.#clock.monotonicNow() - this.#faultAt < this.#clearMs) return
    this.#faultAt = null
    this.#reminders.forget(DATABASE)
    this.#log.info('the queue reaches its database again')
  }

  /** A run of this kind failed. */
  failure(kind: string, fields: LogFields): void {
    this.#write(`run ${kind}`, 'work failed and is tried again', { kind, ...fields })
  }

  #write(failure: string, message: string, fields: LogFields): void {
    const repeated = this.#reminders.due(failure)
    if (repeated === null) return
    this.#log.error(message, repeated === 0 ? fields : { ...fields, repeated })
  }
}
