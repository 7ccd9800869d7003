import pLimit from 'p-limit'
import type { Database } from '../../db/database.ts'
import { type Clock, SECOND, sleep } from '../../platform/clock.ts'
import type { Log } from '../../platform/log.ts'
import { startLoop } from '../../platform/loop.ts'
import type { SecretBox } from '../../platform/secret-box.ts'
import type { Lease, Queue } from '../../queue/queue.ts'
import { shiftAfterClockSkew } from '../clock-skew.ts'
import { dueWebhooks } from '../delivery-store.ts'
import type { WebhookTransport } from '../transport/transport.ts'
import { attemptLog, attemptRecorder } from './attempt-writer.ts'
import { DeliveryRun } from './delivery-run.ts'
import { DEFAULT_DELIVERY_TIMINGS, type DeliveryTimings } from './delivery-timings.ts'
import { createEndpointBackoff, type EndpointBackoff } from './endpoint-backoff.ts'

export type DeliveryDeps = {
  readonly database: Database
  readonly queue: Queue
  readonly transport: WebhookTransport
  readonly secretBox: SecretBox
  readonly clock: Clock
  readonly log: Log
  /** Of ev, for receivers to see. */
  readonly version: string
  readonly timings?: DeliveryTimings
}

const KIND = 'deliver'
/** Webhooks whose turn has come at the same time; most of so many wait for a place. */
const ENTRIES_MAX = 10_000
/** The same where other servers would have places for them. */
const SHARED_ENTRIES_MAX = 500

/** Carries events to webhooks from now on, those first that were due before. */
export function startDeliveries(deps: DeliveryDeps): Deliveries {
  const { database, queue, clock, log, timings = DEFAULT_DELIVERY_TIMINGS } = deps
  const stopping = new AbortController()
  const abandoned = new AbortController()
  const turns = new Map<string, DeliveryRun>()
  const endpoints = createEndpointBackoff(clock)
  const recorder = attemptRecorder(deps)
  const tally = { underWay: 0, delivered: 0, retried: 0, failed: 0 }
  const work = {
    ...deps,
    ...{ recorder, endpoints, tally, timings, logAttempt: attemptLog(deps) },
    ...{ stopping: stopping.signal, abandoned: abandoned.signal },
  }
  const slots = createDeliveryConcurrency(endpoints)
  const serve = (webhookId: string, { lost }: Lease) =>
    slots.run(webhookId, isBusy => {
      const turn = new DeliveryRun({ ...work, isBusy, lost }, webhookId)
      turns.set(webhookId, turn)
      return turn.run().finally(() => {
        if (turns.get(webhookId) === turn) turns.delete(webhookId)
      })
    })
  const follow = followWallClock(deps)
  const look = async () => {
    await follow()
    const due = await dueWebhooks(database, clock.now())
    for (const { id, url } of due) endpoints.isAt(id, url)
    const ids = due.map(({ id }) => id).filter(id => endpoints.restMs(id) === 0)
    for (const id of ids) turns.get(id)?.wake()
    if (ids.length > 0) await queue.putAll(KIND, ids)
  }
  const poll = startLoop({
    // Events are written by other parts, and other processes, which need not tell.
    ...{ name: 'the poll for due deliveries', run: look, clock, log },
    ...{ everyMs: timings.dueLookMs, retryMs: timings.retryMs },
  })
  const concurrency = isShared(database) ? SHARED_ENTRIES_MAX : ENTRIES_MAX
  const worker = queue.work(KIND, serve, { concurrency })
  const stop = async () => {
    stopping.abort()
    const quiet = new AbortController()
    const ended = Promise.all([poll.stop(), worker.stop()]).finally(() => quiet.abort())
    await sleep(clock, timings.graceMs, quiet.signal)
    const { underWay: requests } = tally
    if (requests > 0)
      log.info('deliveries: not answered, sent again after the next start', { requests })
    abandoned.abort()
    await ended
    await recorder.stop()
  }
  let stopped: Promise<void> | null = null
  return {
    wake: () => poll.wake(),
    status: () => ({ ...tally }),
    stop() {
      stopped ??= stop()
      return stopped
    },
  }
}

/** Whether other servers carry events as well: each webhook is one server's at a time, and what one had under way when it died is sent by another. */
const isShared = ({ dialect }: Database) => dialect === 'postgres'

/**
 * Sees to it that nothing waits for a time that was the present once, before the wall clock was set back. Where several
 * servers write times, the clock of one says nothing of those of the others: only what nobody can have meant is moved.
 */
function followWallClock({ database, clock }: Pick<DeliveryDeps, 'database' | 'clock'>) {
  let known: number | null = null
  return async () => {
    const now = clock.now()
    const offset = now - clock.monotonicNow()
    const byMs = known === null ? 0 : known - offset
    // At the start too, as it may have been set back while nobody looked.
    if (known === null || byMs > SET_BACK_MIN_MS) {
      await shiftAfterClockSkew(database, { now, byMs: isShared(database) ? 0 : byMs })
    }
    known = offset
  }
}

/** What is less is done with before somebody notices. */
const SET_BACK_MIN_MS = SECOND

/** Turns at the same time. With CONNECTIONS_MAX for each and those of the slow there are 1,024 connections at most. */
export const TURNS_MAX = 192
/** Of these, those of endpoints that were slow when they were asked last: else a few hundred of them would hold up everybody. */
export const SLOW_TURNS_MAX = 64

type DeliveryConcurrency = {
  /** Does something as soon as there is a place for a turn of this webhook. `isCrowded` tells whether others wait for its place. */
  run<T>(webhookId: string, act: (isBusy: () => boolean) => Promise<T>): Promise<T>
}

/** Places for turns, first come first served: the slow wait for one another only. */
export function createDeliveryConcurrency(
  endpoints: Pick<EndpointBackoff, 'isSlow'>,
): DeliveryConcurrency {
  const quick = pLimit(TURNS_MAX)
  const slow = pLimit(SLOW_TURNS_MAX)
  return {
    run(webhookId, act) {
      const slots = endpoints.isSlow(webhookId) ? slow : quick
      return slots(() => act(() => slots.pendingCount > 0))
    },
  }
}

/** Carries events to the webhooks that subscribed to them, as their deliveries fall due. */
export interface Deliveries {
  /** Looks at once for what is due: something was just made due. Otherwise it is found within half a second. */
  wake(): void
  status(): DeliveryStatus
  /** Begins nothing more; resolves when what is under way has come to its end or has been given up. */
  stop(): Promise<void>
}

/** Since the start. */
type DeliveryStatus = {
  /** Requests under way now. */
  readonly underWay: number
  /** Attempts by what came of them. */
  readonly delivered: number
  readonly retried: number
  readonly failed: number
}
