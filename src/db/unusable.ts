import { withoutPassword } from '../config/values.ts'
import { EvError, errorMessage } from '../platform/error.ts'
import { isUnknownMigration, OldDevelopmentDatabase } from './migrate.ts'
import { codeOf, isOutage } from './postgres/errors.ts'
import { UnsuitableServer } from './postgres/suitability.ts'

/** Returns the error for a SQLite file that cannot be used, with a remedy. */
export const unusableFile = (file: string, cause: unknown) =>
  unusable(file, cause, isUnknownMigration(cause) ? NEWER : fileRemedy(cause))

/**
 * Returns the error for a PostgreSQL database that cannot be used, without its password. The remedy
 * names the flag that sets the URL.
 */
export const unusableServer = (url: string, cause: unknown, flag = '--database') =>
  unusable(
    withoutPassword(url).replace(/\?.*/s, ''),
    cause,
    isUnknownMigration(cause) ? NEWER : serverRemedy(cause).replaceAll('--database', flag),
  )

function unusable(database: string, cause: unknown, remedy: string): EvError {
  const sentence = `The database ${database} cannot be used: ${errorMessage(cause)}. ${remedy}`
  return new EvError('io', sentence, { cause })
}

const NEWER = 'It was written by a newer version of ev: use that version.'

const OLD = 'Open it once with the last development version, or choose another'

function fileRemedy(cause: unknown): string {
  if (cause instanceof OldDevelopmentDatabase) return `${OLD} directory with --data-dir.`
  // The file is intact and must not be moved away. Codes of the system begin with E.
  if (/^(SQLITE_(FULL|IOERR|CANTOPEN|READONLY|PERM)|E)/.test(codeOf(cause))) {
    return 'Check its permissions, run "ev doctor" to see whether the disk is full or read-only, or choose another directory with --data-dir.'
  }
  return 'Choose another directory with --data-dir, or move the file away if it is damaged.'
}

/** SQLSTATE: insufficient_privilege. */
const NO_RIGHT = '42501'

export const OUTAGE_REMEDY =
  'Check that the server is running, accepts connections from this machine and has connections left, or choose another one with --database.'

/** Returns what to do about an error of a PostgreSQL server, as a sentence. */
export function serverRemedy(cause: unknown): string {
  if (cause instanceof OldDevelopmentDatabase) return `${OLD} one with --database.`
  if (cause instanceof UnsuitableServer) return cause.remedy
  const tlsRemedy = remedyForTls(cause)
  if (tlsRemedy !== null) return tlsRemedy
  if (isOutage(cause)) return OUTAGE_REMEDY
  // SQLSTATE: duplicate_table.
  if (codeOf(cause) === '42P07') {
    return 'Another program uses this database. Choose a separate one with --database.'
  }
  if (codeOf(cause) === NO_RIGHT) {
    return 'ev creates tables, and the schema ev_boss for its queue. As the owner of the database, run: grant create on database NAME to USER; grant create on schema public to USER.'
  }
  if (/client password must be a/.test(errorMessage(cause))) {
    return 'The server requires a password. Set it in EV_DATABASE, PGPASSWORD or ~/.pgpass.'
  }
  return 'Correct the user, password or database name in --database.'
}

/** Codes of Node for a certificate of the server that OpenSSL or the name check rejects. */
const SERVER_CERTIFICATE =
  /^(CERT_|SELF_SIGNED_|DEPTH_ZERO_|UNABLE_TO_|INVALID_CA|ERR_TLS_CERT_ALTNAME_INVALID)/

/** Codes of Node for a file that OpenSSL cannot read, and for alerts, such as an unknown CA. */
const CLIENT_CERTIFICATE = /^ERR_(OSSL|SSL)_/

function remedyForTls(cause: unknown): string | null {
  if (/^(ENOENT|EACCES|EISDIR)$/.test(codeOf(cause))) {
    const { path } = cause as { readonly path?: string }
    return `Correct the path ${path} in sslrootcert, sslcert or sslkey of --database; ev must be able to read the file.`
  }
  // pg itself requires sslrootcert for verify-ca with uselibpqcompat=true.
  if (SERVER_CERTIFICATE.test(codeOf(cause)) || /sslrootcert/.test(errorMessage(cause))) {
    return 'Connect to a name in the certificate of the server, and set sslrootcert=FILE in --database if a private authority signed it.'
  }
  if (
    CLIENT_CERTIFICATE.test(codeOf(cause)) ||
    /valid client certificate/.test(errorMessage(cause))
  ) {
    return 'Set sslcert and sslkey in --database to the files of a client certificate that the server accepts, in PEM form.'
  }
  if (/does not support SSL connections/.test(errorMessage(cause))) {
    return 'Turn on ssl in the server, or remove sslmode from --database to connect without TLS.'
  }
  return null
}
