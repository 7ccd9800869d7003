import { sql } from 'kysely'
import { EvError } from '../../base/error.ts'
import { releaseLostHolds } from '../account/credits.ts'
import { type Database, type Trx, write } from '../database.ts'
import { encodeJson } from '../postgres/text-codec.ts'
import { type Schema, TABLES } from '../schema.ts'
import { isBehind, keyOf } from './primary-key.ts'

/**
 * What is copied, in this order. Members, their holds and paces are of who works on a database just now; domains that
 * take everything, settings and requests within a limit are found anew.
 */
export const COPIED = [
  ...(['account', 'api_key', 'key_secret', 'session', 'credit', 'usage', 'replay'] as const),
  ...(['webhook', 'event', 'delivery', 'attempt', 'notice', 'verification'] as const),
  ...(['answer', 'job', 'item'] as const),
] as const satisfies readonly (keyof Schema)[]

export type CopiedTable = (typeof COPIED)[number]

/** What was copied. */
export type Copied = {
  readonly rows: Readonly<Record<CopiedTable, number>>
  /** Lists that were never stored whole, and stay behind with their rows. */
  readonly loadingJobs: number
  /** Rows of lists that were just being asked, and are asked again. */
  readonly probingItems: number
}

export type CopyProgress = {
  readonly table: CopiedTable
  /** Rows of the table so far, of all that it has. */
  readonly copied: number
  readonly all: number
}

/**
 * Copies what a SQLite database holds into an empty PostgreSQL one, in one transaction of each: nobody writes to either
 * meanwhile, and a copy that ends half way leaves nothing behind. Throws `usage` where the target is not empty.
 *
 * Secrets stay sealed: whoever works on the copy needs the same EV_SECRET, or secret file. The requests that limits have
 * counted (`limits.sqlite`) are not copied: they are those of the last minutes, and of one day at the most.
 */
export async function copyDatabase(
  from: Database,
  to: Database,
  onProgress: (progress: CopyProgress) => void = () => {},
): Promise<Copied> {
  if (from.dialect !== 'sqlite' || to.dialect !== 'postgres') throw wrongWay()
  return write(from, source =>
    write(to, async target => {
      await sql`lock table ${tableList(TABLES)} in exclusive mode`.execute(target)
      await refuseFull(target)
      const rows = {} as Record<CopiedTable, number>
      for (const table of COPIED)
        rows[table] = await copyTable({ source, target, table, onProgress })
      const probingItems = await askAgain(target)
      await releaseLostHolds(target)
      await compareCounts(target, rows)
      return { rows, probingItems, loadingJobs: await countLoading(source) }
    }),
  )
}

const tableList = (tables: readonly string[]) => sql.join(tables.map(name => sql.table(name)))

const wrongWay = () =>
  new EvError('usage', 'What is copied is a SQLite database, and the copy is a PostgreSQL one.')

async function refuseFull(target: Trx): Promise<void> {
  const found: string[] = []
  for (const table of TABLES) {
    const count = await countRows(target, table, sql<boolean>`1 = 1`)
    if (count > 0) found.push(`${count} × ${table}`)
  }
  if (found.length === 0) return
  throw new EvError(
    'usage',
    `The PostgreSQL database is not empty: it holds ${found.join(', ')}. Nothing was copied. Stop whatever works on it, and name an empty database.`,
  )
}

type TableCopy = {
  readonly source: Trx
  readonly target: Trx
  readonly table: CopiedTable
  readonly onProgress: (progress: CopyProgress) => void
}

/** A few MB of the longest rows; beyond that larger pages are no faster. */
const PAGE_ROWS = 1_000

async function copyTable({ source, target, table, onProgress }: TableCopy): Promise<number> {
  const all = await countRows(source, table, isWhole(table))
  let copied = 0
  let last: object | null = null
  while (copied < all) {
    const { rows }: { rows: object[] } = await sql<object>`
      select * from ${sql.table(table)} where ${isBehind(table, last)} and ${isWhole(table)}
      order by ${keyOf(table)} limit ${PAGE_ROWS}`.execute(source)
    await insertRows(target, table, rows)
    copied += rows.length
    last = rows.at(-1) ?? null
    onProgress({ table, copied, all })
  }
  return copied
}

/** What a list that was never stored whole left behind is of use to nobody. */
function isWhole(table: keyof Schema) {
  if (table === 'job') return sql<boolean>`job.state <> 'loading'`
  if (table === 'item') {
    return sql<boolean>`item.job_id not in (select id from job where state = 'loading')`
  }
  return sql<boolean>`1 = 1`
}

/** The database itself takes the rows apart, by the names and types of its columns: four times as fast as a parameter for each. */
async function insertRows(target: Trx, table: CopiedTable, rows: readonly object[]): Promise<void> {
  const name = sql.table(table)
  await sql`
    insert into ${name}
    select * from json_populate_recordset(cast(null as ${name}), cast(${encodeJson(rows)} as json))`.execute(
    target,
  )
}

/** Whoever asked is not there any more. */
async function askAgain(target: Trx): Promise<number> {
  const { numAffectedRows } = await sql`
    update item set state = 'routed', holder = null where state = 'probing'`.execute(target)
  return Number(numAffectedRows ?? 0)
}

async function compareCounts(
  target: Trx,
  rows: Readonly<Record<CopiedTable, number>>,
): Promise<void> {
  for (const table of COPIED) {
    const there = await countRows(target, table, sql<boolean>`1 = 1`)
    if (there === rows[table]) continue
    throw new EvError(
      'io',
      `The copy is not whole: of ${rows[table]} rows of ${table} it has ${there}. Nothing was copied.`,
    )
  }
}

const countLoading = (source: Trx) => countRows(source, 'job', sql<boolean>`state = 'loading'`)

async function countRows(
  trx: Trx,
  table: keyof Schema,
  which: ReturnType<typeof isWhole>,
): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from ${sql.table(table)} where ${which}`.execute(trx)
  return Number(rows[0]?.count ?? 0)
}
