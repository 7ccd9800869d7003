import type { Context } from 'hono'
import type { Reservation } from '../../accounts/credits/reservations.ts'
import type { Trx } from '../../db/database.ts'
import { isFault } from '../../engine/address/address.ts'
import { withDeadline } from '../../engine/deadline.ts'
import { sandboxResult } from '../../engine/sandbox.ts'
import { type ActionPolicy, decide } from '../../engine/verdict/action.ts'
import { fromDeadline } from '../../engine/verdict/build-result.ts'
import { toRowResult } from '../../engine/verdict/judge.ts'
import { type Result, toClass } from '../../engine/verdict/verdict.ts'
import { insertFinishedJob } from '../../jobs/import/item-import.ts'
import { newId, toJob } from '../../jobs/import/load-job.ts'
import { isAddress, type ParsedRow, parseRow } from '../../jobs/import/submission.ts'
import { emitJobEvent } from '../../jobs/job-events.ts'
import {
  type Job,
  type JobOptions,
  type SubmitOptions,
  toSourceFields,
} from '../../jobs/job-store.ts'
import { checkPlanLimits } from '../../jobs/submit-job.ts'
import { SECOND } from '../../platform/clock.ts'
import { pluralize } from '../../platform/format.ts'
import { getActionPolicy } from '../action-policy.ts'
import type { ApiDeps } from '../api-deps.ts'
import { clientAborted, type Env } from '../context.ts'
import { commitResponse, type IdempotencyDeps } from '../middleware/idempotency.ts'
import {
  type AskDeps,
  applyFeedback,
  getCacheScope,
  releaseOnFailure,
  reserveOrGetCached,
} from '../verify/ask.ts'
import { presentJobWebhook } from './job-options.ts'

export type InstantDeps = Pick<
  ApiDeps,
  'capacity' | 'clock' | 'database' | 'engine' | 'ledger' | 'random' | 'settings'
> &
  IdempotencyDeps &
  AskDeps

/** Time for all addresses together, so that the response is sent before proxies time out. */
const BUDGET_MS = 10 * SECOND

/** Verifies a short list within the request. It is stored as a completed job. */
export async function answerInstant(
  c: Context<Env>,
  service: InstantDeps,
  emails: readonly string[],
  submitted: SubmitOptions,
): Promise<Response> {
  const { checkSmtp, forceRefresh } = submitted
  const options: JobOptions = { checkSmtp, forceRefresh }
  const entries = emails.map((text, index) => parseRow(text, index + 1))
  await checkPlanLimits(service, planOwner(c), { openLists: 0, rows: entries.length })
  const unique = [...new Map(entries.map(entry => [entry.dedupeKey, entry])).values()]
  const addresses = unique.filter(isAddress).length
  if (addresses > 0) await c.get('admitted').countAddresses(addresses)
  const isFree = c.get('sandbox') || addresses === 0
  const { reservation, cached } = isFree
    ? { reservation: null, cached: null }
    : await reserveOrGetCached(c, service, addresses, () =>
        getAllCached(c, service, unique, options),
      )
  return releaseOnFailure(c, service, reservation, async onSettle => {
    const verified = cached ?? (await verifyAll(c, service, unique, options))
    const distinct = (await applyFeedback(c, service, [...verified.values()])).map(toRowResult)
    const found = new Map([...verified.keys()].map((key, index) => [key, distinct[index]]))
    const results = entries.map(({ dedupeKey }) => found.get(dedupeKey) as Result)
    return store(c, service, { entries, results, submitted, distinct, reservation, onSettle })
  })
}

const planOwner = (c: Context<Env>) => {
  const { account, plan } = c.get('caller')
  return { accountId: account.id, plan }
}

/**
 * Returns the results of a list if all its addresses are cached, which costs no credits; null if at
 * least one is not.
 */
async function getAllCached(
  c: Context<Env>,
  { engine }: InstantDeps,
  unique: readonly ParsedRow[],
  { checkSmtp, forceRefresh }: JobOptions,
): Promise<Map<string, Result> | null> {
  if (!checkSmtp || forceRefresh) return null
  const cacheScope = getCacheScope(c)
  const found = await Promise.all(
    unique.map(entry =>
      isAddress(entry)
        ? engine.getCached(entry.text, { cacheScope })
        : engine.verify(entry.text, { cacheScope }),
    ),
  )
  const cached = found.filter(result => result !== null)
  if (cached.length < unique.length) return null
  return new Map(unique.map(({ dedupeKey }, index) => [dedupeKey, cached[index] as Result]))
}

/** Returns a result for every address by dedupe key, whatever the mail servers do. */
async function verifyAll(
  c: Context<Env>,
  service: InstantDeps,
  unique: readonly ParsedRow[],
  options: JobOptions,
): Promise<Map<string, Result>> {
  const { clock } = service
  const { admissions } = service.capacity
  const startedAt = admissions.arrivedAt(c.env?.outgoing) ?? clock.monotonicNow()
  const byText = c.get('sandbox')
    ? null
    : await verifyInTime(c, service, unique, { ...options, startedAt })
  const resultFor = (text: string) =>
    byText === null
      ? sandboxResult(clock, text)
      : (byText.get(text) ?? fromDeadline(clock, text, startedAt))
  return new Map(unique.map(({ dedupeKey, text }) => [dedupeKey, resultFor(text)]))
}

