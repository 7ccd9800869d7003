import type { Kysely } from 'kysely'
import { errorMessage } from '../platform/error.ts'
import { initial } from './initial-schema.ts'

type Migrations = Record<string, { up(db: Kysely<unknown>): Promise<void> }>

/** Forward only: a released one is never changed, a new one is added. */
export const MIGRATIONS: Migrations = {
  '0001_initial': { up: initial },
}

/** The migrations of the development versions. All ten make the tables of `0001_initial`. */
export const DEVELOPMENT_MIGRATIONS = [
  ...['0001_lists', '0002_egresses', '0003_service', '0004_deliveries', '0005_sessions'],
  ...['0006_cluster', '0007_retries', '0008_stored_rows', '0009_error_codes', '0010_session_grace'],
]

/** A database that has only the first of the development migrations. */
export class OldDevelopmentDatabase extends Error {
  constructor(recorded: readonly string[]) {
    super(
      `a development version of ev made it, with migrations up to ${[...recorded].sort().at(-1)}; ` +
        `ev takes over only databases with all up to ${DEVELOPMENT_MIGRATIONS.at(-1)}`,
    )
  }
}

/**
 * The version of ev that ran the recorded migrations. `development`: all of the development versions. Throws
 * OldDevelopmentDatabase when some of them are missing.
 */
export function migrationSource(recorded: readonly string[]): 'known' | 'development' | 'newer' {
  if (recorded.every(name => name in MIGRATIONS)) return 'known'
  if (!recorded.every(name => DEVELOPMENT_MIGRATIONS.includes(name))) return 'newer'
  if (recorded.length < DEVELOPMENT_MIGRATIONS.length) throw new OldDevelopmentDatabase(recorded)
  return 'development'
}

/** Whether Kysely refused a database for a recorded migration that is not in MIGRATIONS. */
export const isUnknownMigration = (error: unknown): boolean =>
  /previously executed migration .* is missing/.test(errorMessage(error))
