import type { Config } from '../../config/settings.ts'
import { EvError } from '../../platform/error.ts'
import { databaseUrl } from '../database.ts'

/** PostgreSQL has a program of its own for copies: says how it is called. */
export function pgDumpHint(target: string, config: Config): EvError {
  const file = quoted(target)
  const url = quoted(asked(databaseUrl(config)))
  return new EvError(
    'usage',
    `“ev backup” copies files, and this is a PostgreSQL database. Its own program copies that while it is used; it takes the password from PGPASSWORD or ~/.pgpass:
  pg_dump --format=custom --file=${file} --dbname=${url}
To restore it, stop every ev and give it back to an empty database:
  pg_restore --no-owner --exit-on-error --dbname=${url} ${file}
Keep with it what EV_SECRET or EV_SECRET_FILE holds, or the file “secret” of the data directory: without that the secrets of webhooks cannot be read.`,
  )
}

/** The URL as a command line may hold it: without a password. */
function asked(url: string): string {
  const bare = new URL(url)
  bare.password = ''
  for (const name of ['password', 'sslpassword']) bare.searchParams.delete(name)
  return bare.href
}

const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
