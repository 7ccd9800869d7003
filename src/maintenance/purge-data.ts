import { type RawBuilder, sql } from 'kysely'
import type { VerificationTable } from '../accounts/tables.ts'
import { deleteWitnesses, findWitnesses } from '../cluster/witnesses.ts'
import { countRows } from '../db/count-rows.ts'
import { type Database, secureDelete, type Trx, write } from '../db/database.ts'
import { contains } from '../db/sql-dialect.ts'
import { getAddressKey } from '../engine/result-cache.ts'
import { subtractStoredPieces } from '../feedback/feedback-store.ts'
import type { JobState, JobType } from '../jobs/tables.ts'
import { eachPage } from './pages.ts'

/** Counts cached answers that expire by a time, epoch ms. */
export async function countAnswersUntil({ db }: Database, until: number): Promise<number> {
  return countRows(db.selectFrom('answer').where('keep_until', '<=', until))
}

/** Counts rows of a table created before a time, epoch ms. */
export async function countBefore(
  { db }: Database,
  table: 'verification' | 'replay',
  before: number,
): Promise<number> {
  return countRows(db.selectFrom(table).where('created_at', '<', before))
}

/**
 * Counts deliveries that retention would delete: expired ones, those overdue for a disabled
 * webhook, and those of deleted webhooks.
 */
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
 * Erases an address. Jobs keep their counts, items their position and class, the history its
 * verdicts. Cached answers, witnesses and events that contain the address are deleted.
 */
