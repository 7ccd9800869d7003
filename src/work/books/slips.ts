import { settleCredits } from '../../store/account/credits.ts'
import { hasVerification } from '../../store/account/history.ts'
import { lockAccounts, takeHold } from '../../store/cluster/holds.ts'
import { type Database, type Trx, writeBeside } from '../../store/database.ts'
import { commitMark, wasCommitted } from '../../store/postgres/commit.ts'
import type { BooksParts, Hold, Settled } from './books.ts'
import { type Entries, type Entry, writeEntries } from './entries.ts'
import { tallyEntries } from './tally.ts'

/** What the books take later on: a verification, or a hold that goes back. */
export type Slip =
  | (Settled & { readonly at: number; readonly entry: Required<Entry> })
  | {
      readonly accountId: string
      readonly hold: Hold
      /** The mark of a transaction that settled it, if that was committed; null: there was none. */
      readonly unless: string | null
      readonly entry: null
    }

type Done = Extract<Slip, { at: number }>
type Back = Exclude<Slip, Done>

/**
 * Writes slips, one group at a time. A commit that failed may have been made nevertheless: from the second attempt on
 * that is looked up first.
 */
export function slipWriter(
  parts: BooksParts,
): (slips: readonly Slip[], attempt: number) => Promise<void> {
  const { database } = parts
  /** Of the last try, where the database can tell what became of it. */
  let mark: string | null = null
  return async (slips, attempt) => {
    const again = attempt > 1
    if (again && mark !== null && (await wasCommitted(database, mark))) return
    mark = null
    const due = await withoutSettled(database, slips)
    await writeBeside(database, async trx => {
      mark = await commitMark(trx)
      if (again && mark === null && (await isWritten(trx, slips))) return
      await writeSlips(trx, parts, due)
    })
  }
}

/** But for what goes back unless a transaction was committed, and it was. */
async function withoutSettled(database: Database, slips: readonly Slip[]): Promise<Slip[]> {
  const due: Slip[] = []
  for (const slip of slips) {
    const mark = isBack(slip) ? slip.unless : null
    if (mark === null || !(await wasCommitted(database, mark))) due.push(slip)
  }
  return due
}

async function writeSlips(trx: Trx, parts: BooksParts, slips: readonly Slip[]): Promise<void> {
  await lockAccounts(
    trx,
    slips.map(({ accountId }) => accountId),
  )
  for (const { at, ...entries } of entriesOf(slips.filter(isDone))) {
    tallyEntries(parts.database, entries)
    await writeEntries(trx, parts, entries, at)
  }
  for (const { accountId, hold } of backOf(slips.filter(isBack))) {
    const { period, amount, member = null } = hold
    const released = await takeHold(trx, { accountId, period, amount, member })
    await settleCredits(trx, { accountId, period, released, used: 0 })
  }
}

const isDone = (slip: Slip): slip is Done => slip.entry !== null
const isBack = (slip: Slip): slip is Back => slip.entry === null

/** SQLite does not tell; the first verification does. */
async function isWritten(trx: Trx, slips: readonly Slip[]): Promise<boolean> {
  const first = slips.find(isDone)
  if (first === undefined) return false
  const { accountId, sandbox, at, entry } = first
  return hasVerification(trx, { accountId, sandbox, createdAt: at, id: entry.id })
}

/** Verifications of the same origin together: what they cost is counted once for all of them. */
function entriesOf(done: readonly Done[]): (Entries & { at: number })[] {
  const groups = Map.groupBy(done, ({ accountId, keyId, source, sandbox, hold }) =>
    JSON.stringify([accountId, hold?.period ?? null, hold?.member ?? null, keyId, source, sandbox]),
  )
  return [...groups].sort(byKey).map(([, group]) => {
    const { accountId, keyId, source, sandbox, hold, at } = group[0] as Done
    const released = group.reduce((sum, slip) => sum + (slip.hold?.amount ?? 0), 0)
    const entries = group.map(({ entry }) => entry)
    return {
      ...{ accountId, keyId, source, sandbox, released, entries, at },
      ...{ jobId: null, period: hold?.period ?? null, member: hold?.member ?? null },
    }
  })
}

/** What goes back to the same credits together. */
function backOf(backs: readonly Back[]): Back[] {
  const groups = Map.groupBy(backs, ({ accountId, hold }) =>
    JSON.stringify([accountId, hold.period, hold.member ?? null]),
  )
  return [...groups].sort(byKey).map(([, group]) => {
    const first = group[0] as Back
    const amount = group.reduce((sum, { hold }) => sum + hold.amount, 0)
    return { ...first, hold: { ...first.hold, amount } }
  })
}

const byKey = ([a]: [string, unknown], [b]: [string, unknown]) => (a < b ? -1 : 1)
