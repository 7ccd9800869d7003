import type { Transaction } from 'kysely'
import type { Schema } from '../db/schema.ts'
import { plainResult } from '../engine/verdict/present-result.ts'
import type { Result } from '../engine/verdict/verdict.ts'
import type { Random } from '../platform/random.ts'
import { batchCompleted, batchFailed } from '../webhooks/event.ts'
import { type Emission, emit } from '../webhooks/event-store.ts'
import { type Job, parseMetadata } from './job-store.ts'

/**
 * Emits the event of a job that has just ended, in the transaction that ends it. Lists of the
 * command line, cancelled jobs and single addresses without a result emit none. Lists that were
 * answered directly are not passed here.
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
    const metadata = parseMetadata(job)
    const data = { verification_id: job.id, ...plainResult(o.result), metadata }
    return { kind: 'verification.completed', data }
  }
  if (job.state === 'completed') {
    return { kind: 'batch.completed', data: batchCompleted(toCounts(job), o.baseUrl) }
  }
  return job.state === 'failed' ? { kind: 'batch.failed', data: batchFailed(toCounts(job)) } : null
}

const toCounts = (job: Job) => ({
  ...{ jobId: job.id, total: job.total, done: job.done, failed: job.failed },
  ...{ deliverable: job.deliverable, risky: job.risky },
  ...{ undeliverable: job.undeliverable, unknown: job.unknown, error: job.error },
  metadata: parseMetadata(job),
})
