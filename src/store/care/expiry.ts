import { sql } from 'kysely'
import type { Trx } from '../database.ts'

/** What grows with use and is of no use later; each removes at most `max` rows and gives how many. */
export type Expiry = (trx: Trx, before: number, max: number) => Promise<number>

/** Events that happened before a time, epoch ms, with all that is known of how they were carried. */
export const deleteEventsBefore: Expiry = async (trx, before, max) => {
  const { rows } = await sql<{ id: string }>`
    delete from event where id in (select id from event where created_at < ${before} limit ${max})
    returning id`.execute(trx)
  const ids = JSON.stringify(rows.map(({ id }) => id))
  await sql`delete from delivery where event_id in (select value from json_each(${ids}))`.execute(
    trx,
  )
  return rows.length
}

/** Answers to requests with an Idempotency-Key that came no later than a time, epoch ms: too old to be repeated. */
export const deleteReplaysBefore: Expiry = async (trx, before, max) => {
  const { numAffectedRows } = await sql`
    delete from replay where rowid in (select rowid from replay where created_at <= ${before} limit ${max})`.execute(
    trx,
  )
  return Number(numAffectedRows ?? 0)
}

/** Answers of mail servers that are kept no longer than until a time, epoch ms. */
export const forgetAnswersBefore: Expiry = async (trx, before, max) => {
  const { numAffectedRows } = await sql`
    delete from answer where rowid in (select rowid from answer where keep_until <= ${before} limit ${max})`.execute(
    trx,
  )
  return Number(numAffectedRows ?? 0)
}

/** What accounts used in days that began before a time, epoch ms, and that nobody holds credits of. */
export const deleteCreditsBefore: Expiry = async (trx, before, max) => {
  const { numAffectedRows } = await sql`
    delete from credit where rowid in (
      select rowid from credit where period_start < ${before} and held = 0 limit ${max})`.execute(
    trx,
  )
  return Number(numAffectedRows ?? 0)
}
