import { sql } from 'kysely'
import { type Database, secureDelete, write } from './database.ts'

/** How many remembered answers are kept no longer than until a time, epoch ms. */
export async function countAnswersUntil({ db }: Database, until: number): Promise<number> {
  const { count } = await db
    .selectFrom('answer')
    .select(eb => eb.fn.countAll<number>().as('count'))
    .where('keep_until', '<=', until)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Everything about one address. */
export type Traces = {
  readonly answers: readonly string[]
  readonly items: readonly { jobId: string; position: number; finished: boolean }[]
}

/**
 * Where an address is written down, whatever the case of its letters: under its key, or inside another text,
 * such as a cell that is no address, or a suggestion.
 */
export async function tracesOf(
  { db }: Database,
  o: { key: string; text: string },
): Promise<Traces> {
  const [key, text] = [o.key.toLowerCase(), o.text.toLowerCase()]
  const answers = await sql<{ address_key: string }>`
    select address_key from answer where lower(address_key) = ${key}`.execute(db)
  const items = await sql<Candidate>`
    select item.job_id as "jobId", item.position as position, item.dedupe_key as "dedupeKey",
      item.text as text, item.result as result, job.written_at as "writtenAt",
      job.state as state
    from item join job on job.id = item.job_id
    where lower(item.dedupe_key) = ${key} or instr(lower(item.text), ${text}) > 0
      or instr(lower(item.result), ${text}) > 0 or instr(lower(item.result), ${key}) > 0`.execute(
    db,
  )
  return {
    answers: answers.rows.map(row => row.address_key),
    items: items.rows
      .filter(row => isAbout(row, key, text))
      .map(({ jobId, position, state, writtenAt }) => ({
        ...{ jobId, position },
        finished: state === 'cancelled' || state === 'failed' || writtenAt !== null,
      })),
  }
}

type Candidate = {
  jobId: string
  position: number
  dedupeKey: string
  text: string
  result: string | null
  state: string
  writtenAt: number | null
}

function isAbout(row: Candidate, key: string, text: string): boolean {
  const { dedupeKey, result } = row
  const places = [row.text, result ?? ''].map(place => place.toLowerCase())
  if (dedupeKey.toLowerCase() === key) return true
  return places.some(place => holdsWhole(place, text) || holdsWhole(place, key))
}

/** Whether the address stands there by itself: joann@example.com is not ann@example.com. */
function holdsWhole(place: string, address: string): boolean {
  for (let at = place.indexOf(address); at >= 0; at = place.indexOf(address, at + 1)) {
    const [before, after] = [place.slice(0, at), place.slice(at + address.length)]
    if (!/[\p{L}\p{N}._+-]$/u.test(before) && !/^(?:[\p{L}\p{N}_-]|\.[\p{L}\p{N}])/u.test(after))
      return true
  }
  return false
}

/**
 * Empties the rows of an address: the job keeps its counts, each row its place and class, and nothing of the
 * address stays. Its answers go.
 */
export async function eraseTraces(database: Database, { answers, items }: Traces): Promise<void> {
  await secureDelete(database)
  await write(database, async trx => {
    for (const key of answers) {
      await trx.deleteFrom('answer').where('address_key', '=', key).execute()
    }
    for (const { jobId, position } of items) {
      // The check of the schema wants a result where an item is done: there it is JSON's null.
      await sql`
        update item set text = '', dedupe_key = ${`erased ${position}`}, operator = null, domain = null,
          route = null, result = case when result is null then null else 'null' end
        where job_id = ${jobId} and position = ${position}`.execute(trx)
    }
  })
}
