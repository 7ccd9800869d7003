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
import type { Log } from '../../platform/log.ts'
import type { Random } from '../../platform/random.ts'
import { type Plan, periodStart } from '../plan.ts'
import type { VerificationSource } from '../tables.ts'
import { readCredit, reserveCredits, settleCredits } from './credit-store.ts'
import { hasVerification } from './history.ts'
import {
  counterRows,
  emitQuotaExceeded,
  type LedgerBatch,
  newVerificationId,
  postEntries,
  type VerificationEntry,
} from './ledger-entries.ts'
import { consumeReservation, lockAccounts } from './reservations.ts'

export type { VerificationEntry as Entry } from './ledger-entries.ts'

/** Credits that are set aside for what is under way. */
export type Reservation = {
  /** Of the day that it began in, epoch ms, however late it is settled. */
  readonly period: number
  /** 0 where the plan knows no limit: nothing need be set aside then. */
  readonly amount: number
  /** The member of the cluster that holds it: with its end it goes back. Left out: there is no cluster. */
  readonly member?: string
}

/** A single verification that has ended with a result. */
export type SettledVerification = {
  readonly accountId: string
  readonly keyId: string
  readonly source: VerificationSource
  readonly sandbox: boolean
  /** Null where nothing was set aside, as in the sandbox. */
  readonly reservation: Reservation | null
  readonly entry: VerificationEntry
}

/** What accounts did and what it cost: history, usage and credits. */
export interface UsageLedger {
  /** Writes verifications in the transaction of their results: history, usage, credits, quota events. */
  record(trx: Trx, entries: LedgerBatch): Promise<void>
  /** Sets credits aside before anybody is asked; null: they are used up. Throws when what was done cannot be written down. */
  reserve(accountId: string, plan: Plan, amount: number): Promise<Reservation | null>
  /** Tells an account once in a period that it was refused, when nothing is left that is not set aside. */
  refused(accountId: string, plan: Plan): Promise<void>
  /** Writes a single verification, with others of its turn; resolves when it is durable. Rejects when it cannot be written for now. */
  settle(settled: SettledVerification): Promise<void>
  /**
   * A verification ended without a result: what was set aside for it goes back. `unless`: but where the transaction of
   * this mark, which settles it and failed, was committed all the same.
   */
  giveBack(accountId: string, reservation: Reservation, unless?: string | null): void
  /** Resolves when all that was taken is durable. */
  flushed(): Promise<void>
  stop(): Promise<void>
}

export type UsageLedgerDeps = {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  /** By name. */
  readonly plans: ReadonlyMap<string, Plan>
  /** As which member of the cluster this process holds credits; null, or left out: there is no cluster. */
  readonly member?: () => string | null
}

/** More in one transaction would keep other writers waiting. */
const WRITE_MAX = 1_000
/** A full disk is seldom full for long, and need not be asked more often. */
const RETRY_MS = SECOND
/** After so many failed writes, about two seconds, callers get the error; the write is still retried. */
const AWAITED_TRIES = 3

function afterFailure(error: unknown, entries: number, tries: number): AfterFailure {
  if (isStorageError(error)) return tries < AWAITED_TRIES ? 'retry' : 'retry-unawaited'
  return entries > 1 ? 'split' : 'reject'
}

export function createUsageLedger(deps: UsageLedgerDeps): UsageLedger {
  const { database, clock, log, random } = deps
  const ledgerEntries = new Batcher<LedgerEntry>({
    ...{ clock, sizeMax: WRITE_MAX, retryMs: RETRY_MS, run: ledgerWriter(deps) },
    onFailure(error, { length: entries }, tries) {
      const next = afterFailure(error, entries, tries)
      const said =
        next === 'reject' ? 'books: not written, lost' : 'books: not written, tried again'
      log.error(said, { entries, tries, why: errorMessage(error) })
      return next
    },
  })
  return {
    record(trx, entries) {
      counterRows(database, entries)
      return postEntries(trx, deps, entries, clock.now())
    },
    async reserve(accountId, plan, amount) {
      if (ledgerEntries.fault !== null) throw ledgerEntries.fault
      const [period, limit] = [periodStart(clock.now()), plan.creditsPerDay]
      if (limit === null) return { period, amount: 0 }
      const member = deps.member?.() ?? null
      // A hold that a power cut undoes is one that the next start would give back.
      const isReserved = await writeAsyncCommit(database, db =>
        reserveCredits(db, { accountId, period, amount, limit, member }),
      )
      if (isReserved) return member === null ? { period, amount } : { period, amount, member }
      await refuse(deps, { accountId, period, limit })
      return null
    },
    async refused(accountId, { creditsPerDay: limit }) {
      if (limit === null) return
      await refuse(deps, { accountId, period: periodStart(clock.now()), limit })
    },
    async settle(settled) {
      const { result, id = newVerificationId(random) } = settled.entry
      // What is simulated was let in without a look at the disk.
      if (settled.reservation === null && ledgerEntries.fault !== null) throw ledgerEntries.fault
      await ledgerEntries.add({ ...settled, at: clock.now(), entry: { id, result } })
    },
    giveBack(accountId, reservation, unless = null) {
      if (reservation.amount > 0)
        void ledgerEntries.add({ accountId, reservation, unless, entry: null })
    },
    flushed: () => ledgerEntries.flushed(),
    async stop() {
      const lost = await ledgerEntries.close()
      if (lost > 0) log.error('books: not written, lost', { entries: lost })
    },
  }
}

