import type { Database, Trx } from '../../db/database.ts'
import type { Reason } from '../../engine/verdict/reason.ts'
import { type Result, toClass } from '../../engine/verdict/verdict.ts'
import type { Random } from '../../platform/random.ts'
import { quotaData } from '../../webhooks/event.ts'
import { emit } from '../../webhooks/event-store.ts'
import { accountIn } from '../account-store.ts'
import { findPlan, type Plan, periodEnd, periodStart } from '../plan.ts'
import type { CreditTable, VerificationSource } from '../tables.ts'
import { creditsFor, reachedThresholds } from './credit-rules.ts'
import {
  consumeReservation,
  lockCredit,
  readCredit,
  saveWarnedThreshold,
  settleCredits,
} from './credit-store.ts'
import { addHistory, type Verification } from './history.ts'
import { addUsage, type Usage } from './usage.ts'

export type VerificationEntry = {
  /** ID in the history, `ver_…`, if the client has it already. */
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
  /** Credit period of the reservation; null: the current one. */
  readonly period: number | null
  /** Credits that were reserved for these verifications and are released. */
  readonly released: number
  /**
   * The cluster member that holds the reservation. Null or omitted outside a cluster and for
   * reservations of a job.
   */
  readonly member?: string | null
  readonly entries: readonly VerificationEntry[]
}

type TransportDeps = {
  readonly database: Pick<Database, 'steadyClock'>
  readonly random: Random
  readonly plans: ReadonlyMap<string, Plan>
}

/**
 * Writes history, usage, credits and quota events. Sandbox verifications are written to the history
 * only.
 */
export async function postEntries(
  trx: Trx,
  deps: TransportDeps,
  batches: readonly LedgerBatch[],
  now: number,
): Promise<void> {
  await addHistory(
    trx,
    batches.flatMap(batch =>
      batch.entries.map(entry => toVerification(entry, batch, deps.random, now)),
    ),
  )
  const charged = batches.filter(({ sandbox }) => !sandbox)
  const credits: CreditTable[] = []
  // Lock order, wherever both are written: credits, by account and period, then usage.
  for (const charge of toCharges(charged, now)) {
    const credit = await settle(trx, charge)
    if (credit !== null && charge.used > 0) credits.push(credit)
  }
  await addUsage(
    trx,
    charged.flatMap(batch => toUsageRows(batch, now)),
  )
  for (const credit of credits) await emitQuotaEvents(trx, deps, credit, now)
}

/** The credits that batches of one account use and release. */
type Charge = {
  readonly accountId: string
  readonly period: number
  readonly member: string | null
  readonly used: number
  readonly released: number
}

/** Sums the credits by account, period and member, in the order in which they are locked. */
function toCharges(batches: readonly LedgerBatch[], now: number): Charge[] {
  const charges = new Map<string, Charge>()
  for (const { accountId, period: ownPeriod, member = null, released, entries } of batches) {
    const period = ownPeriod ?? periodStart(now)
    const used = entries.reduce((sum, { result }) => sum + creditsFor(result), 0)
    const key = JSON.stringify([accountId, period, member])
    const sum = charges.get(key) ?? { accountId, period, member, used: 0, released: 0 }
    charges.set(key, { ...sum, used: sum.used + used, released: sum.released + released })
  }
  return [...charges].sort(byKey).map(([, charge]) => charge)
}

/** Orders by the key: the order in which rows are locked. */
export const byKey = ([a]: [string, unknown], [b]: [string, unknown]) => (a < b ? -1 : 1)

async function settle(
  trx: Trx,
  { accountId, period, member, used, released: amount }: Charge,
): Promise<CreditTable | null> {
  if (used === 0 && amount === 0) return null
  const released = await consumeReservation(trx, { accountId, period, member, amount })
  return settleCredits(trx, { accountId, period, released, used })
}

/** Emits `quota.exceeded` for an account that was rejected for lack of credits, once per period. */
export async function emitQuotaExceeded(
  trx: Trx,
  deps: TransportDeps,
  { accountId, period, limit }: { accountId: string; period: number; limit: number },
  now: number,
): Promise<void> {
  await lockCredit(trx, { accountId, period })
  const credit = await readCredit(trx, accountId, period)
  // Reserved credits count as used for a new request.
  const used = credit.used + credit.held
  if (used >= limit) await emitQuotaEvents(trx, deps, { ...credit, used }, now)
}

/** 103 bits of entropy, as event IDs have. */
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
    account_id: o.accountId,
    key_id: o.keyId,
    email,
    valid: Number(verdict.valid),
    deliverable: Number(verdict.deliverable),
    risk_level: verdict.risk,
    reason: verdict.reason,
    class: toClass(verdict),
    cached: Number(cached),
    source: o.source,
    job_id: o.jobId,
    sandbox: Number(o.sandbox),
    created_at,
  }
}

function toUsageRows({ accountId, keyId, entries }: LedgerBatch, now: number): Usage[] {
  const byClass = new Map<string, Usage>()
  for (const { result } of entries) {
    const name = toClass(result.verdict)
    const usage = byClass.get(name) ?? {
      account_id: accountId,
      key_id: keyId,
      day: periodStart(now),
      class: name,
      verifications: 0,
      cached: 0,
      credits: 0,
    }
    usage.verifications++
    usage.cached += Number(result.cached)
    usage.credits += creditsFor(result)
    byClass.set(name, usage)
  }
  return [...byClass.values()]
}

/** Emits one event for each threshold reached, once per period. */
async function emitQuotaEvents(
  trx: Trx,
  { database, plans, random }: TransportDeps,
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
    const at = { now, dueAt: database.steadyClock.now() }
    await emit(trx, { accountId, kind, data, sandbox: false, ...at, random })
  }
  const last = reached.at(-1)
  if (last !== undefined) await saveWarnedThreshold(trx, { accountId, period }, last)
}

const counters = new WeakMap<Database, Map<Reason, number>>()

/** Counts the verdicts of this process by reason, without the sandbox, for the metrics. */
export function verdictCounters(database: Database): Map<Reason, number> {
  const counts = counters.get(database) ?? new Map<Reason, number>()
  counters.set(database, counts)
  return counts
}

/** Adds entries to the verdict counters. A commit that fails and is retried counts twice. */
export function countVerdicts(database: Database, { entries, sandbox }: LedgerBatch): void {
  if (sandbox) return
  const counts = verdictCounters(database)
  for (const { result } of entries) {
    const { reason } = result.verdict
    counts.set(reason, (counts.get(reason) ?? 0) + 1)
  }
}