export async function erasePersonalData(database: Database, data: PersonalData): Promise<void> {
  await secureDelete(database)
  await write(database, async trx => {
    for (const key of data.answers) {
      await trx.deleteFrom('answer').where('address_key', '=', key).execute()
    }
    await deleteWitnesses(trx, data.witnesses)
    await eraseItems(trx, data.items)
    for (const { account_id, sandbox, created_at, id } of data.verifications) {
      await sql`
        update verification set email = '' where account_id = ${account_id} and sandbox = ${sandbox}
          and created_at = ${created_at} and id = ${id}`.execute(trx)
    }
    for (const id of data.events) {
      await sql`
        delete from attempt
        where delivery_id in (select id from delivery where event_id = ${id})`.execute(trx)
      await trx.deleteFrom('delivery').where('event_id', '=', id).execute()
      await trx.deleteFrom('event').where('id', '=', id).execute()
    }
    await erasePersonalFeedback(trx, data.feedback)
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
    // A check constraint requires a result for done items: it is set to JSON null.
    await sql`
      update item set text = '', dedupe_key = ${`erased ${position}`}, operator = null,
        backup_operator = null, domain = null,
        route = null, accepted = null, latest_result = null, result = case when result is null then null else 'null' end,
        cells = ${cells === null ? null : emptied(cells)}
      where job_id = ${jobId} and position = ${position}`.execute(trx)
  }
}

/** Empties the cells of a row, but keeps their number. */
function emptied(cells: string): string {
  const parsed: unknown = JSON.parse(cells)
  return JSON.stringify(Array.isArray(parsed) ? parsed.map(() => '') : '')
}

/** Stored data about one address. */
export type PersonalData = {
  /** Cache keys of answers, for each account that verified the address. */
  readonly answers: readonly string[]
  /** The address as a recipient that mail servers accepted, in each case of letters. */
  readonly witnesses: readonly string[]
  readonly items: readonly PersonalItem[]
  /** Entries of the history. */
  readonly verifications: readonly PersonalVerification[]
  /** IDs of events that contain the address. */
  readonly events: readonly string[]
  /** Feedback about the address, or with a text that contains it. */
  readonly feedback: PersonalFeedback
}

type PersonalItem = {
  readonly jobId: string
  readonly position: number
  readonly finished: boolean
  /** Whether the job belongs to the service, and not to the command line. */
  readonly ofService: boolean
}

type PersonalVerification = Pick<VerificationTable, 'account_id' | 'sandbox' | 'created_at' | 'id'>

const NO_PERSONAL_FEEDBACK: PersonalFeedback = { pieces: [], addresses: [] }

export const NO_PERSONAL_DATA: PersonalData = {
  answers: [],
  witnesses: [],
  items: [],
  verifications: [],
  events: [],
  feedback: NO_PERSONAL_FEEDBACK,
}

/**
 * Finds all data about an address, ignoring case: under its key, or inside another text, such as
 * another cell of the row or a suggestion. Scans all rows, page by page.
 */
export async function findPersonalData(
  database: Database,
  o: { key: string; text: string },
): Promise<PersonalData> {
  const { db } = database
  const forms = [...new Set([o.key.toLowerCase(), o.text.toLowerCase()])]
  const [key = ''] = forms
  const containsAddress: Contains = column =>
    sql.join(
      forms.map(text => contains(db, sql`lower(${sql.ref(column)})`, sql`${text}`)),
      sql` or `,
    )
  const isAbout = (...texts: (string | null)[]) =>
    texts.some(text => forms.some(form => containsExactly(text?.toLowerCase() ?? '', form)))
  const answers = await sql<{ cache_key: string }>`
    select address_key as cache_key from answer
    where ${contains(db, sql`lower(address_key)`, sql`${key}`)}`.execute(db)
  const witnesses = await findWitnesses(database, key)
  const items = await candidates(db, key, containsAddress)
  const verifications = await eachPage(db, 'verification', async within => {
    const { rows } = await sql<PersonalVerification & { email: string }>`
      select account_id, sandbox, created_at, id, email from verification
      where ${within} and (${containsAddress('email')})`.execute(db)
    return rows
  })
  const events = await eachPage(db, 'event', async within => {
    const { rows } = await sql<{ id: string; body: string }>`
      select id, body from event where ${within} and (${containsAddress('body')})`.execute(db)
    return rows
  })
  const feedback = await findPersonalFeedback(db, { key, containsAddress, isAbout })
  return {
    feedback,
    answers: answers.rows
      .map(row => row.cache_key)
      .filter(cacheKey => getAddressKey(cacheKey).toLowerCase() === key),
    witnesses,
    items: items
      .filter(
        row => row.dedupeKey.toLowerCase() === key || isAbout(row.text, row.result, row.cells),
      )
      .map(toPersonalItem),
    verifications: verifications
      .filter(({ email }) => isAbout(email))
      .map(({ email: _, ...keys }) => keys),
    events: events.filter(({ body }) => isAbout(body)).map(({ id }) => id),
  }
}

type Contains = (column: string) => RawBuilder<unknown>

const candidates = (
  db: Database['db'],
  key: string,
  containsAddress: Contains,
): Promise<Candidate[]> =>
  eachPage(db, 'item', async within => {
    const { rows } = await sql<Candidate>`
      select item.job_id as "jobId", item.position as position, item.dedupe_key as "dedupeKey",
        item.text as text, item.result as result, item.cells as cells,
        job.written_at as "writtenAt", job.state as state, job.type as type
      from item join job on job.id = item.job_id
      where ${within} and (lower(item.dedupe_key) = ${key} or ${containsAddress('item.text')}
        or ${containsAddress('item.result')} or ${containsAddress('item.cells')})`.execute(db)
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
  const isOver = state === 'cancelled' || state === 'failed' || (ofService && state === 'completed')
  return { jobId, position, finished: isOver || writtenAt !== null, ofService }
}

/**
 * Whether a text contains the whole address: joann@example.com does not contain ann@example.com.
 */
function containsExactly(text: string, address: string): boolean {
  for (let at = text.indexOf(address); at >= 0; at = text.indexOf(address, at + 1)) {
    const [before, after] = [text.slice(0, at), text.slice(at + address.length)]
    if (!/[\p{L}\p{N}._+-]$/u.test(before) && !/^(?:[\p{L}\p{N}_-]|\.[\p{L}\p{N}])/u.test(after))
      return true
  }
  return false
}

/** Feedback that contains an address, by key. */
type PersonalFeedback = {
  readonly pieces: readonly { readonly account_id: string; readonly dedupe_key: string }[]
  readonly addresses: readonly { readonly account_id: string; readonly address_key: string }[]
}

export const mergePersonalFeedback = (a: PersonalFeedback, b: PersonalFeedback) => ({
  pieces: [...a.pieces, ...b.pieces],
  addresses: [...a.addresses, ...b.addresses],
})

type Search = {
  /** The lower-case key of the address. */
  readonly key: string
  readonly containsAddress: (column: string) => RawBuilder<unknown>
  readonly isAbout: (...texts: (string | null)[]) => boolean
}

/** Finds feedback under the key of an address, or with a text that contains the address. */
async function findPersonalFeedback(
  db: Database['db'],
  { key, containsAddress, isAbout }: Search,
): Promise<PersonalFeedback> {
  type Found = { account_id: string; address_key: string; text: string | null }
  const isPersonal = ({ address_key, text }: Found) =>
    address_key.toLowerCase() === key || isAbout(text)
  const pieces = await eachPage(db, 'feedback', async within => {
    const { rows } = await sql<Found & { dedupe_key: string }>`
      select account_id, dedupe_key, address_key, text from feedback
      where ${within} and (lower(address_key) = ${key} or ${containsAddress('text')})`.execute(db)
    return rows
  })
  const addresses = await eachPage(db, 'feedback_address', async within => {
    const { rows } = await sql<Found>`
      select account_id, address_key, text from feedback_address
      where ${within} and (lower(address_key) = ${key} or ${containsAddress('text')})`.execute(db)
    return rows
  })
  return {
    pieces: pieces
      .filter(isPersonal)
      .map(({ account_id, dedupe_key }) => ({ account_id, dedupe_key })),
    addresses: addresses
      .filter(isPersonal)
      .map(({ account_id, address_key }) => ({ account_id, address_key })),
  }
}

/** Deletes feedback. The counts of its domain and of verdicts stay: they name no address. */
async function erasePersonalFeedback(
  trx: Trx,
  { pieces, addresses }: PersonalFeedback,
): Promise<void> {
  const deleted: string[] = []
  for (const { account_id, dedupe_key } of pieces) {
    const { numDeletedRows } = await trx
      .deleteFrom('feedback')
      .where('account_id', '=', account_id)
      .where('dedupe_key', '=', dedupe_key)
      .executeTakeFirst()
    if (numDeletedRows > 0n) deleted.push(account_id)
  }
  await subtractStoredPieces(trx, deleted)
  for (const { account_id, address_key } of addresses) {
    await trx
      .deleteFrom('feedback_address')
      .where('account_id', '=', account_id)
      .where('address_key', '=', address_key)
      .execute()
  }
}
