import { withoutPassword } from '../config/password.ts'
import { EvError, errorMessage } from '../platform/error.ts'
import { codeOf } from './error-code.ts'
import { isUnknownMigration, OldDevelopmentDatabase } from './migrate.ts'
import { isOutage, NotUtf8 } from './postgres/errors.ts'

/** Why a file cannot be used, and what to do about it. */
export const unusableFile = (file: string, cause: unknown) =>
  unusable(file, cause, isUnknownMigration(cause) ? NEWER : fileRemedy(cause))

/** Why the database of a server cannot be used, and what to do about it; its password stands nowhere in it. */
export const unusableServer = (url: string, cause: unknown) =>
  unusable(
    withoutPassword(url).replace(/\?.*$/s, ''),
    cause,
    isUnknownMigration(cause) ? NEWER : serverRemedy(cause),
  )

function unusable(place: string, cause: unknown, remedy: string): EvError {
  const sentence = `The database ${place} cannot be used: ${errorMessage(cause)}. ${remedy}`
  return new EvError('io', sentence, { cause })
}

const NEWER = 'It was written by a newer version of ev: use that version.'

const OLD = 'Open it once with the last development version, or name another'

function fileRemedy(cause: unknown): string {
  if (cause instanceof OldDevelopmentDatabase) return `${OLD} place with --data-dir.`
  // It is needed again once that is set right: nobody should move it away.
  if (/^SQLITE_(FULL|IOERR|CANTOPEN|READONLY)/.test(codeOf(cause))) {
    return 'Look whether the disk is full, or may not be written (“ev doctor” tells), or name another place with --data-dir.'
  }
  return 'Name another place with --data-dir, or move the file away if it is damaged.'
}

/** SQLSTATE: insufficient_privilege. */
const NO_RIGHT = '42501'

function serverRemedy(cause: unknown): string {
  if (cause instanceof OldDevelopmentDatabase) return `${OLD} with --database.`
  if (isOutage(cause)) {
    return 'Look whether the server runs, may be reached from here and has connections left, or name another with --database.'
  }
  // SQLSTATE: a table that is there already.
  if (codeOf(cause) === '42P07') {
    return 'Another program uses it: name a database of its own with --database.'
  }
  if (cause instanceof NotUtf8) {
    return "Make another one with: create database NAME encoding 'UTF8' template template0; and name it with --database."
  }
  if (codeOf(cause) === NO_RIGHT) {
    return 'ev makes tables, and the schema ev_boss for its queue. Let the owner of the database run: grant create on database NAME to USER; grant create on schema public to USER.'
  }
  if (/client password must be a/.test(errorMessage(cause))) {
    return 'The server wants a password: give it in EV_DATABASE, as PGPASSWORD or in ~/.pgpass.'
  }
  return 'Correct the user, the password or the name in --database.'
}
