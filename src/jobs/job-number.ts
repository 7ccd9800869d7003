import { sql } from 'kysely'
import type { Database, Trx } from '../db/database.ts'
import { SECOND } from '../platform/clock.ts'
import type { Job } from './job-store.ts'

/** Numbers fit in 32 bits with a sign, the integers of many clients. */
export const JOB_NUMBER_MAX = 2 ** 31 - 1

/** Number 0; the seconds since then fit until the year 2094. */
const EPOCH = Date.UTC(2026, 0, 1)

/**
 * Gives a job a number that no other job of its account has or had, and returns it: the seconds
 * since 2026, or the next one if that is taken. Call it in a transaction of `write`: two at the same
 * time would get the same number.
 */
export async function assignJobNumber(
  trx: Trx,
  { id, account_id }: Pick<Job, 'id' | 'account_id'>,
  now: number,
): Promise<number> {
  const { latest } = await trx
    .selectFrom('job')
    .select(eb => eb.fn.max('number').as('latest'))
    .where('account_id', '=', account_id)
    .where('number', 'is not', null)
    .executeTakeFirstOrThrow()
  const number = Math.max(Number(latest ?? 0) + 1, Math.floor((now - EPOCH) / SECOND))
  await trx.updateTable('job').set({ number }).where('id', '=', id).execute()
  return number
}

/** Returns the ID of the job of an account with a number; null if there is none. */
export async function findJobId(
  { reader }: Pick<Database, 'reader'>,
  accountId: string,
  number: number,
): Promise<string | null> {
  const job = await reader
    .selectFrom('job')
    .select('id')
    .where('account_id', '=', accountId)
    .where('number', '=', number)
    // Written literally, so that the partial index is used.
    .where(sql<boolean>`number is not null`)
    .executeTakeFirst()
  return job?.id ?? null
}
