import { type RawBuilder, sql } from 'kysely'
import type { VerificationTable } from '../accounts/tables.ts'
import { type Database, secureDelete, type Trx, write } from '../db/database.ts'
import { contains } from '../db/sql-dialect.ts'
import type { JobState, JobType } from '../jobs/tables.ts'
import { eachPage } from './pages.ts'

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

/** Everything about one address. */
export type PersonalData = {
  readonly answers: readonly string[]
  readonly items: readonly PersonalItem[]
  /** In the history. */
  readonly verifications: readonly PersonalVerification[]
  /** Events that tell of it, by ID. */
  readonly events: readonly string[]
}

type PersonalItem = {
  readonly jobId: string
  readonly position: number
  readonly finished: boolean
  /** Whether its list was submitted to the service, which works on it by itself. */
  readonly ofService: boolean
}

type PersonalVerification = Pick<VerificationTable, 'account_id' | 'sandbox' | 'created_at' | 'id'>

export const NO_PERSONAL_DATA: PersonalData = {
  answers: [],
  items: [],
  verifications: [],
  events: [],
}

/**
 * Where an address is written down, whatever the case of its letters: under its key, or inside another text,
 * such as a cell that is no address, or a suggestion. Reads all there is, page by page.
 */
export async function findPersonalData(
  { db }: Database,
  o: { key: string; text: string },
): Promise<PersonalData> {
  const sought = [...new Set([o.key.toLowerCase(), o.text.toLowerCase()])]
  const [key = ''] = sought
  const holds: Contains = column =>
    sql.join(
      sought.map(text => contains(db, sql`lower(${sql.ref(column)})`, sql`${text}`)),
      sql` or `,
    )
  const isAbout = (...places: (string | null)[]) =>
    places.some(place => sought.some(text => containsExactly(place?.toLowerCase() ?? '', text)))
  const answers = await sql<{ address_key: string }>`
    select address_key from answer where lower(address_key) = ${key}`.execute(db)
  const items = await candidates(db, key, holds)
  const verifications = await eachPage(db, 'verification', async within => {
    const { rows } = await sql<PersonalVerification & { email: string }>`
      select account_id, sandbox, created_at, id, email from verification
      where ${within} and (${holds('email')})`.execute(db)
    return rows
  })
  const events = await eachPage(db, 'event', async within => {
    const { rows } = await sql<{ id: string; body: string }>`
      select id, body from event where ${within} and (${holds('body')})`.execute(db)
    return rows
  })
  return {
    answers: answers.rows.map(row => row.address_key),
    items: items
      .filter(
        row => row.dedupeKey.toLowerCase() === key || isAbout(row.text, row.result, row.cells),
      )
      .map(toPersonalItem),
    verifications: verifications
      .filter(({ email }) => isAbout(email))
      .map(({ email: _, ...place }) => place),
    events: events.filter(({ body }) => isAbout(body)).map(({ id }) => id),
  }
}

type Contains = (column: string) => RawBuilder<unknown>

const candidates = (db: Database['db'], key: string, holds: Contains): Promise<Candidate[]> =>
  eachPage(db, 'item', async within => {
    const { rows } = await sql<Candidate>`
      select item.job_id as "jobId", item.position as position, item.dedupe_key as "dedupeKey",
        item.text as text, item.result as result, item.cells as cells,
        job.written_at as "writtenAt", job.state as state, job.type as type
      from item join job on job.id = item.job_id
      where ${within} and (lower(item.dedupe_key) = ${key} or ${holds('item.text')}
        or ${holds('item.result')} or ${holds('item.cells')})`.execute(db)
    return rows
  })

type Candidate = {
  jobId: string
  position: number
  dedupeKey: string
  text: string
  result: string | null
  cells: string | null
  state: JobState
  type: JobType
  writtenAt: number | null
}

function toPersonalItem({ jobId, position, state, type, writtenAt }: Candidate): PersonalItem {
  const ofService = type !== 'list'
  const ended = state === 'cancelled' || state === 'failed' || (ofService && state === 'completed')
  return { jobId, position, finished: ended || writtenAt !== null, ofService }
}

/** Whether the address stands there by itself: joann@example.com is not ann@example.com. */
function containsExactly(place: string, address: string): boolean {
  for (let at = place.indexOf(address); at >= 0; at = place.indexOf(address, at + 1)) {
    const [before, after] = [place.slice(0, at), place.slice(at + address.length)]
    if (!/[\p{L}\p{N}._+-]$/u.test(before) && !/^(?:[\p{L}\p{N}_-]|\.[\p{L}\p{N}])/u.test(after))
      return true
  }
  return false
}
