import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Config } from '../config/settings.ts'
import { type Backup, backup } from '../maintenance/backup.ts'
import { EvError } from '../platform/error.ts'
import { formatBytes, pluralize } from '../platform/format.ts'
import { type CliContext, inCwd } from './context.ts'
import { databaseUrl, isShared } from './database.ts'
import { readConfig } from './settings.ts'

export type BackupFlags = {
  readonly force?: boolean
  readonly json?: boolean
  readonly [setting: string]: unknown
}

/** `ev backup`: gives the code to exit with. */
export function backupCommand(context: CliContext, target: string, flags: BackupFlags): number {
  const config = readConfig(context, flags)
  if (isShared(config)) throw pgDumpHint(target, config)
  const file = resolve(inCwd(context, target))
  const input = { databaseUrl: databaseUrl(config), file, force: flags.force ?? false }
  const copy = backup(input)
  const secretFile = config.secretFile ?? join(config.dataDir, 'secret')
  const isInFile = config.secret === null && existsSync(secretFile)
  const shown = { ...copy, secretFile: isInFile ? secretFile : null }
  context.stdout.write(
    flags.json ? `${JSON.stringify(backupObject(shown), null, 2)}\n` : backupText(shown),
  )
  return 0
}

/** A copy that was made. */
type ShownBackup = Backup & {
  /** Without which secrets in it cannot be read; null: there is none, or it was given elsewhere. */
  readonly secretFile: string | null
}

/** What is in a copy and what to do with it, for people. */
function backupText({ file, bytes, contents, database, secretFile }: ShownBackup): string {
  const { accounts, keys, webhooks, lists, rows, verifications, answers } = contents
  return `Copied the database to ${file}: ${formatBytes(bytes)}, read once more and whole.
  ${pluralize(accounts, 'account')} with ${pluralize(keys, 'key')} and ${pluralize(webhooks, 'webhook')}
  ${pluralize(lists, 'list')} of ${pluralize(rows, 'row')}
  ${pluralize(verifications, 'verification')} of the history, ${pluralize(answers, 'remembered answer')}

To restore it: stop every ev, remove ${database}-wal and ${database}-shm, copy this file to
${database}, and start ev.
${
  secretFile === null
    ? 'Keep with it what EV_SECRET or EV_SECRET_FILE holds, if you use webhooks: their secrets cannot be read without.'
    : `Keep with it ${secretFile}: without that the secrets of webhooks cannot be read.`
}
`
}

/** The same, for programs. */
const backupObject = ({ file, bytes, contents, database, secretFile }: ShownBackup) => ({
  file,
  bytes,
  ...contents,
  database,
  secret_file: secretFile,
})

/** PostgreSQL has a program of its own for copies: says how it is called. */
function pgDumpHint(target: string, config: Config): EvError {
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
