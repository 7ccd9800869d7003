import { type Plan, periodStart } from '../../account/plan.ts'
import { type AfterFailure, Batcher } from '../../base/batcher.ts'
import { type Clock, SECOND } from '../../base/clock.ts'
import { messageOf } from '../../base/error.ts'
import type { Log } from '../../base/log.ts'
import type { Random } from '../../base/random.ts'
import { holdCredits, readCredit } from '../../store/account/credits.ts'
import {
  type Database,
  isOfStorage,
  type Trx,
  writeBeside,
  writeLoosely,
} from '../../store/database.ts'
import type { JobType } from '../../store/schema.ts'
import {
  type Entries,
  type Entry,
  newVerificationId,
  tellExhausted,
  writeEntries,
} from './entries.ts'
import { type Slip, slipWriter } from './slips.ts'
import { tallyEntries } from './tally.ts'

export type { Entry } from './entries.ts'

/** Credits that are set aside for what is under way. */
export type Hold = {
  /** Of the day that it began in, epoch ms, however late it is settled. */
  readonly period: number
  /** 0 where the plan knows no limit: nothing need be set aside then. */
  readonly amount: number
  /** The member of the cluster that holds it: with its end it goes back. Left out: there is no cluster. */
  readonly member?: string
}

/** A single verification that has ended with a result. */
export type Settled = {
  readonly accountId: string
  readonly keyId: string
  readonly source: JobType
  readonly sandbox: boolean
  /** Null where nothing was set aside, as in the sandbox. */
  readonly hold: Hold | null
  readonly entry: Entry
}

/** What accounts did and what it cost: history, usage and credits. */
export interface Books {
  /** Writes verifications in the transaction of their results: history, usage, credits, quota events. */
  record(trx: Trx, entries: Entries): Promise<void>
  /** Sets credits aside before anybody is asked; null: they are used up. Throws when what was done cannot be written down. */
  hold(accountId: string, plan: Plan, amount: number): Promise<Hold | null>
  /** Tells an account once in a period that it was refused, when nothing is left that is not set aside. */
  refused(accountId: string, plan: Plan): Promise<void>
  /** Writes a single verification, with others of its turn; resolves when it is durable. Rejects when it cannot be written for now. */
  settle(settled: Settled): Promise<void>
  /**
   * A verification ended without a result: what was set aside for it goes back. `unless`: but where the transaction of
   * this mark, which settles it and failed, was committed all the same.
   */
  giveBack(accountId: string, hold: Hold, unless?: string | null): void
  /** Resolves when all that was taken is durable. */
  flushed(): Promise<void>
  stop(): Promise<void>
}

export type BooksParts = {
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
  if (isOfStorage(error)) return tries < AWAITED_TRIES ? 'retry' : 'retry-unawaited'
  return entries > 1 ? 'split' : 'reject'
}

export function createBooks(parts: BooksParts): Books {
  const { database, clock, log, random } = parts
  const slips = new Batcher<Slip>({
    ...{ clock, sizeMax: WRITE_MAX, retryMs: RETRY_MS, run: slipWriter(parts) },
    onFailure(error, { length: entries }, tries) {
      const next = afterFailure(error, entries, tries)
      const said =
        next === 'reject' ? 'books: not written, lost' : 'books: not written, tried again'
      log.error(said, { entries, tries, why: messageOf(error) })
      return next
    },
  })
  return {
    record(trx, entries) {
      tallyEntries(database, entries)
      return writeEntries(trx, parts, entries, clock.now())
    },
    async hold(accountId, plan, amount) {
      if (slips.fault !== null) throw slips.fault
      const [period, limit] = [periodStart(clock.now()), plan.creditsPerDay]
      if (limit === null) return { period, amount: 0 }
      const member = parts.member?.() ?? null
      // A hold that a power cut undoes is one that the next start would give back.
      const isHeld = await writeLoosely(database, db =>
        holdCredits(db, { accountId, period, amount, limit, member }),
      )
      if (isHeld) return member === null ? { period, amount } : { period, amount, member }
      await refuse(parts, { accountId, period, limit })
      return null
    },
    async refused(accountId, { creditsPerDay: limit }) {
      if (limit === null) return
      await refuse(parts, { accountId, period: periodStart(clock.now()), limit })
    },
    async settle(settled) {
      const { result, id = newVerificationId(random) } = settled.entry
      // What is simulated was let in without a look at the disk.
      if (settled.hold === null && slips.fault !== null) throw slips.fault
      await slips.add({ ...settled, at: clock.now(), entry: { id, result } })
    },
    giveBack(accountId, hold, unless = null) {
      if (hold.amount > 0) void slips.add({ accountId, hold, unless, entry: null })
    },
    flushed: () => slips.flushed(),
    async stop() {
      const lost = await slips.close()
      if (lost > 0) log.error('books: not written, lost', { entries: lost })
    },
  }
}

/** An account that is refused again and again writes nothing for it. A refusal stays one where it cannot be told of. */
async function refuse(
  parts: BooksParts,
  o: { accountId: string; period: number; limit: number },
): Promise<void> {
  const { used, held, warned } = await readCredit(parts.database, o.accountId, o.period)
  if (warned >= 100 || used + held < o.limit) return
  try {
    await writeBeside(parts.database, trx => tellExhausted(trx, parts, o, parts.clock.now()))
  } catch (error) {
    parts.log.warn('books: used up, and nobody told', { why: messageOf(error) })
  }
}
