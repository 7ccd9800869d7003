import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { type RawBuilder, sql } from 'kysely'
import { ensureSetting } from '../cluster/cluster-settings.ts'
import { type Database, openDatabase, type Trx, write } from '../db/database.ts'
import { acquireLock, databaseLock, isLocked, type Lock, SERVE_LOCK } from '../db/file-lock.ts'
import { encodeJson } from '../db/postgres/encoding.ts'
import { type Schema, TABLES } from '../db/schema.ts'
import { fingerprint, needsSecret, readSecret, type SecretLocation } from '../db/service-secret.ts'
import { RELEASED } from '../jobs/item-store.ts'
import { releaseOrphanedReservations } from '../jobs/job-credits.ts'
import type { Clock } from '../platform/clock.ts'
import { EvError } from '../platform/error.ts'
import type { Random } from '../platform/random.ts'
import { maintenanceError } from './errors.ts'
import { inspectDatabase } from './inspect.ts'
import { eachPage } from './pages.ts'

type MigrateInput = {
  /** `sqlite:FILE` URL of the service. */
  readonly from: string
  /** URL of an empty PostgreSQL database. */
  readonly to: string
  /** Secret of the service; the copy keeps it. */
  readonly place: SecretLocation
  readonly onProgress: (progress: CopyProgress) => void
}

/**
 * Copies the database of a service to PostgreSQL, all or nothing. Throws `data_dir_in_use` while
 * `ev serve` or `ev bulk` uses it, and `database_absent`, `database_unusable` and `database_newer`.
 */
export async function migrate(
  services: { readonly clock: Clock; readonly random: Random },
  input: MigrateInput,
): Promise<Copied> {
  const { dataDir } = input.place
  requireUsable(input.from)
  const lock = lockSource(dataDir, inspectDatabase(input.from).file)
  try {
    return await copy(services, input)
  } finally {
    lock.release()
  }
}

async function copy(
  { clock, random }: { readonly clock: Clock; readonly random: Random },
  { from, to, place, onProgress }: MigrateInput,
): Promise<Copied> {
  const opened: Database[] = []
  const open = async (url: string, flag?: string) => {
    const database = await openDatabase(url, clock, { flag })
    opened.push(database)
    return database
  }
  try {
    const target = await open(to, '--to')
    const copied = await copyDatabase(await open(from), target, onProgress)
    // A service with another secret is refused from now on, as it could not decrypt signing
    // secrets.
    if (!needsSecret(place))
      await ensureSetting(target, 'secret-mark', fingerprint(readSecret(place, random)))
    return copied
  } finally {
    await Promise.all(opened.map(database => database.close()))
  }
}

function requireUsable(url: string): void {
  const info = inspectDatabase(url)
  const { file } = info
  if (info.kind === 'absent') throw maintenanceError('database_absent', { file, task: 'migrate' })
  if (info.kind === 'newer') throw maintenanceError('database_newer', { file })
  if (info.kind === 'unusable') {
    throw maintenanceError('database_unusable', { file, why: info.why })
  }
}

/** Locks a data directory and a SQLite file against services. Throws `data_dir_in_use`. */
function lockSource(dataDir: string, file: string): Lock {
  const places = [[dataDir, SERVE_LOCK], databaseLock(file)] as const
  const locks: Lock[] = []
  const release = () => {
    for (const lock of locks) lock.release()
  }
  for (const [dir, name] of places) {
    const lock = acquireLock(dir, name)
    if (lock !== null) locks.push(lock)
    const command = lock === null ? 'serve' : hasActiveList(dir) ? 'bulk' : null
    if (command === null) continue
    release()
    throw maintenanceError('data_dir_in_use', { dataDir: dir, command })
  }
  return { release }
}

function hasActiveList(dataDir: string): boolean {
  const locks = join(dataDir, 'locks')
  const names = existsSync(locks) ? readdirSync(locks) : []
  return names
    .filter(name => /^list_.+\.lock$/.test(name))
    .some(name => isLocked(dataDir, name.replace(/\.lock$/, '')))
}

/**
 * Tables that are copied, in this order. Members, reservations and rate states belong to running
 * processes; catch-all domains, settings and rate limit counters are rebuilt.
 */
export const COPIED = [
  ...(['account', 'api_key', 'key_secret', 'session', 'credit', 'usage', 'replay'] as const),
  ...(['person', 'recovery_code'] as const),
  ...(['webhook', 'event', 'delivery', 'attempt', 'notice', 'verification', 'audit'] as const),
  ...(['answer', 'job', 'item', 'schedule', 'feedback', 'feedback_account'] as const),
  ...(['feedback_address', 'feedback_count', 'feedback_domain', 'feedback_day'] as const),
  ...(['feedback_source', 'feedback_reply'] as const),
] as const satisfies readonly (keyof Schema)[]

export type CopiedTable = (typeof COPIED)[number]

/** Result of a copy. */
export type Copied = {
  readonly rows: Readonly<Record<CopiedTable, number>>
  /** Partially imported jobs, which are not copied. */
  readonly loadingJobs: number
  /** Jobs of the command line, which are not copied: they stay on this machine. */
  readonly ownJobs: number
  /** Items whose probe was in flight, which are probed again. */
  readonly probingItems: number
}

