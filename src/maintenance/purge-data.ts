import { sql } from 'kysely'
import { type Database, secureDelete, type Trx, write } from '../db/database.ts'
import type { PersonalData, PersonalItem } from './personal-data.ts'

export {
  findPersonalData as tracesOf,
  NO_PERSONAL_DATA as NO_TRACES,
  type PersonalData as Traces,
} from './personal-data.ts'

/** How many remembered answers are kept no longer than until a time, epoch ms. */
export async function countAnswersUntil({ db }: Database, until: number): Promise<number> {
  const { count } = await db
    .selectFrom('answer')
    .select(eb => eb.fn.countAll<number>().as('count'))
    .where('keep_until', '<=', until)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** How many rows of a table were made before a time, epoch ms. */
export async function countBefore(
  { db }: Database,
  table: 'verification' | 'replay',
  before: number,
): Promise<number> {
  const { count } = await db
    .selectFrom(table)
    .select(eb => eb.fn.countAll<number>().as('count'))
    .where('created_at', '<', before)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** How many deliveries of events would go: those kept long enough, those that waited long enough for a webhook that is off, and those of deleted ones. */
export async function countSpentDeliveries(
  { db }: Database,
  o: { readonly expiredBy: number; readonly dueBy: number },
): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from delivery left join webhook on webhook.id = delivery.webhook_id
    where delivery.expires_at <= ${o.expiredBy} or webhook.deleted_at is not null
      or (webhook.active = 0 and delivery.due_at <= ${o.dueBy}
        and delivery.state in ('pending', 'retry_scheduled'))`.execute(db)
  return Number(rows[0]?.count ?? 0)
}

/**
 * Empties the rows of an address: the job keeps its counts and the history its verdicts, each row its place and
 * class, and nothing of the address stays. Its answers go, and the events that tell of it.
 */
export async function erasePersonalData(database: Database, traces: PersonalData): Promise<void> {
  await secureDelete(database)
  await write(database, async trx => {
    for (const key of traces.answers) {
      await trx.deleteFrom('answer').where('address_key', '=', key).execute()
    }
    await eraseItems(trx, traces.items)
    for (const { account_id, sandbox, created_at, id } of traces.verifications) {
      await sql`
        update verification set email = '' where account_id = ${account_id} and sandbox = ${sandbox}
          and created_at = ${created_at} and id = ${id}`.execute(trx)
    }
    for (const id of traces.events) {
      await sql`
        delete from attempt
        where delivery_id in (select id from delivery where event_id = ${id})`.execute(trx)
      await trx.deleteFrom('delivery').where('event_id', '=', id).execute()
      await trx.deleteFrom('event').where('id', '=', id).execute()
    }
  })
}

async function eraseItems(trx: Trx, items: readonly PersonalItem[]): Promise<void> {
  for (const { jobId, position } of items) {
    const { cells } = await trx
      .selectFrom('item')
      .select('cells')
      .where('job_id', '=', jobId)
      .where('position', '=', position)
      .executeTakeFirstOrThrow()
    // The check of the schema wants a result where an item is done: there it is JSON's null.
    await sql`
      update item set text = '', dedupe_key = ${`erased ${position}`}, operator = null,
        backup_operator = null, domain = null,
        route = null, accepted = null, result = case when result is null then null else 'null' end,
        cells = ${cells === null ? null : emptied(cells)}
      where job_id = ${jobId} and position = ${position}`.execute(trx)
  }
}

/** A row of a file keeps as many cells as it had. */
function emptied(cells: string): string {
  const came: unknown = JSON.parse(cells)
  return JSON.stringify(Array.isArray(came) ? came.map(() => '') : '')
}
