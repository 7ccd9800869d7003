import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import type { Config } from '../config/settings.ts'
import { fileOf } from '../db/database-url.ts'
import type { DecryptionKey } from '../maintenance/age-file.ts'
import type { Restored } from '../maintenance/restore.ts'
import { pathExists } from '../platform/directory.ts'
import { EvError } from '../platform/error.ts'
import { shellQuoted, withoutPasswords } from './backup.ts'
import { type CliContext, inCwd, type SetExitCode } from './context.ts'
import { contentsText } from './copy-contents.ts'
import { databaseUrl, isShared } from './database-location.ts'
import { EXIT_CODES } from './exit.ts'
import {
  askPassphrase,
  findPassphrase,
  type PassphraseFlags,
  readSecretFile,
} from './passphrase.ts'
import { printJson, printText } from './print.ts'
import { addSettings, DATA_SETTINGS, readConfig } from './settings.ts'
import { startInterruption } from './stop-signals.ts'

const EXAMPLES = `
Examples:
  ev restore /backup/ev.age
  ev restore --passphrase-file /etc/ev-backup.key /backup/ev.age
  ev restore --identity key.txt --data-dir /var/lib/ev /backup/ev.age
  ev restore --force /backup/ev.sqlite

Stop every ev process first. ev checks the integrity and the version of the backup, and that the secret decrypts what it
contains, before it changes anything. A backup of an earlier version is migrated to this one. The database is replaced
atomically: if ev is killed, the earlier one or the new one is there. With --force, the earlier one is kept beside it.`

export function defineRestore(
  restore: Command,
  context: CliContext,
  setExitCode: SetExitCode,
): void {
  restore
    .argument('<file>', 'file that "ev backup" has written')
    .option('--passphrase-file <file>', 'decrypt the backup with the passphrase in this file')
    .option('--identity <file>', 'decrypt the backup with the secret key of age in this file')
    .option('--force', 'replace an existing database; the earlier one is kept')
    .option('--without-secret', 'restore although webhook secrets cannot be decrypted')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', EXAMPLES)
    .action(async (file: string, flags) => {
      setExitCode(await restoreCommand(context, file, flags))
    })
  addSettings(restore, context, [...DATA_SETTINGS, 'secretFile'])
}

type RestoreFlags = PassphraseFlags & {
  readonly identity?: string
  readonly force?: boolean
  readonly withoutSecret?: boolean
  readonly json?: boolean
  readonly [setting: string]: unknown
}

/** Replaces the database by the backup and returns the exit code. */
async function restoreCommand(
  context: CliContext,
  source: string,
  flags: RestoreFlags,
): Promise<number> {
  const config = readConfig(context, flags)
  if (isShared(config)) throw pgRestoreHint(source, config)
  const file = resolve(inCwd(context, source))
  if (!pathExists(file)) {
    throw new EvError('no_input', `The backup ${file} does not exist. Correct the path.`)
  }
  if (statSync(file).isDirectory()) {
    throw new EvError('no_input', `${file} is a folder, not a backup. Name the file of the backup.`)
  }
  const key = await readKey(context, file, flags)
  const { force = false, withoutSecret = false } = flags
  const database = resolve(fileOf(databaseUrl(config)))
  const { restore } = await import('../maintenance/restore.ts')
  const stop = startInterruption(context, 'removing the unfinished copy')
  try {
    const input = { file, database, place: config, key, force, withoutSecret }
    const restored = await restore(context, input, stop.signal)
    if (flags.json) printJson(context, restoredObject(restored))
    else printText(context, restoredText(restored))
    return 0
  } catch (error) {
    if (!stop.signal.aborted) throw error
    context.stderr.write('Stopped: nothing was changed.\n')
    return EXIT_CODES.interrupted
  } finally {
    stop.dispose()
  }
}

/** Reads what decrypts a backup; null if it is not encrypted. Throws EvError('usage'). */
async function readKey(
  context: CliContext,
  file: string,
  flags: RestoreFlags,
): Promise<DecryptionKey | null> {
  const { encryptionOf } = await import('../maintenance/age-file.ts')
  const encryption = await encryptionOf(file)
  if (encryption === null) return null
  if (encryption === 'recipients') {
    if (flags.identity !== undefined)
      return { identities: readSecretFile(context, '--identity', flags.identity) }
    throw new EvError(
      'usage',
      `${file} is encrypted for a recipient. Set --identity to the file with its secret key, which "age-keygen" wrote.`,
    )
  }
  const passphrase =
    findPassphrase(context, flags) ?? (await askPassphrase(context, { isNew: false }))
  if (passphrase !== null) return { passphrase }
  throw new EvError(
    'usage',
    `${file} is encrypted with a passphrase. Set --passphrase-file or EV_BACKUP_PASSPHRASE, or run the command on a terminal.`,
  )
}

function restoredText({ database, contents, kept, secretFile, keptSecret }: Restored): string {
  return [
    `Restored ${database}, and checked its integrity and its version.`,
    contentsText(contents),
    ...(secretFile === null ? [] : [`The secret is in ${secretFile}.`]),
    ...(kept === null ? [] : [`The earlier database is kept as ${kept}.`]),
    ...(keptSecret === null ? [] : [`The earlier secret is kept as ${keptSecret}.`]),
    'Start ev to use it.',
  ].join('\n')
}

const restoredObject = ({ database, contents, kept, secretFile, keptSecret }: Restored) => ({
  database,
  ...contents,
  earlier_database: kept,
  secret_file: secretFile,
  earlier_secret: keptSecret,
})

/** Returns the error for a PostgreSQL database, which pg_restore restores. */
function pgRestoreHint(source: string, config: Config): EvError {
  const url = shellQuoted(withoutPasswords(databaseUrl(config)))
  return new EvError(
    'usage',
    `"ev restore" does not support PostgreSQL. Stop every ev process, and load the copy of pg_dump into an empty database:
  pg_restore --no-owner --exit-on-error --dbname=${url} ${shellQuoted(source)}
To load a backup of a SQLite database into PostgreSQL, restore it with --database sqlite:FILE first, and run "ev migrate".`,
  )
}
