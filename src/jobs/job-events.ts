import type { Transaction } from 'kysely'
import type { Schema } from '../db/schema.ts'
import type { ActionPolicy } from '../engine/verdict/action.ts'
import { plainResult } from '../engine/verdict/present-result.ts'
import type { Result } from '../engine/verdict/verdict.ts'
import type { Random } from '../platform/random.ts'
import { batchCompleted, batchFailed } from '../webhooks/event.ts'
import { type Emission, emit } from '../webhooks/event-store.ts'
import type { EventData } from '../webhooks/event-types.ts'
import { type Job, parseMetadata, parseNotify, parseOrigin } from './job-store.ts'

/**
 * Emits the event of a job that has just ended, in the transaction that ends it. Lists of the
 * command line, cancelled jobs and single addresses without a result emit none. Of lists that were
 * answered directly, only those with a webhook of their own are passed here, with `onlyJob`. Also
 * requests the mail about the end of a list.
 */
export async function emitJobEvent(
  trx: Transaction<Schema>,
  job: Job,
  o: EventOptions,
): Promise<string | null> {
  const emitted = eventFor(job, o)
  if (job.account_id === null || emitted === null) return null
  if (parseNotify(job) && o.onlyJob !== true) await requestMail(trx, job.id, o.dueAt)
  const { now, dueAt, random, onlyJob = false } = o
  return emit(trx, {
    ...emitted,
    jobId: job.id,
    onlyJob,
    accountId: job.account_id,
    sandbox: job.sandbox === 1,
    now,
    dueAt,
    random,
  })
}

async function requestMail(trx: Transaction<Schema>, jobId: string, dueAt: number): Promise<void> {
  await trx.updateTable('job').set({ mail_due_at: dueAt }).where('id', '=', jobId).execute()
}

type EventOptions = Pick<Emission, 'now' | 'dueAt'> & {
  readonly random: Random
  readonly baseUrl: string
  /** The result of a single address, with the policy that decides about its action. */
  readonly verified?: { readonly result: Result; readonly policy: ActionPolicy }
  /** Whether only the webhook of the job gets the event. */
  readonly onlyJob?: boolean
}

function eventFor(
  job: Job,
  o: Pick<EventOptions, 'baseUrl' | 'verified'>,
): Pick<Emission, 'kind' | 'data'> | null {
  if (job.type === 'list') return null
  if (job.type === 'single') {
    if (o.verified === undefined || job.state !== 'completed') return null
    const metadata = parseMetadata(job)
    const data: EventData['verification.completed'] = {
      verification_id: job.id,
      ...plainResult(o.verified.result, o.verified.policy),
      metadata,
    }
    return { kind: 'verification.completed', data }
  }
  if (job.state === 'completed') {
    return { kind: 'batch.completed', data: batchCompleted(toCounts(job), o.baseUrl) }
  }
  return job.state === 'failed' ? { kind: 'batch.failed', data: batchFailed(toCounts(job)) } : null
}

const toCounts = (job: Job) => ({
  jobId: job.id,
  total: job.total,
  done: job.done,
  failed: job.failed,
  deliverable: job.deliverable,
  risky: job.risky,
  undeliverable: job.undeliverable,
  unknown: job.unknown,
  error: job.error,
  metadata: parseMetadata(job),
  ...parseOrigin(job),
})
