import type { Context } from 'hono'
import type { Reservation } from '../../accounts/credits/usage-ledger.ts'
import type { Trx } from '../../db/database.ts'
import { isFault } from '../../engine/address/address.ts'
import { withDeadline } from '../../engine/deadline.ts'
import { sandboxResult } from '../../engine/sandbox.ts'
import { fromDeadline } from '../../engine/verdict/build-result.ts'
import { type Result, toClass } from '../../engine/verdict/verdict.ts'
import { insertFinishedJob } from '../../jobs/import/item-import.ts'
import { newId, toJob } from '../../jobs/import/load-job.ts'
import { isAddress, type ParsedRow, parseRow } from '../../jobs/import/submission.ts'
import type { JobOptions } from '../../jobs/job-store.ts'
import { checkPlanLimits } from '../../jobs/submit-job.ts'
import { SECOND } from '../../platform/clock.ts'
import { pluralize } from '../../platform/format.ts'
import type { Env } from '../context.ts'
import { jobServices } from '../jobs/load-job.ts'
import { clientAborted } from '../middleware/client-aborted.ts'
import { commitResponse } from '../middleware/idempotency.ts'
import type { Service } from '../service.ts'
import { stateOf } from '../state.ts'
import { orGiveBack } from '../verify/ask.ts'
import { reserveOrGetCached } from '../verify/credits.ts'

/** For all addresses together, so that the answer comes before proxies give it up. */
const BUDGET_MS = 10 * SECOND

/** Answers a short list at once: a job that is completed when it is first heard of. */
export async function answerInstant(
  c: Context<Env>,
  service: Service,
  emails: readonly string[],
  options: JobOptions,
): Promise<Response> {
  const entries = emails.map(parseRow)
  await checkPlanLimits(jobServices(service), ownerOf(c), { openLists: 0, rows: entries.length })
  const asked = [...new Map(entries.map(entry => [entry.dedupeKey, entry])).values()]
  const addresses = asked.filter(isAddress).length
  const isFree = c.get('sandbox') || addresses === 0
  const { reservation, known } = isFree
    ? { reservation: null, known: null }
    : await reserveOrGetCached(c, service, addresses, () => getAllCached(service, asked, options))
  return orGiveBack(c, service, reservation, async settling => {
    const found = known ?? (await verifyAll(c, service, asked, options))
    const results = entries.map(({ dedupeKey }) => found.get(dedupeKey) as Result)
    const fresh = [...found.values()]
    return store(c, service, { entries, results, reservation, fresh, settling })
  })
}

const ownerOf = (c: Context<Env>) => {
  const { account, plan } = c.get('caller')
  return { accountId: account.id, plan }
}

/** The results of a list whose addresses are all remembered, which costs no credit; null: at least one is not. */
async function getAllCached(
  { engine }: Service,
  asked: readonly ParsedRow[],
  { checkSmtp, forceRefresh }: JobOptions,
): Promise<Map<string, Result> | null> {
  if (!checkSmtp || forceRefresh) return null
  const found = await Promise.all(
    asked.map(entry =>
      isAddress(entry) ? engine.getCached(entry.text) : engine.verify(entry.text),
    ),
  )
  const known = found.filter(result => result !== null)
  if (known.length < asked.length) return null
  return new Map(asked.map(({ dedupeKey }, index) => [dedupeKey, known[index] as Result]))
}

/** The results by dedupe key: of all of them, whatever the mail servers do. */
async function verifyAll(
  c: Context<Env>,
  service: Service,
  asked: readonly ParsedRow[],
  options: JobOptions,
): Promise<Map<string, Result>> {
  const { clock } = service
  const startedAt = clock.monotonicNow()
  const verify = () => verifyInTime(c, service, asked, options)
  const byText = c.get('sandbox') ? null : await stateOf(service).admissions.run(c, verify)
  const resultOf = (text: string) =>
    byText === null
      ? sandboxResult(clock, text)
      : (byText.get(text) ?? fromDeadline(clock, text, startedAt))
  return new Map(asked.map(({ dedupeKey, text }) => [dedupeKey, resultOf(text)]))
}

async function verifyInTime(
  c: Context<Env>,
  { engine, clock }: Service,
  asked: readonly ParsedRow[],
  options: JobOptions,
): Promise<Map<string, Result>> {
  const client = c.req.raw.signal
  const found = new Map<string, Result>()
  const { signal, done } = withDeadline(clock, BUDGET_MS, [client])
  try {
    const texts = asked.map(({ text }) => text)
    const how = { ...options, signal, wait: false, urgent: true }
    for await (const result of engine.verifyMany(texts, how)) {
      found.set(result.email, result)
    }
  } catch (error) {
    if (client.aborted) throw clientAborted()
    // What is not there when the time is up is told as that.
    if (!signal.aborted) throw error
  } finally {
    done()
  }
  return found
}

type Answered = {
  readonly entries: readonly ParsedRow[]
  /** One for each row. */
  readonly results: readonly Result[]
  /** One for each address, however often it stands in the list. */
  readonly fresh: readonly Result[]
  readonly reservation: Reservation | null
  /** To be told of the transaction that settles the hold. */
  readonly settling: (trx: Trx) => Promise<void>
}

/** Job, books and the answer that is kept are durable together, before it is sent. */
function store(
  c: Context<Env>,
  service: Service,
  { entries, results, fresh, reservation, settling }: Answered,
): Promise<Response> {
  const { account, key } = c.get('caller')
  const owner = { accountId: account.id, keyId: key.id, sandbox: c.get('sandbox') }
  const listed = { ...owner, type: 'bulk' as const, name: null, source: '{}', deduplicate: true }
  const jobId = newId(listed, service.random)
  const items = entries.map((entry, index) => ({
    ...entry,
    position: index + 1,
    result: results[index] as Result,
  }))
  return commitResponse(c, service, async trx => {
    await settling(trx)
    await insertFinishedJob(trx, toJob(jobId, listed), items, service.clock.now())
    const added = { openLists: 0, rows: items.length } as const
    await checkPlanLimits(jobServices(service), ownerOf(c), added, trx)
    await service.ledger.record(trx, {
      ...owner,
      ...{
        source: 'bulk',
        jobId,
        period: reservation?.period ?? null,
        released: reservation?.amount ?? 0,
      },
      member: reservation?.member ?? null,
      entries: fresh.map(result => ({ result })),
    })
    return { status: 200, body: presentInstant(jobId, results) }
  })
}

/** The instant form of the interface (2.3): its summary knows valid and invalid, and no third. */
function presentInstant(jobId: string, results: readonly Result[]) {
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
    results: results.map(presentItem),
    summary: { total, valid, invalid: total - valid },
    message: `Verified ${pluralize(total, 'address')}`,
  }
}

/** One row of a list, as the interface shows it (2.2), with its class. */
const presentItem = ({ email, verdict, cached }: Result) => ({
  email,
  valid: verdict.valid,
  deliverable: verdict.deliverable,
  risk_level: verdict.risk,
  reason: verdict.reason,
  cached,
  class: toClass(verdict),
})
