import { type RawBuilder, sql } from 'kysely'
import { type Database, type Trx, write } from '../db/database.ts'
import { encodeJson } from '../db/postgres/client.ts'
import { type Schema, TABLES } from '../db/schema.ts'
import { releaseOrphanedReservations } from '../jobs/job-credits.ts'
import { EvError } from '../platform/error.ts'
import { eachPage } from './pages.ts'

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
  /** Lists of the command line, which goes on with them where they are. */
  readonly ownJobs: number
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
  if (from.dialect !== 'sqlite' || to.dialect !== 'postgres') throw wrongDirection()
  return write(from, async source => {
    // Before the other transaction begins: a server ends those that stand still for ten seconds.
    const held = await lockedBy(source)
    return write(to, async target => {
      await sql`lock table ${tableList(TABLES)} in exclusive mode`.execute(target)
      await refuseFull(target)
      for (const table of COPIED) {
        await copyTable({ source, target, table, all: held.rows[table], onProgress })
      }
      const probingItems = await retry(target)
      await releaseOrphanedReservations(target)
      await compareCounts(target, held.rows)
      return { ...held, probingItems }
    })
  })
}

async function lockedBy(source: Trx): Promise<Omit<Copied, 'probingItems'>> {
  const rows = {} as Record<CopiedTable, number>
  for (const table of COPIED) rows[table] = await countRows(source, table, isOfUse(table))
  const loading = sql<boolean>`account_id is not null and state = 'loading'`
  const own = sql<boolean>`account_id is null`
  return {
    rows,
    loadingJobs: await countRows(source, 'job', loading),
    ownJobs: await countRows(source, 'job', own),
  }
}

const tableList = (tables: readonly string[]) => sql.join(tables.map(name => sql.table(name)))

const wrongDirection = () =>
  new EvError('usage', 'What is copied is a SQLite database, and the copy is a PostgreSQL one.')

async function refuseFull(target: Trx): Promise<void> {
  const found: string[] = []
  for (const table of TABLES) {
    const count = await countRows(target, table, ALL)
    if (count > 0) found.push(`${count} of ${table}`)
  }
  if (found.length === 0) return
  throw new EvError(
    'usage',
    `The PostgreSQL database is not empty: it has ${found.join(', ')}. Nothing was copied. Stop whatever works on it, and name one that is empty.`,
  )
}

type TableCopy = {
  readonly source: Trx
  readonly target: Trx
  readonly table: CopiedTable
  readonly all: number
  readonly onProgress: (progress: CopyProgress) => void
}

async function copyTable({ source, target, table, all, onProgress }: TableCopy): Promise<void> {
  let copied = 0
  for await (const page of pagesOf(source, table)) {
    await insertRows(target, table, page)
    copied += page.length
    onProgress({ table, copied, all })
  }
}

/** Rows in one statement: with more it is no faster. */
const PAGE_ROWS = 2_000
/** Where rows are long, by characters. */
const PAGE_LENGTH = 1024 * 1024

/** The file is read row by row, so that no more of it is in memory than one page. */
async function* pagesOf(source: Trx, table: CopiedTable): AsyncGenerator<object[]> {
  let page: object[] = []
  let length = 0
  for await (const row of source.selectFrom(table).selectAll().where(isOfUse(table)).stream()) {
    page.push(row)
    length += lengthOf(row)
    if (page.length < PAGE_ROWS && length < PAGE_LENGTH) continue
    yield page
    page = []
    length = 0
  }
  if (page.length > 0) yield page
}

function lengthOf(row: object): number {
  let length = 0
  for (const value of Object.values(row)) length += typeof value === 'string' ? value.length : 8
  return length
}

const ALL = sql<boolean>`1 = 1`

/**
 * What a list that was never stored whole left behind is of use to nobody; and those of the command line are made of
 * files of this machine, so that nobody could go on with them elsewhere, nor take them away.
 */
function isOfUse(table: CopiedTable): RawBuilder<boolean> {
  if (table === 'job') return sql<boolean>`account_id is not null and state <> 'loading'`
  if (table !== 'item') return ALL
  return sql<boolean>`job_id in (select id from job where account_id is not null and state <> 'loading')`
}

/** The database takes the rows apart by the names and types of its columns: several times as fast as a parameter for each value. */
async function insertRows(target: Trx, table: CopiedTable, rows: object[]): Promise<void> {
  const name = sql.table(table)
  await sql`
    insert into ${name}
    select * from json_populate_recordset(cast(null as ${name}), cast(${encodeJson(rows)} as json))`.execute(
    target,
  )
}

/** Whoever asked is not there any more. */
async function retry(target: Trx): Promise<number> {
  const { numAffectedRows } = await sql`
    update item set state = 'routed', holder = null where state = 'probing'`.execute(target)
  return Number(numAffectedRows ?? 0)
}

/** Page by page, as a server ends statements that take long. */
async function compareCounts(target: Trx, rows: Copied['rows']): Promise<void> {
  for (const table of COPIED) {
    const counts = await eachPage(target, table, async within => [
      await countRows(target, table, within),
    ])
    const there = counts.reduce((sum, count) => sum + count, 0)
    if (there === rows[table]) continue
    throw new EvError(
      'io',
      `The copy is not whole: of ${rows[table]} rows of ${table} it has ${there}. Nothing was copied.`,
    )
  }
}

async function countRows(
  trx: Trx,
  table: keyof Schema,
  which: RawBuilder<boolean>,
): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from ${sql.table(table)} where ${which}`.execute(trx)
  return Number(rows[0]?.count ?? 0)
}