/** An account that is refused again and again writes nothing for it. A refusal stays one where it cannot be told of. */
async function refuse(
  deps: UsageLedgerDeps,
  o: { accountId: string; period: number; limit: number },
): Promise<void> {
  const { used, held, warned } = await readCredit(deps.database, o.accountId, o.period)
  if (warned >= 100 || used + held < o.limit) return
  try {
    await writeConcurrent(deps.database, trx => emitQuotaExceeded(trx, deps, o, deps.clock.now()))
  } catch (error) {
    deps.log.warn('books: used up, and nobody told', { why: errorMessage(error) })
  }
}

/** What the books take later on: a verification, or a hold that goes back. */
type LedgerEntry =
  | (SettledVerification & { readonly at: number; readonly entry: Required<VerificationEntry> })
  | {
      readonly accountId: string
      readonly reservation: Reservation
      /** The mark of a transaction that settled it, if that was committed; null: there was none. */
      readonly unless: string | null
      readonly entry: null
    }

type Done = Extract<LedgerEntry, { at: number }>
type Back = Exclude<LedgerEntry, Done>

/**
 * Writes slips, one group at a time. A commit that failed may have been made nevertheless: from the second attempt on
 * that is looked up first.
 */
function ledgerWriter(
  deps: UsageLedgerDeps,
): (ledgerEntries: readonly LedgerEntry[], attempt: number) => Promise<void> {
  const { database } = deps
  /** Of the last try, where the database can tell what became of it. */
  let mark: string | null = null
  return async (ledgerEntries, attempt) => {
    const again = attempt > 1
    if (again && mark !== null && (await wasCommitted(database, mark))) return
    mark = null
    const due = await withoutSettled(database, ledgerEntries)
    await writeConcurrent(database, async trx => {
      mark = await commitMark(trx)
      if (again && mark === null && (await isWritten(trx, ledgerEntries))) return
      await writeLedgerEntries(trx, deps, due)
    })
  }
}

/** But for what goes back unless a transaction was committed, and it was. */
async function withoutSettled(
  database: Database,
  ledgerEntries: readonly LedgerEntry[],
): Promise<LedgerEntry[]> {
  const due: LedgerEntry[] = []
  for (const entry of ledgerEntries) {
    const mark = isBack(entry) ? entry.unless : null
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
  for (const { at, ...entries } of entriesOf(ledgerEntries.filter(isDone))) {
    counterRows(deps.database, entries)
    await postEntries(trx, deps, entries, at)
  }
  for (const { accountId, reservation } of backOf(ledgerEntries.filter(isBack))) {
    const { period, amount, member = null } = reservation
    const released = await consumeReservation(trx, { accountId, period, amount, member })
    await settleCredits(trx, { accountId, period, released, used: 0 })
  }
}

const isDone = (entry: LedgerEntry): entry is Done => entry.entry !== null
const isBack = (entry: LedgerEntry): entry is Back => entry.entry === null

/** SQLite does not tell; the first verification does. */
async function isWritten(trx: Trx, ledgerEntries: readonly LedgerEntry[]): Promise<boolean> {
  const first = ledgerEntries.find(isDone)
  if (first === undefined) return false
  const { accountId, sandbox, at, entry } = first
  return hasVerification(trx, { accountId, sandbox, createdAt: at, id: entry.id })
}

/** Verifications of the same origin together: what they cost is counted once for all of them. */
function entriesOf(done: readonly Done[]): (LedgerBatch & { at: number })[] {
  const groups = Map.groupBy(done, ({ accountId, keyId, source, sandbox, reservation }) =>
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
    const { accountId, keyId, source, sandbox, reservation, at } = group[0] as Done
    const released = group.reduce((sum, entry) => sum + (entry.reservation?.amount ?? 0), 0)
    const entries = group.map(({ entry }) => entry)
    return {
      ...{ accountId, keyId, source, sandbox, released, entries, at },
      ...{ jobId: null, period: reservation?.period ?? null, member: reservation?.member ?? null },
    }
  })
}

/** What goes back to the same credits together. */
function backOf(backs: readonly Back[]): Back[] {
  const groups = Map.groupBy(backs, ({ accountId, reservation }) =>
    JSON.stringify([accountId, reservation.period, reservation.member ?? null]),
  )
  return [...groups].sort(byKey).map(([, group]) => {
    const first = group[0] as Back
    const amount = group.reduce((sum, { reservation }) => sum + reservation.amount, 0)
    return { ...first, reservation: { ...first.reservation, amount } }
  })
}

const byKey = ([a]: [string, unknown], [b]: [string, unknown]) => (a < b ? -1 : 1)
