import { type Database, isStorageError } from '../db/database.ts'
import { type Clock, SECOND } from '../platform/clock.ts'
import { errorMessage } from '../platform/error.ts'
import { type Log, type LogEvent, type LogFields, writeLog } from '../platform/log.ts'
import { retry } from '../platform/retry.ts'

/** Wait before the record of a sent mail is written again. */
const RECORD_RETRY_MS = SECOND

type MailSenderDeps = {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
  readonly timings: MailTimings
  /** Logged when a mail failed and is sent again, and when it is not. */
  readonly retried: LogEvent
  readonly givenUp: LogEvent
}

/** Intervals of mails, in ms. */
export type MailTimings = {
  /** Interval of the poll for due mails; they are not urgent. */
  readonly pollMs: number
  /** Wait before a mail is sent again that failed, or whose sender crashed. */
  readonly retryMs: number
  /** A mail is retried for this long after its first failed attempt. */
  readonly giveUpMs: number
}

/** A mail that is due in the database. */
export type DueMail = {
  /** Of the job or webhook. */
  readonly id: string
  /** Fields of the log lines about a failure. */
  readonly fields: LogFields
  /** Postpones it to this steady time; returns false if another server did. */
  claim(until: number): Promise<boolean>
  send(): Promise<void>
  /** Records that a mail claimed until then was sent or given up. */
  record(until: number): Promise<unknown>
}

/** Sends due mails, and retries those that fail. */
export class MailSender {
  readonly #deps: MailSenderDeps
  /** By ID: since when a mail has failed to be sent, monotonic ms. */
  readonly #failingSince = new Map<string, number>()

  constructor(deps: MailSenderDeps) {
    this.#deps = deps
  }

  /**
   * Claims a mail before sending it, so that only one of several servers sends it, and none sends it
   * with each poll if the result cannot be written. After a crash between sending and recording it is
   * sent again. The record is retried while the database is unavailable, until the claim expires.
   */
  async send(mail: DueMail, signal: AbortSignal): Promise<void> {
    const { database, clock, timings } = this.#deps
    const until = database.steadyClock.now() + timings.retryMs
    if (!(await mail.claim(until))) return
    try {
      await mail.send()
    } catch (error) {
      if (signal.aborted || this.#canRetry(mail, error)) return
    }
    this.#failingSince.delete(mail.id)
    await retry(() => mail.record(until), {
      clock,
      signal,
      until: clock.monotonicNow() + timings.retryMs,
      delayMs: RECORD_RETRY_MS,
      isRetryable: isStorageError,
    })
  }

  #canRetry({ id, fields }: DueMail, error: unknown): boolean {
    const { clock, log, timings, retried, givenUp } = this.#deps
    const now = clock.monotonicNow()
    const since = this.#failingSince.get(id) ?? now
    this.#failingSince.set(id, since)
    const canRetry = now - since < timings.giveUpMs
    writeLog(log, canRetry ? retried : givenUp, { ...fields, why: errorMessage(error) })
    return canRetry
  }
}
