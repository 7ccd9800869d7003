import { sql, type Transaction } from 'kysely'
import { lockCredit, lowerHold, settleCredits } from '../accounts/credits/credit-store.ts'
import type { ReservationsInFlight } from '../accounts/credits/reservations.ts'
import type { UsageLedger } from '../accounts/credits/usage-ledger.ts'
import { type Database, write } from '../db/database.ts'
import type { Reader } from '../db/reader.ts'
import type { Schema } from '../db/schema.ts'
import { locking } from '../db/sql-dialect.ts'
import { SECOND } from '../platform/clock.ts'
import { type Log, writeLog } from '../platform/log.ts'
import { type Loop, startLoop } from '../platform/loop.ts'
import type { JobTable } from './tables.ts'
import { JOB_LOG } from './telemetry.ts'

/** Releases the remaining credit reservation of a job on which no more work is done. */
export async function releaseReservation(
  trx: Transaction<Schema>,
  { id }: Pick<JobTable, 'id'>,
): Promise<void> {
  const job = await trx
    .selectFrom('job')
    .select(['account_id', 'credit_period', 'held'])
    .where('id', '=', id)
    .executeTakeFirst()
  if (job === undefined || job.account_id === null || job.credit_period === null) return
  if (job.held === 0) return
  const { account_id: accountId, credit_period: period, held: released } = job
  await settleCredits(trx, { accountId, period, released, used: 0 })
  await trx.updateTable('job').set({ held: 0 }).where('id', '=', id).execute()
}

/** The reservations of a process that are not settled. */
type OwnReservations = {
  /** Its member ID in the cluster; null outside a cluster. */
  readonly member: string | null
  readonly inFlight: Pick<ReservationsInFlight, 'amount'>
}

/** At the start of a process: what it had in flight before was lost. */
const NO_RESERVATIONS: OwnReservations = { member: null, inFlight: { amount: () => 0 } }

/**
 * Releases credits that are held for nothing: only open jobs, the verifications in flight of this
 * process and the other members of the cluster hold any. Returns how many were released.
 *
 * A process adds a verification to those in flight before it reserves credits, and removes it after
 * they are settled, so it never has fewer than the database.
 */
export async function releaseOrphanedReservations(
  trx: Transaction<Schema>,
  own: OwnReservations = NO_RESERVATIONS,
): Promise<number> {
  // Locked first, or concurrent reservations would be lost.
  await locking(trx, trx.selectFrom('credit').select('account_id').where('held', '>', 0))
    .orderBy('account_id')
    .orderBy('period_start')
    .execute()
  await sql`
    delete from hold where not exists (select 1 from member where id = hold.member_id)`.execute(trx)
  if (own.member !== null) await reduceHolds(trx, own.member, own)
  let released = 0
  for (const { accountId, period, amount } of await listOrphaned(trx, own)) {
    await settleCredits(trx, { accountId, period, released: amount, used: 0 })
    released += amount
  }
  return released
}

/** Reduces what a member holds to what it has in flight. */
async function reduceHolds(
  trx: Transaction<Schema>,
  member: string,
  { inFlight }: OwnReservations,
): Promise<void> {
  for (const { accountId, period } of await listHolds(trx, member)) {
    // From now on, no reservation or settlement changes what is held.
    await lockCredit(trx, { accountId, period })
    const rest = inFlight.amount(accountId, period, member)
    await lowerHold(trx, { member, accountId, period }, rest)
  }
}

/** Credits of an account that are held. */
type Hold = { readonly accountId: string; readonly period: number; readonly amount: number }

/** Lists what a member holds, in the order in which credits are locked. */
const listHolds = (db: Reader, member: string): Promise<Hold[]> =>
  db
    .selectFrom('hold')
    .select(['account_id as accountId', 'period_start as period', 'amount'])
    .where('member_id', '=', member)
    .orderBy('account_id')
    .orderBy('period_start')
    .execute()

/** Lists held credits that neither jobs nor members nor verifications in flight account for. */
async function listOrphaned(db: Reader, own: OwnReservations): Promise<Hold[]> {
  const { rows } = await sql<Hold>`
    select account_id as "accountId", period_start as period, held
      - coalesce((
        select sum(job.held) from job where job.account_id = credit.account_id
          and job.credit_period = credit.period_start and job.finished_at is null), 0)
      - coalesce((
        select sum(hold.amount) from hold where hold.account_id = credit.account_id
          and hold.period_start = credit.period_start), 0) as amount
    from credit where held > 0`.execute(db)
  return rows.flatMap(({ accountId, period, amount: held }) => {
    // In a cluster the holds of the members include them.
    const reserved = own.member === null ? own.inFlight.amount(accountId, period, null) : 0
    const amount = Number(held) - reserved
    return amount > 0 ? [{ accountId, period, amount }] : []
  })
}

type ReservationCheckDeps = {
  readonly database: Database
  readonly ledger: Pick<UsageLedger, 'inFlight'>
  /** Returns the member ID of this process; null outside a cluster. */
  readonly member: () => string | null
  readonly log: Log
}

/**
 * A reservation is orphaned if its acknowledgment was lost, as in a failover: rare, but it would
 * hold credits until the end of the process.
 */
const CHECK_INTERVAL_MS = 10 * SECOND

/** Releases orphaned reservations at intervals. */
export const startReservationCheck = (deps: ReservationCheckDeps): Loop =>
  startLoop({
    failed: JOB_LOG.reservationCheckFailed,
    clock: deps.database.clock,
    log: deps.log,
    everyMs: CHECK_INTERVAL_MS,
    startAfterMs: CHECK_INTERVAL_MS,
    async run() {
      const released = await checkReservations(deps)
      if (released > 0) writeLog(deps.log, JOB_LOG.creditsReleased, { released })
    },
  })

/** Releases orphaned reservations, if there are some. Returns how many credits were released. */
async function checkReservations({
  database,
  ledger,
  member,
}: ReservationCheckDeps): Promise<number> {
  const own = { member: member(), inFlight: ledger.inFlight }
  if (!(await hasOrphaned(database.reader, own))) return 0
  return write(database, trx => releaseOrphanedReservations(trx, own))
}

/** Looks without a lock: what it finds may be gone, and what it misses is found the next time. */
async function hasOrphaned(db: Reader, own: OwnReservations): Promise<boolean> {
  const held = await db.selectFrom('credit').select('held').where('held', '>', 0).limit(1).execute()
  if (held.length === 0) return false
  if (own.member === null) return (await listOrphaned(db, own)).length > 0
  const { member, inFlight } = own
  const isReduced = (await listHolds(db, member)).some(
    ({ accountId, period, amount }) => inFlight.amount(accountId, period, member) < amount,
  )
  return isReduced || (await listOrphaned(db, own)).length > 0
}
