import type { Transaction } from 'kysely'
import type { Random } from '../platform/random.ts'
import { plainResult } from '../engine/verdict/present-result.ts'
import { type EventKind, eventBody, newDeliveryId, newEventId } from './event.ts'
import { batchCompleted, batchFailed } from './event-data.ts'
import type { Result } from '../engine/verdict/verdict.ts'
import type { Job } from '../jobs/job-store.ts'
import type { Schema } from '../db/schema.ts'
import { subscribers } from './endpoint-store.ts'

export type Emission = {
  readonly accountId: string
  readonly kind: EventKind
  readonly data: object
  readonly sandbox: boolean
  /** Epoch ms. */
  readonly now: number
  readonly random: Random
}

/**
 * Writes an event and one delivery for each webhook that subscribed to it, in the transaction of what caused it:
 * it is told exactly if that is kept. Gives the event's ID; null when nobody subscribed, and nothing is written.
 */
export async function emit(trx: Transaction<Schema>, o: Emission): Promise<string | null> {
  const webhooks = await subscribers(trx, o.accountId, o.kind)
  if (webhooks.length === 0) return null
  const { now, random } = o
  const id = newEventId(random)
  const body = eventBody({ id, kind: o.kind, at: now, data: o.data, sandbox: o.sandbox })
  await trx
    .insertInto('event')
    .values({ id, account_id: o.accountId, kind: o.kind, body, created_at: now })
    .execute()
  const deliveries = webhooks.map(webhook_id => ({
    ...{ id: newDeliveryId(random), event_id: id, webhook_id, kind: o.kind },
    trigger: 'scheduled' as const,
    ...{ state: 'pending' as const, attempt: 0, due_at: now, created_at: now },
  }))
  await trx.insertInto('delivery').values(deliveries).execute()
  return id
}

/**
 * Tells of a job that has just ended, in the transaction that ends it. Nothing is told of lists of the command
 * line, of what was cancelled, and of a single address without a result. Lists that were answered at once do not come here.
 */
export async function emitJobEvent(
  trx: Transaction<Schema>,
  job: Job,
  o: { now: number; random: Random; baseUrl: string; result?: Result },
): Promise<string | null> {
  const emitted = eventFor(job, o)
  if (job.account_id === null || emitted === null) return null
  const { now, random } = o
  return emit(trx, {
    ...emitted,
    ...{ accountId: job.account_id, sandbox: job.sandbox === 1, now, random },
  })
}

function eventFor(
  job: Job,
  o: { baseUrl: string; result?: Result },
): Pick<Emission, 'kind' | 'data'> | null {
  if (job.type === 'list') return null
  if (job.type === 'single') {
    if (o.result === undefined || job.state !== 'completed') return null
    const data = { verification_id: job.id, ...plainResult(o.result) }
    return { kind: 'verification.completed', data }
  }
  if (job.state === 'completed') {
    return { kind: 'batch.completed', data: batchCompleted(countsOf(job), o.baseUrl) }
  }
  return job.state === 'failed' ? { kind: 'batch.failed', data: batchFailed(countsOf(job)) } : null
}

const countsOf = (job: Job) => ({
  ...{ jobId: job.id, total: job.total, done: job.done, failed: job.failed },
  ...{ deliverable: job.deliverable, risky: job.risky },
  ...{ undeliverable: job.undeliverable, unknown: job.unknown, error: job.error },
})
