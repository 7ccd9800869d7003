import Sqlite from 'better-sqlite3'
import { MINUTE } from '../../src/platform/clock.ts'
import { readDoc } from './markdown.ts'
import { ask } from './postgres-server.ts'

export type Dialect = 'sqlite' | 'postgres'

/** The keys and IDs in the dump of a released version: see fixtures/database/README.md. */
export type ReleasedContents = {
  readonly key: string
  readonly limitedKey: string
  readonly finishedJob: string
  readonly openJob: string
  readonly webhook: string
}

export const RELEASED_SECRET = 'secret-of-the-fixture-of-version-0.2.0'

export const readReleasedContents = (dialect: Dialect): ReleasedContents =>
  JSON.parse(readDoc('fixtures/database/0.2.0.json'))[dialect]

/** When the dumps were written, epoch ms. */
const DUMPED_AT = 1_795_549_300_000

/** Times of the dump, epoch ms: within a few minutes. */
const TIMES = /\b17955[45]\d{7}\b/g

/** Returns the dump as if it had been written now, so that retention removes nothing. */
function readDump(dialect: Dialect): string {
  const shiftMs = Date.now() - DUMPED_AT
  return shiftTimes(readDoc(`fixtures/database/0.2.0-${dialect}.sql`), TIMES, shiftMs)
}

const shiftTimes = (text: string, times: RegExp, byMs: number) =>
  text.replace(times, time => String(Number(time) + byMs))

/** Writes the database of version 0.2.0 to a file that does not exist. */
export function restoreSqlite(file: string): void {
  const database = new Sqlite(file)
  database.exec(readDump('sqlite'))
  database.close()
}

/** Writes the database of version 0.2.0 to an empty database of a server. */
export async function restorePostgres(url: string): Promise<void> {
  await ask(url, readDump('postgres'))
}

/** The key and IDs in the dump of a service that was killed while it verified a list. */
export type InterruptedContents = {
  readonly key: string
  /** A list with rows in all states. */
  readonly openJob: string
  /** A single verification that was accepted for later. */
  readonly later: string
  /** Epoch ms. */
  readonly dumpedAt: number
}

export const readInterruptedContents = (dialect: Dialect): InterruptedContents =>
  JSON.parse(readDoc('fixtures/database/0.2.0-list.json'))[dialect]

/** Times of these dumps, without the start of the day. */
const INTERRUPTED_TIMES = /\b179592[89]\d{6}\b/g

/** Longer than the retries that the killed service had planned. */
const PASSED_MS = 2 * MINUTE

/** Writes the database of the killed service to a file that does not exist. */
export function restoreInterruptedSqlite(file: string): void {
  restoreSqlite(file)
  const database = new Sqlite(file)
  const tables = database
    .prepare(`select name from sqlite_master where type = 'table'`)
    .pluck()
    .all()
  database.exec(tables.map(name => `delete from "${name}";`).join('\n'))
  database.exec(readDoc('fixtures/database/0.2.0-list-sqlite.sql'))
  database.close()
}

/** Writes it to an empty database of a server, as if the service had been killed minutes ago. */
export async function restoreInterruptedPostgres(url: string): Promise<void> {
  await restorePostgres(url)
  const tables = await ask<{ name: string }>(
    url,
    `select schemaname || '.' || tablename as name from pg_tables
      where schemaname in ('public', 'ev_boss')`,
  )
  const { dumpedAt } = readInterruptedContents('postgres')
  const dump = readDoc('fixtures/database/0.2.0-list-postgres.sql')
  await ask(url, `truncate ${tables.map(({ name }) => name).join(', ')}`)
  await ask(url, shiftTimes(dump, INTERRUPTED_TIMES, Date.now() - PASSED_MS - dumpedAt))
}
