import type { Database, Trx } from '../../db/database.ts'
import type { Reason } from '../../engine/verdict/reason.ts'
import { type Result, toClass } from '../../engine/verdict/verdict.ts'
import type { Random } from '../../platform/random.ts'
import { quotaData } from '../../webhooks/event.ts'
import { emit } from '../../webhooks/event-store.ts'
import { accountIn } from '../account-store.ts'
import { findPlan, type Plan, periodEnd, periodStart } from '../plan.ts'
import type { CreditTable, VerificationSource } from '../tables.ts'
import { noteWarned, readCredit, settleCredits } from './credit-store.ts'
import { addHistory, type Verification } from './history.ts'
import { reachedThresholds } from './quota-thresholds.ts'
import { consumeReservation, lockCredit } from './reservations.ts'
import { countUsage, type Usage } from './usage.ts'

/** One address that was verified. */
export type VerificationEntry = {
  /** Its place in the history, where that was told before: `ver_…`. */
  readonly id?: string
  readonly result: Result
}

/** Verifications of one origin. */
export type LedgerBatch = {
  readonly accountId: string
  readonly keyId: string
  readonly source: VerificationSource
  readonly jobId: string | null
  readonly sandbox: boolean
  /** Of which period its credits were set aside; null: the one that it is. */
  readonly period: number | null
  /** Credits that are set aside for these and no longer needed. */
  readonly released: number
  /** The member of the cluster that holds them; null or left out: there is none, or a job holds them. */
  readonly member?: string | null
  readonly entries: readonly VerificationEntry[]
}

export type LedgerBatchDeps = {
  readonly random: Random
  readonly plans: ReadonlyMap<string, Plan>
}

/** Writes history, usage, credits and what is to be told of them; what is simulated stands in the history alone. */
export async function postEntries(
  trx: Trx,
  deps: LedgerBatchDeps,
  o: LedgerBatch,
  now: number,
): Promise<void> {
  await addHistory(
    trx,
    o.entries.map(entry => toVerification(entry, o, deps.random, now)),
  )
  if (o.sandbox) return
  const used = o.entries.reduce((sum, { result }) => sum + creditsFor(result), 0)
  // The credits are locked before the usage, wherever both are written.
  const credit = await settle(trx, o, used, now)
  await countUsage(trx, usageOf(o, now))
  if (credit !== null && used > 0) await warn(trx, deps, credit, now)
}

async function settle(
  trx: Trx,
  { accountId, period: started, member = null, released: amount }: LedgerBatch,
  used: number,
  now: number,
): Promise<CreditTable | null> {
  if (used === 0 && amount === 0) return null
  const period = started ?? periodStart(now)
  const released = await consumeReservation(trx, { accountId, period, member, amount })
  return settleCredits(trx, { accountId, period, released, used })
}

/** Tells an account that was refused for want of credits that they are used up, once in a period. */
export async function emitQuotaExceeded(
  trx: Trx,
  deps: LedgerBatchDeps,
  { accountId, period, limit }: { accountId: string; period: number; limit: number },
  now: number,
): Promise<void> {
  await lockCredit(trx, { accountId, period })
  const credit = await readCredit(trx, accountId, period)
  // What is set aside is as good as used for whoever wants more.
  const used = credit.used + credit.held
  if (used >= limit) await warn(trx, deps, { ...credit, used }, now)
}

/** 103 bits of chance, as IDs of events have. */
const ID_LENGTH = 20

export const newVerificationId = (random: Random) => `ver_${random.token(ID_LENGTH)}`

function toVerification(
  { id, result }: VerificationEntry,
  o: LedgerBatch,
  random: Random,
  created_at: number,
): Verification {
  const { verdict, email, cached } = result
  return {
    id: id ?? newVerificationId(random),
    ...{ account_id: o.accountId, key_id: o.keyId },
    email,
    valid: Number(verdict.valid),
    deliverable: Number(verdict.deliverable),
    risk_level: verdict.risk,
    reason: verdict.reason,
    class: toClass(verdict),
    cached: Number(cached),
    ...{ source: o.source, job_id: o.jobId, sandbox: Number(o.sandbox), created_at },
  }
}

function usageOf({ accountId, keyId, entries }: LedgerBatch, now: number): Usage[] {
  const byClass = new Map<string, Usage>()
  for (const { result } of entries) {
    const name = toClass(result.verdict)
    const usage = byClass.get(name) ?? {
      ...{ account_id: accountId, key_id: keyId, day: periodStart(now), class: name },
      ...{ verifications: 0, cached: 0, credits: 0 },
    }
    usage.verifications++
    usage.cached += Number(result.cached)
    usage.credits += creditsFor(result)
    byClass.set(name, usage)
  }
  return [...byClass.values()].sort((a, b) => (a.class < b.class ? -1 : 1))
}

/** One event for each threshold that was reached, once in a period. */
async function warn(
  trx: Trx,
  { plans, random }: LedgerBatchDeps,
  { account_id: accountId, period_start: period, used, warned }: CreditTable,
  now: number,
): Promise<void> {
  const account = await accountIn(trx, accountId)
  if (account === null) return
  const { name, creditsPerDay: limit } = findPlan(plans, account.plan)
  if (limit === null) return
  const reached = reachedThresholds({ limit, used, warned })
  for (const thresholdPercent of reached) {
    const kind = thresholdPercent === 100 ? 'quota.exceeded' : 'quota.warning'
    const resetsAt = periodEnd(period)
    const data = quotaData({ plan: name, limit, used, thresholdPercent, resetsAt })
    await emit(trx, { accountId, kind, data, sandbox: false, now, random })
  }
  const last = reached.at(-1)
  if (last !== undefined) await noteWarned(trx, { accountId, period }, last)
}

/**
 * What a result costs, in credits: one for a definite answer that was found out anew. What could not be found
 * out, what was known already, and what is no address costs nothing.
 */
export function creditsFor({ verdict, cached }: Pick<Result, 'verdict' | 'cached'>): 0 | 1 {
  if (cached || !verdict.details.syntaxValid) return 0
  return toClass(verdict) === 'unknown' ? 0 : 1
}

const tallies = new WeakMap<Database, Map<Reason, number>>()

/** How often each reason was concluded by this process, without what was simulated: for who watches the service. */
export function verdictCounters(database: Database): Map<Reason, number> {
  const tally = tallies.get(database) ?? new Map<Reason, number>()
  tallies.set(database, tally)
  return tally
}

/** Counts what is entered; a commit that fails and is tried again counts twice. */
export function counterRows(database: Database, { entries, sandbox }: LedgerBatch): void {
  if (sandbox) return
  const tally = verdictCounters(database)
  for (const { result } of entries) {
    const { reason } = result.verdict
    tally.set(reason, (tally.get(reason) ?? 0) + 1)
  }
}