async function verifyInTime(
  c: Context<Env>,
  { engine, clock }: InstantDeps,
  unique: readonly ParsedRow[],
  { startedAt, ...options }: JobOptions & { readonly startedAt: number },
): Promise<Map<string, Result>> {
  const client = c.req.raw.signal
  const found = new Map<string, Result>()
  // The wait for admission counts toward the budget.
  const leftMs = BUDGET_MS - (clock.monotonicNow() - startedAt)
  const { signal, done } = withDeadline(clock, leftMs, [client])
  try {
    const texts = unique.map(({ text }) => text)
    const cacheScope = getCacheScope(c)
    const verifyOptions = { ...options, cacheScope, signal, wait: false, urgent: true }
    for await (const result of engine.verifyMany(texts, verifyOptions)) {
      found.set(result.email, result)
    }
  } catch (error) {
    if (client.aborted) throw clientAborted()
    // Addresses without a result at the deadline get the result of an exceeded deadline.
    if (!signal.aborted) throw error
  } finally {
    done()
  }
  return found
}

type InstantResults = {
  readonly entries: readonly ParsedRow[]
  /** One result for each row. */
  readonly results: readonly Result[]
  readonly submitted: SubmitOptions
  /** One result for each distinct address. */
  readonly distinct: readonly Result[]
  readonly reservation: Reservation | null
  /** Called with the transaction that settles the reservation. */
  readonly onSettle: (trx: Trx) => Promise<void>
}

/**
 * Commits the job, the ledger entries and the stored response together, before the response is
 * sent.
 */
function store(
  c: Context<Env>,
  service: InstantDeps,
  { entries, results, submitted, distinct, reservation, onSettle }: InstantResults,
): Promise<Response> {
  const { account, key } = c.get('caller')
  const owner = { accountId: account.id, keyId: key.id, sandbox: c.get('sandbox') }
  const source = JSON.stringify(toSourceFields(submitted))
  const listed = { ...owner, type: 'bulk' as const, name: null, source, deduplicate: true }
  const jobId = newId(listed, service.random)
  const items = entries.map((entry, index) => ({
    ...entry,
    position: index + 1,
    result: results[index] as Result,
  }))
  return commitResponse(c, service, async trx => {
    await onSettle(trx)
    const job = await insertFinishedJob(trx, toJob(jobId, listed), items, service.clock.now())
    const added = { openLists: 0, rows: items.length } as const
    await checkPlanLimits(service, planOwner(c), added, trx)
    await service.ledger.record(trx, {
      ...owner,
      source: 'bulk',
      jobId,
      period: reservation?.period ?? null,
      released: reservation?.amount ?? 0,
      member: reservation?.member ?? null,
      entries: distinct.map(result => ({ result })),
    })
    await emitToWebhook(trx, service, job, submitted)
    const body = {
      ...presentInstant(jobId, results, getActionPolicy(c, service)),
      ...presentJobWebhook(submitted),
    }
    return { status: 200, body }
  })
}

/**
 * Emits the event of a list with a webhook of its own, so that its receiver gets one for a list of
 * any length. Endpoints of the account get none: the results are in the response.
 */
async function emitToWebhook(
  trx: Trx,
  { clock, database, random, settings: { baseUrl } }: InstantDeps,
  job: Job,
  { webhook }: SubmitOptions,
): Promise<void> {
  if (!webhook) return
  await webhook.insert(trx, job.id)
  await emitJobEvent(trx, job, {
    now: clock.now(),
    dueAt: database.steadyClock.now(),
    random,
    baseUrl,
    onlyJob: true,
  })
}

/** The instant response of the interface (2.3). Its summary has only valid and invalid. */
function presentInstant(jobId: string, results: readonly Result[], policy: ActionPolicy) {
  const total = results.length
  const malformed = results.filter(({ evidence }) => isFault(evidence.address)).length
  const valid = results.filter(({ verdict }) => verdict.valid).length
  return {
    success: true,
    instant: true,
    job_id: jobId,
    status: 'completed',
    total_emails: total,
    valid_emails: total - malformed,
    invalid_format_emails: malformed,
    results: results.map(result => presentItem(result, policy)),
    summary: { total, valid, invalid: total - valid },
    message: `Verified ${pluralize(total, 'address')}`,
  }
}

/** One row of a list as the interface defines it (2.2), with its class. */
function presentItem(result: Result, policy: ActionPolicy) {
  const { email, verdict, cached } = result
  return {
    email,
    valid: verdict.valid,
    deliverable: verdict.deliverable,
    risk_level: verdict.risk,
    reason: verdict.reason,
    cached,
    class: toClass(verdict),
    action: decide(result, policy).action,
  }
}
