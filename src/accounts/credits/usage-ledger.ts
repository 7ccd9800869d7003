import {
  type Database,
  isStorageError,
  type Trx,
  writeAsyncCommit,
  writeConcurrent,
} from '../../db/database.ts'
import { commitMark, wasCommitted } from '../../db/postgres/commit.ts'
import { type AfterFailure, Batcher } from '../../platform/batcher.ts'
import { type Clock, SECOND } from '../../platform/clock.ts'
import { errorMessage } from '../../platform/error.ts'
import { type Log, writeLog } from '../../platform/log.ts'
import type { Random } from '../../platform/random.ts'
import { type Plan, periodStart } from '../plan.ts'
import type { VerificationSource } from '../tables.ts'
import { ACCOUNT_LOG } from '../telemetry.ts'
import {
  consumeReservation,
  lockAccounts,
  readCredit,
  reserveCredits,
  settleCredits,
} from './credit-store.ts'
import { hasVerification } from './history.ts'
import {
  byKey,
  countVerdicts,
  emitQuotaExceeded,
  type LedgerBatch,
  newVerificationId,
  postEntries,
  type VerificationEntry,
} from './ledger-entries.ts'
import { type Reservation, ReservationsInFlight } from './reservations.ts'

/** A single verification that ended with a result. */
export type SettledVerification = {
  readonly accountId: string
  readonly keyId: string
  readonly source: VerificationSource
  readonly sandbox: boolean
  /** Null if nothing was reserved, as in the sandbox. */
  readonly reservation: Reservation | null
  readonly entry: VerificationEntry
}

/** Fewer credits are left than a verification needs. */
export type Shortage = { readonly creditsLeft: number }

/** Records what accounts verified and what it cost: history, usage and credits. */
export interface UsageLedger {
  /**
   * Writes verifications in the transaction of their results: history, usage, credits, quota
   * events.
   */
  record(trx: Trx, ...batches: readonly LedgerBatch[]): Promise<void>
  /**
   * Reserves credits before a verification starts. Returns how many are left if they are too few.
   * Throws if the ledger cannot be written at present.
   */
  reserve(accountId: string, plan: Plan, amount: number): Promise<Reservation | Shortage>
  /** Emits `quota.exceeded` once per period if all credits are used or reserved. */
  refused(accountId: string, plan: Plan): Promise<void>
  /**
   * Writes a single verification in a batch with others. Resolves once it is durable. Rejects if it
   * cannot be written at present.
   */
  settle(settled: SettledVerification): Promise<void>
  /**
   * Releases the reservation of a verification that ended without a result, except if the
   * transaction with the mark `unless`, which settles it, turns out to be committed although it
   * failed.
   */
  giveBack(accountId: string, reservation: Reservation, unless?: string | null): void
  /** Ends a reservation that a transaction of the caller has settled. */
  settled(accountId: string, reservation: Reservation): void
  /** Reservations of this process that are not settled. */
  readonly inFlight: ReservationsInFlight
  /** Resolves once all entries so far are durable. */
  flushed(): Promise<void>
  stop(): Promise<void>
}

type UsageLedgerDeps = {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  /** Plans by name. */
  readonly plans: ReadonlyMap<string, Plan>
  /**
   * Returns the ID under which this process holds reservations; null or omitted outside a cluster.
   */
  readonly member?: () => string | null
}

/** A larger transaction would make other writers wait too long. */
const WRITE_MAX = 1_000
/**
 * While requests arrive, a transaction waits for this many entries: each commit waits for the disk,
 * which on SQLite blocks the event loop.
 */
const WRITE_MIN = 128
/**
 * A request is counted in its limits one turn of the event loop before it has an entry here: after
 * one quiet turn the next entries are often on their way.
 */
const QUIET_TURNS = 2
/** A full disk rarely recovers faster. */
const RETRY_MS = SECOND
/**
 * Failed writes after which callers get the error, about two seconds; the write is still retried.
 */
const AWAITED_TRIES = 3

function afterFailure(error: unknown, entries: number, tries: number): AfterFailure {
  if (isStorageError(error)) return tries < AWAITED_TRIES ? 'retry' : 'retry-unawaited'
  return entries > 1 ? 'split' : 'reject'
}

