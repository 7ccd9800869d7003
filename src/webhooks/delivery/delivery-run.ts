import type { Database } from '../../db/database.ts'
import { errorMessage } from '../../platform/error.ts'
import type { Log } from '../../platform/log.ts'
import type { Reschedule } from '../../queue/queue.ts'
import { disabledCode, RETRY_LATER_STATUSES } from '../delivery-state.ts'
import { type DueDelivery, nextDeliveries, nextDueAt } from '../delivery-store.ts'
import type { DisabledCode } from '../endpoint.ts'
import { type Attempt, type AttemptDeps, makeAttempt } from './attempt.ts'
import type { AttemptLog, AttemptRecorder } from './attempt-writer.ts'
import type { DeliveryTimings } from './delivery-timings.ts'
import type { EndpointBackoff } from './endpoint-backoff.ts'

export type DeliveryRunDeps = AttemptDeps & {
  readonly database: Database
  readonly log: Log
  readonly recorder: AttemptRecorder
  readonly endpoints: EndpointBackoff
  readonly tally: Tally
  readonly logAttempt: AttemptLog
  /** Nothing new is begun; what is under way comes to its end. */
  readonly stopping: AbortSignal
  /** What is under way is given up. */
  readonly abandoned: AbortSignal
  /** The webhook may be another server's now: nothing is begun, and nothing waited for. */
  readonly lost: AbortSignal
  readonly timings: DeliveryTimings
  /** Whether other webhooks wait for a turn. */
  readonly isBusy: () => boolean
}

/** Counts since the start. */
export type Tally = { underWay: number; delivered: number; retried: number; failed: number }

/** Requests to one webhook at the same time. */
export const CONNECTIONS_MAX = 4
/** One turn of a webhook: sends what is due, a few at a time, until nothing is. */
export class DeliveryRun {
  readonly #work: DeliveryRunDeps
  readonly #webhookId: string
  readonly #underWay = new Set<string>()
  /** Resolves with the next that happens: a request ended, or something may have become due. */
  #alert = Promise.withResolvers<void>()

  constructor(work: DeliveryRunDeps, webhookId: string) {
    this.#work = work
    this.#webhookId = webhookId
  }

  /** Gives when the webhook is to have its next turn. */
  async run(): Promise<Reschedule> {
    const over = AbortSignal.any([this.#work.abandoned, this.#work.lost])
    const onDone = () => this.wake()
    over.addEventListener('abort', onDone)
    try {
      await this.#sendDue()
    } finally {
      // Were another turn to begin before, there would be more requests than are allowed.
      while (this.#underWay.size > 0 && !over.aborted) await this.#alert.promise
      over.removeEventListener('abort', onDone)
    }
    return this.#whenDue()
  }

  /** Something may have become due. */
  wake(): void {
    this.#alert.resolve()
    this.#alert = Promise.withResolvers<void>()
  }

  /**
   * What is sent is looked up right before, so that whatever was changed holds at once: a deletion, another URL or
   * secret.
   */
  async #sendDue(): Promise<void> {
    const { clock, database, timings } = this.#work
    const endAt = clock.monotonicNow() + timings.turnMs
    while (this.#mayBegin(endAt)) {
      // Taken before the look, so that nothing is missed that happens during it.
      const alert = this.#alert.promise
      const max = CONNECTIONS_MAX - this.#underWay.size
      if (max > 0) {
        const o = { now: clock.now(), except: [...this.#underWay], max }
        const due = await nextDeliveries(database, this.#webhookId, o)
        if (due.length === 0 && this.#underWay.size === 0) return
        if (!this.#mayBegin(endAt)) return
        for (const one of due) this.#begin(one)
      }
      await alert
    }
  }

  #mayBegin(endAt: number): boolean {
    const { clock, endpoints, stopping, lost, isBusy } = this.#work
    if (stopping.aborted || lost.aborted || endpoints.restMs(this.#webhookId) > 0) return false
    return clock.monotonicNow() < endAt || !isBusy()
  }

  #begin(due: DueDelivery) {
    this.#underWay.add(due.id)
    void this.#deliver(due).finally(() => {
      this.#underWay.delete(due.id)
      this.wake()
    })
  }

  /** Sends one, and waits until what came of it is durable: a crash sends again what was under way, and nothing else. */
  async #deliver(due: DueDelivery): Promise<void> {
    const { endpoints, recorder, log, tally, logAttempt, timings } = this.#work
    try {
      const attempt = await this.#attempt(due)
      const disabled = this.#updateEndpointHealth(due, attempt)
      const isDurable = await recorder.record({
        ...attempt,
        delivery: { id: due.id, webhookId: this.#webhookId, round: cycleOf(due) },
        disabledCode: disabled,
      })
      if (!isDurable) return
      tally[COUNTED[attempt.next.state]]++
      logAttempt(due, attempt, disabled)
    } catch (error) {
      endpoints.backOff(this.#webhookId, timings.failureBackoffMs, due.webhook.url)
      const fields = { webhook: this.#webhookId, event: due.eventId, why: errorMessage(error) }
      log.error('deliveries: an attempt failed inside ev', fields)
    }
  }

  async #attempt(due: DueDelivery): Promise<Attempt> {
    const { tally } = this.#work
    tally.underWay++
    try {
      return await makeAttempt(this.#work, due)
    } finally {
      tally.underWay--
    }
  }

  /** What an attempt tells of the endpoint; gives why it is to be switched off, if it is. */
  #updateEndpointHealth({ webhook }: DueDelivery, attempt: Attempt): DisabledCode | null {
    const { durationMs, statusCode, retryAfterMs, next } = attempt
    const { clock, endpoints } = this.#work
    const { id, failingSince } = webhook
    endpoints.took(id, durationMs)
    if (next.state === 'delivered') {
      endpoints.delivered(id)
      return null
    }
    if (statusCode !== null && RETRY_LATER_STATUSES.has(statusCode))
      endpoints.backOff(id, retryAfterMs ?? 0, webhook.url)
    const seenMs = endpoints.failed(id)
    return disabledCode({ status: statusCode, failingSince, seenMs, now: clock.now() })
  }

  async #whenDue(): Promise<Reschedule> {
    const { clock, database, endpoints, stopping, lost } = this.#work
    if (stopping.aborted || lost.aborted) return 'done'
    const dueAt = await nextDueAt(database, this.#webhookId, [])
    if (dueAt === null) return 'done'
    return { dueAt: Math.max(dueAt, clock.now() + endpoints.restMs(this.#webhookId)) }
  }
}

const cycleOf = ({ trigger, attempt }: DueDelivery) => ({ trigger, attempt })

const COUNTED = { delivered: 'delivered', retry_scheduled: 'retried', failed: 'failed' } as const
