import { withoutPassword } from '../config/password.ts'
import { EvError, errorMessage } from '../platform/error.ts'
import { codeOf } from './error-code.ts'
import { isUnknownMigration, OldDevelopmentDatabase } from './migrate.ts'
import { isOutage, NotUtf8 } from './postgres/errors.ts'

/** Returns the error for a SQLite file that cannot be used, with a remedy. */
export const unusableFile = (file: string, cause: unknown) =>
  unusable(file, cause, isUnknownMigration(cause) ? NEWER : fileRemedy(cause))

/** Returns the error for a PostgreSQL database that cannot be used, without its password. */
export const unusableServer = (url: string, cause: unknown) =>
  unusable(
    withoutPassword(url).replace(/\?.*$/s, ''),
    cause,
    isUnknownMigration(cause) ? NEWER : serverRemedy(cause),
  )

function unusable(database: string, cause: unknown, remedy: string): EvError {
  const sentence = `The database ${database} cannot be used: ${errorMessage(cause)}. ${remedy}`
  return new EvError('io', sentence, { cause })
}

const NEWER = 'It was written by a newer version of ev: use that version.'

const OLD = 'Open it once with the last development version, or choose another'

function fileRemedy(cause: unknown): string {
  if (cause instanceof OldDevelopmentDatabase) return `${OLD} directory with --data-dir.`
  // The file is intact and must not be moved away.
  if (/^SQLITE_(FULL|IOERR|CANTOPEN|READONLY)/.test(codeOf(cause))) {
    return 'Run "ev doctor" to check whether the disk is full or read-only, or choose another directory with --data-dir.'
  }
  return 'Choose another directory with --data-dir, or move the file away if it is damaged.'
}

/** SQLSTATE: insufficient_privilege. */
const NO_RIGHT = '42501'

function serverRemedy(cause: unknown): string {
  if (cause instanceof OldDevelopmentDatabase) return `${OLD} one with --database.`
  if (isOutage(cause)) {
    return 'Check that the server is running, accepts connections from this machine and has connections left, or choose another one with --database.'
  }
  // SQLSTATE: duplicate_table.
  if (codeOf(cause) === '42P07') {
    return 'Another program uses this database. Choose a separate one with --database.'
  }
  if (cause instanceof NotUtf8) {
    return "Create another one with: create database NAME encoding 'UTF8' template template0; then set it with --database."
  }
  if (codeOf(cause) === NO_RIGHT) {
    return 'ev creates tables, and the schema ev_boss for its queue. As the owner of the database, run: grant create on database NAME to USER; grant create on schema public to USER.'
  }
  if (/client password must be a/.test(errorMessage(cause))) {
    return 'The server requires a password. Set it in EV_DATABASE, PGPASSWORD or ~/.pgpass.'
  }
  return 'Correct the user, password or database name in --database.'
}