export function createUsageLedger(deps: UsageLedgerDeps): UsageLedger {
  const { database, clock, log, random } = deps
  const inFlight = new ReservationsInFlight()
  const end = (entries: readonly LedgerEntry[]) => {
    for (const { accountId, reservation } of entries) {
      if (reservation !== null) inFlight.remove(accountId, reservation)
    }
  }
  const writeEntries = ledgerWriter(deps)
  const ledgerEntries = new Batcher<LedgerEntry>({
    clock,
    sizeMin: WRITE_MIN,
    sizeMax: WRITE_MAX,
    quietTurns: QUIET_TURNS,
    retryMs: RETRY_MS,
    async run(entries, attempt) {
      await writeEntries(entries, attempt)
      end(entries)
    },
    onFailure(error, failed, tries) {
      const entries = failed.length
      const next = afterFailure(error, entries, tries)
      // The reservations of failed entries are released.
      if (next === 'reject') end(failed)
      const event = next === 'reject' ? ACCOUNT_LOG.ledgerEntriesLost : ACCOUNT_LOG.ledgerRetried
      writeLog(log, event, { entries, tries, why: errorMessage(error) })
      return next
    },
  })
  return {
    record(trx, ...batches) {
      for (const batch of batches) countVerdicts(database, batch)
      return postEntries(trx, deps, batches, clock.now())
    },
    async reserve(accountId, plan, amount) {
      if (ledgerEntries.fault !== null) throw ledgerEntries.fault
      const [period, limit] = [periodStart(clock.now()), plan.creditsPerDay]
      if (limit === null) return { period, amount: 0 }
      const member = deps.member?.() ?? null
      const reservation = member === null ? { period, amount } : { period, amount, member }
      inFlight.add(accountId, reservation)
      // An asynchronous commit is enough: if a power cut loses the reservation, the next start
      // would have released it anyway.
      const isReserved = await writeAsyncCommit(database, db =>
        reserveCredits(db, { accountId, period, amount, limit, member }),
      ).catch(error => {
        inFlight.remove(accountId, reservation)
        throw error
      })
      if (isReserved) return reservation
      inFlight.remove(accountId, reservation)
      return { creditsLeft: await reportExhausted(deps, { accountId, period, limit }) }
    },
    async refused(accountId, { creditsPerDay: limit }) {
      if (limit === null) return
      await reportExhausted(deps, { accountId, period: periodStart(clock.now()), limit })
    },
    settle(settled) {
      const { result, id = newVerificationId(random) } = settled.entry
      // A sandbox verification made no reservation, so the fault was not checked before.
      if (settled.reservation === null && ledgerEntries.fault !== null)
        return Promise.reject(ledgerEntries.fault)
      const { accountId, keyId, source, sandbox, reservation } = settled
      const entry = { id, result }
      const at = clock.now()
      return ledgerEntries.add({ accountId, keyId, source, sandbox, reservation, at, entry })
    },
    giveBack(accountId, reservation, unless = null) {
      if (reservation.amount > 0)
        void ledgerEntries.add({ accountId, reservation, unless, entry: null })
    },
    settled: (accountId, reservation) => inFlight.remove(accountId, reservation),
    inFlight,
    flushed: () => ledgerEntries.flushed(),
    async stop() {
      const lost = await ledgerEntries.close()
      if (lost > 0) writeLog(log, ACCOUNT_LOG.ledgerEntriesLost, { entries: lost })
    },
  }
}

/**
 * Emits `quota.exceeded`, at most once per period, if all credits are used or reserved. The request
 * is rejected even if the event cannot be written. Returns how many credits are left.
 */
async function reportExhausted(
  deps: UsageLedgerDeps,
  o: { accountId: string; period: number; limit: number },
): Promise<number> {
  const { used, held, warned } = await readCredit(deps.database, o.accountId, o.period)
  const left = Math.max(0, o.limit - used - held)
  if (warned >= 100 || left > 0) return left
  try {
    await writeConcurrent(deps.database, trx => emitQuotaExceeded(trx, deps, o, deps.clock.now()))
  } catch (error) {
    writeLog(deps.log, ACCOUNT_LOG.quotaEventLost, { why: errorMessage(error) })
  }
  return left
}

/** An entry of the ledger: a verification to settle, or a reservation to release. */
type LedgerEntry =
  | (SettledVerification & { readonly at: number; readonly entry: Required<VerificationEntry> })
  | {
      readonly accountId: string
      readonly reservation: Reservation
      /** The mark of the transaction that may have settled it; null: none. */
      readonly unless: string | null
      readonly entry: null
    }

