import { type Database, type Trx, writeConcurrent } from '../../db/database.ts'
import { commitMark, wasCommitted } from '../../db/postgres/commit.ts'
import { settleCredits } from './credit-store.ts'
import { hasVerification } from './history.ts'
import { type LedgerBatch, postEntries, type VerificationEntry } from './ledger-entries.ts'
import { consumeReservation, lockAccounts } from './reservations.ts'
import type { Reservation, SettledVerification, UsageLedgerDeps } from './usage-ledger.ts'
import { counterRows } from './verdict-counters.ts'

/** What the books take later on: a verification, or a hold that goes back. */
export type LedgerEntry =
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
export function ledgerWriter(
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
