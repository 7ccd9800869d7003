import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Config } from '../config/settings.ts'
import { type Backup, backup } from '../maintenance/backup.ts'
import { EvError } from '../platform/error.ts'
import { formatBytes, pluralize } from '../platform/format.ts'
import { type CliContext, inCwd } from './context.ts'
import { databaseUrl, isShared } from './database.ts'
import { printJson, printText } from './print.ts'
import { readConfig } from './settings.ts'

export type BackupFlags = {
  readonly force?: boolean
  readonly json?: boolean
  readonly [setting: string]: unknown
}

/** Runs `ev backup` and returns the exit code. */
export function backupCommand(context: CliContext, target: string, flags: BackupFlags): number {
  const config = readConfig(context, flags)
  if (isShared(config)) throw pgDumpHint(target, config)
  const file = resolve(inCwd(context, target))
  const input = { databaseUrl: databaseUrl(config), file, force: flags.force ?? false }
  const copy = backup(input)
  const secretFile = config.secretFile ?? join(config.dataDir, 'secret')
  const isInFile = config.secret === null && existsSync(secretFile)
  const shown = { ...copy, secretFile: isInFile ? secretFile : null }
  if (flags.json) printJson(context, backupObject(shown))
  else printText(context, backupText(shown))
  return 0
}

type BackupReport = Backup & {
  /**
   * File with the key that decrypts secrets in the copy; null if there is none or it is not a file.
   */
  readonly secretFile: string | null
}

/** Formats the contents of a copy and how to restore it. */
function backupText({ file, bytes, contents, database, secretFile }: BackupReport): string {
  const { accounts, keys, webhooks, lists, rows, verifications, answers } = contents
  return `Backed up the database to ${file}: ${formatBytes(bytes)}, verified.
  ${pluralize(accounts, 'account')} with ${pluralize(keys, 'key')} and ${pluralize(webhooks, 'webhook')}
  ${pluralize(lists, 'list')} of ${pluralize(rows, 'row')}
  ${pluralize(verifications, 'verification')} in the history, ${pluralize(answers, 'cached answer')}

To restore it: stop every ev process, remove ${database}-wal and ${database}-shm, copy this file to
${database}, and start ev.
${
  secretFile === null
    ? 'If you use webhooks, also back up the value of EV_SECRET or EV_SECRET_FILE: it decrypts their secrets.'
    : `Also back up ${secretFile}: it decrypts the secrets of webhooks.`
}
`
}

const backupObject = ({ file, bytes, contents, database, secretFile }: BackupReport) => ({
  file,
  bytes,
  ...contents,
  database,
  secret_file: secretFile,
})

/** Returns the error for a PostgreSQL database, which pg_dump backs up. */
function pgDumpHint(target: string, config: Config): EvError {
  const file = shellQuoted(target)
  const url = shellQuoted(withoutPasswords(databaseUrl(config)))
  return new EvError(
    'usage',
    `"ev backup" does not support PostgreSQL. Use pg_dump, which reads the password from PGPASSWORD or ~/.pgpass:
  pg_dump --format=custom --file=${file} --dbname=${url}
To restore the copy, stop every ev process and load it into an empty database:
  pg_restore --no-owner --exit-on-error --dbname=${url} ${file}
Also back up the value of EV_SECRET or EV_SECRET_FILE, or the file "secret" in the data directory: it decrypts the secrets of webhooks.`,
  )
}

/** Removes passwords, because other users can read the command line of a process. */
function withoutPasswords(url: string): string {
  const bare = new URL(url)
  bare.password = ''
  for (const name of ['password', 'sslpassword']) bare.searchParams.delete(name)
  return bare.href
}

const shellQuoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
