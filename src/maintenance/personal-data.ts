import { type RawBuilder, sql } from 'kysely'
import type { VerificationTable } from '../accounts/tables.ts'
import type { Database } from '../db/database.ts'
import { contains } from '../db/sql-dialect.ts'
import type { JobState, JobType } from '../jobs/tables.ts'
import { eachPage } from './pages.ts'

/** Everything about one address. */
export type PersonalData = {
  readonly answers: readonly string[]
  readonly items: readonly PersonalItem[]
  /** In the history. */
  readonly verifications: readonly PersonalVerification[]
  /** Events that tell of it, by ID. */
  readonly events: readonly string[]
}

export type PersonalItem = {
  readonly jobId: string
  readonly position: number
  readonly finished: boolean
  /** Whether its list was submitted to the service, which works on it by itself. */
  readonly ofService: boolean
}

export type PersonalVerification = Pick<
  VerificationTable,
  'account_id' | 'sandbox' | 'created_at' | 'id'
>

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