export type CopyProgress = {
  readonly table: CopiedTable
  /** Rows copied so far, of `all` rows. */
  readonly copied: number
  readonly all: number
}

/**
 * Copies a SQLite database into an empty PostgreSQL one, with one transaction on each: both are
 * locked for writes, and an aborted copy leaves nothing behind. Throws `usage` if the target is not
 * empty.
 *
 * Secrets stay encrypted: the service on the copy needs the same EV_SECRET or secret file. Rate
 * limit counters (`limits.sqlite`) are not copied: they cover the last minutes, one day at most.
 */
export async function copyDatabase(
  from: Database,
  to: Database,
  onProgress: (progress: CopyProgress) => void = () => {},
): Promise<Copied> {
  if (from.dialect !== 'sqlite' || to.dialect !== 'postgres') throw wrongDirection()
  return write(from, async source => {
    // Before the other transaction starts: the server ends transactions that are idle for 10 s.
    const counts = await countSource(source)
    return write(to, async target => {
      await sql`lock table ${tableList(TABLES)} in exclusive mode`.execute(target)
      await requireEmpty(target)
      for (const table of COPIED) {
        await copyTable({ source, target, table, all: counts.rows[table], onProgress })
      }
      const probingItems = await requeueProbing(target)
      await releaseOrphanedReservations(target)
      await compareCounts(target, counts.rows)
      return { ...counts, probingItems }
    })
  })
}

async function countSource(source: Trx): Promise<Omit<Copied, 'probingItems'>> {
  const rows = {} as Record<CopiedTable, number>
  for (const table of COPIED) rows[table] = await countRows(source, table, isCopied(table))
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
  new EvError('usage', 'Only a SQLite database can be copied, and only to a PostgreSQL database.')

async function requireEmpty(target: Trx): Promise<void> {
  const found: string[] = []
  for (const table of TABLES) {
    const count = await countRows(target, table, ALL)
    if (count > 0) found.push(`${count} of ${table}`)
  }
  if (found.length === 0) return
  throw new EvError(
    'usage',
    `The PostgreSQL database is not empty: it has ${found.join(', ')}. Nothing was copied. Stop all processes that use it, or choose an empty database.`,
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
  for await (const page of readPages(source, table)) {
    await insertRows(target, table, page)
    copied += page.length
    onProgress({ table, copied, all })
  }
}

/** Rows per statement; more are not faster. */
const PAGE_ROWS = 2_000
/** Characters per statement, for long rows. */
const PAGE_LENGTH = 1024 * 1024

/** Streams the rows, so that at most one page is in memory. */
async function* readPages(source: Trx, table: CopiedTable): AsyncGenerator<object[]> {
  let page: object[] = []
  let length = 0
  for await (const row of source.selectFrom(table).selectAll().where(isCopied(table)).stream()) {
    page.push(row)
    length += rowLength(row)
    if (page.length < PAGE_ROWS && length < PAGE_LENGTH) continue
    yield page
    page = []
    length = 0
  }
  if (page.length > 0) yield page
}

function rowLength(row: object): number {
  let length = 0
  for (const value of Object.values(row)) length += typeof value === 'string' ? value.length : 8
  return length
}

const ALL = sql<boolean>`1 = 1`

/**
 * Condition for rows to copy. Partially imported jobs are useless. Jobs of the command line read
 * files of this machine, so they could be neither resumed nor deleted elsewhere.
 */
function isCopied(table: CopiedTable): RawBuilder<boolean> {
  if (table === 'job') return sql<boolean>`account_id is not null and state <> 'loading'`
  if (table !== 'item') return ALL
  return sql<boolean>`job_id in (select id from job where account_id is not null and state <> 'loading')`
}

/** Lets the database parse the rows as JSON: several times as fast as a parameter per value. */
async function insertRows(target: Trx, table: CopiedTable, rows: object[]): Promise<void> {
  const name = sql.table(table)
  await sql`
    insert into ${name}
    select * from json_populate_recordset(cast(null as ${name}), cast(${encodeJson(rows)} as json))`.execute(
    target,
  )
}

/** Requeues items whose probe was in flight. Returns their number. */
async function requeueProbing(target: Trx): Promise<number> {
  const { numAffectedRows } = await sql`
    update item set state = ${RELEASED}, holder = null where state = 'probing'`.execute(target)
  return Number(numAffectedRows ?? 0)
}

/** Counts page by page, because of the statement timeout. */
async function compareCounts(target: Trx, rows: Copied['rows']): Promise<void> {
  for (const table of COPIED) {
    const counts = await eachPage(target, table, async within => [
      await countRows(target, table, within),
    ])
    const copied = counts.reduce((sum, count) => sum + count, 0)
    if (copied === rows[table]) continue
    throw new EvError(
      'io',
      `The copy is incomplete: it has ${copied} of ${rows[table]} rows of ${table}. Nothing was copied.`,
    )
  }
}

async function countRows(
  trx: Trx,
  table: keyof Schema,
  where: RawBuilder<boolean>,
): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from ${sql.table(table)} where ${where}`.execute(trx)
  return Number(rows[0]?.count ?? 0)
}
