import { statSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../base/clock.ts'
import { EvError, messageOf } from '../base/error.ts'
import type { Config } from '../config/settings.ts'
import { type Database, openDatabase } from '../store/database.ts'

/** Where jobs and answers are kept, as a URL. */
export const databaseUrl = ({ database, dataDir }: Pick<Config, 'database' | 'dataDir'>) =>
  database === '' ? `sqlite:${join(dataDir, 'ev.sqlite')}` : database

/** The file behind it. */
export const databaseFile = (config: Pick<Config, 'database' | 'dataDir'>) =>
  databaseUrl(config).replace(/^sqlite:/, '')

/** Opens the database if there is one: who only looks makes none. */
export async function openKept(config: Config): Promise<Database | null> {
  return isThere(databaseFile(config)) ? openDatabase(databaseUrl(config), systemClock) : null
}

/** What may not be looked at is not told as if it were not there: that of a service is for its user alone. */
function isThere(file: string): boolean {
  try {
    return statSync(file, { throwIfNoEntry: false }) !== undefined
  } catch (cause) {
    throw new EvError(
      'io',
      `The database ${file} cannot be looked at: ${messageOf(cause)}. Do this as the user who runs ev there, or name another place with --data-dir.`,
      { cause },
    )
  }
}
