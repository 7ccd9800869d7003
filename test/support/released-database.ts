import Sqlite from 'better-sqlite3'
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
  const dump = readDoc(`fixtures/database/0.2.0-${dialect}.sql`)
  return dump.replace(TIMES, time => String(Number(time) + shiftMs))
}

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