type Settlement = Extract<LedgerEntry, { at: number }>
type Release = Exclude<LedgerEntry, Settlement>

/**
 * Writes entries, one batch at a time. A commit that failed may have succeeded on the server: each
 * retry checks that first.
 */
function ledgerWriter(
  deps: UsageLedgerDeps,
): (ledgerEntries: readonly LedgerEntry[], attempt: number) => Promise<void> {
  const { database } = deps
  /** Commit mark of the last attempt, if the database supports it. */
  let mark: string | null = null
  return async (ledgerEntries, attempt) => {
    const isRetry = attempt > 1
    // A standby that took over may have given the mark to another transaction.
    const isCommitted = isRetry && mark !== null && (await wasCommitted(database, mark))
    if (isCommitted && (await isWritten(database.db, ledgerEntries)) !== false) return
    const isUnmarked = mark === null
    mark = null
    const due = await dropSettled(database, ledgerEntries)
    await writeConcurrent(database, async trx => {
      mark = await commitMark(trx)
      if (isRetry && isUnmarked && (await isWritten(trx, ledgerEntries)) === true) return
      await writeLedgerEntries(trx, deps, due)
    })
  }
}

/** Drops releases of reservations that a committed transaction has settled. */
async function dropSettled(
  database: Database,
  ledgerEntries: readonly LedgerEntry[],
): Promise<LedgerEntry[]> {
  const due: LedgerEntry[] = []
  for (const entry of ledgerEntries) {
    const mark = isRelease(entry) ? entry.unless : null
    if (mark === null || !(await wasCommitted(database, mark))) due.push(entry)
  }
  return due
}

async function writeLedgerEntries(
  trx: Trx,
  deps: UsageLedgerDeps,
  ledgerEntries: readonly LedgerEntry[],
): Promise<void> {
  await lockAccounts(
    trx,
    ledgerEntries.map(({ accountId }) => accountId),
  )
  for (const { at, ...entries } of groupSettlements(ledgerEntries.filter(isSettlement))) {
    countVerdicts(deps.database, entries)
    await postEntries(trx, deps, [entries], at)
  }
  for (const { accountId, reservation } of groupReleases(ledgerEntries.filter(isRelease))) {
    const { period, amount, member = null } = reservation
    const released = await consumeReservation(trx, { accountId, period, amount, member })
    await settleCredits(trx, { accountId, period, released, used: 0 })
  }
}

const isSettlement = (entry: LedgerEntry): entry is Settlement => entry.entry !== null
const isRelease = (entry: LedgerEntry): entry is Release => entry.entry === null

/** Whether a batch was written, which its first verification shows; null if it has none. */
async function isWritten(
  db: Database['db'],
  ledgerEntries: readonly LedgerEntry[],
): Promise<boolean | null> {
  const first = ledgerEntries.find(isSettlement)
  if (first === undefined) return null
  const { accountId, sandbox, at, entry } = first
  return hasVerification(db, { accountId, sandbox, createdAt: at, id: entry.id })
}

/** Groups verifications of the same origin, so that their cost is written once per group. */
function groupSettlements(settlements: readonly Settlement[]): (LedgerBatch & { at: number })[] {
  const groups = Map.groupBy(settlements, ({ accountId, keyId, source, sandbox, reservation }) =>
    JSON.stringify([
      accountId,
      reservation?.period ?? null,
      reservation?.member ?? null,
      keyId,
      source,
      sandbox,
    ]),
  )
  return [...groups].sort(byKey).map(([, group]) => {
    const { accountId, keyId, source, sandbox, reservation, at } = group[0] as Settlement
    const released = group.reduce((sum, entry) => sum + (entry.reservation?.amount ?? 0), 0)
    const entries = group.map(({ entry }) => entry)
    return {
      accountId,
      keyId,
      source,
      sandbox,
      released,
      entries,
      at,
      jobId: null,
      period: reservation?.period ?? null,
      member: reservation?.member ?? null,
    }
  })
}

/** Groups releases for the same credits. */
function groupReleases(releases: readonly Release[]): Release[] {
  const groups = Map.groupBy(releases, ({ accountId, reservation }) =>
    JSON.stringify([accountId, reservation.period, reservation.member ?? null]),
  )
  return [...groups].sort(byKey).map(([, group]) => {
    const first = group[0] as Release
    const amount = group.reduce((sum, { reservation }) => sum + reservation.amount, 0)
    return { ...first, reservation: { ...first.reservation, amount } }
  })
}
