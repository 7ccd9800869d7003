import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../base/clock.ts'
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
  return existsSync(databaseFile(config)) ? openDatabase(databaseUrl(config), systemClock) : null
}
