import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { type Command, Option } from 'commander'
import type { Config } from '../config/settings.ts'
import { findSecret, secretPath } from '../db/service-secret.ts'
import type { Encryption } from '../maintenance/age-file.ts'
import type { Backup } from '../maintenance/backup.ts'
import { EvError } from '../platform/error.ts'
import { formatBytes } from '../platform/format.ts'
import { type CliContext, inCwd, type SetExitCode } from './context.ts'
import { contentsText } from './copy-contents.ts'
import { databaseUrl, isShared } from './database-location.ts'
import { EXIT_CODES } from './exit.ts'
import { collect } from './flag-values.ts'
import {
  askPassphrase,
  checkPassphrase,
  findPassphrase,
  type PassphraseFlags,
} from './passphrase.ts'
import { printJson, printMessage, printText } from './print.ts'
import { addSettings, DATA_SETTINGS, readConfig } from './settings.ts'
import { startInterruption } from './stop-signals.ts'

const EXAMPLES = `
Examples:
  ev backup /backup/ev.sqlite
  ev backup --encrypt /backup/ev.age
  ev backup --passphrase-file /etc/ev-backup.key "/backup/ev-$(date +%F).age"
  ev backup --recipient age1… /backup/ev.age
  ev backup --force /backup/ev.sqlite

The copy is a consistent snapshot; other processes can keep writing to the database. ev verifies the copy before it
renames the file to its final name. Rate limit counters are not copied.

An encrypted copy includes the secret that decrypts the secrets of webhooks; an unencrypted one does not. Encrypted
copies are age files (https://age-encryption.org): "age -d" decrypts them to the SQLite file. The
passphrase is read from --passphrase-file, from EV_BACKUP_PASSPHRASE or, with --encrypt, from the terminal. With
--recipient, the machine that makes the backups cannot decrypt them: create a key pair elsewhere with "age-keygen", and
set the public key.`

export function defineBackup(backup: Command, context: CliContext, setExitCode: SetExitCode): void {
  backup
    .argument('<file>', 'path of the copy')
    .option('--encrypt', 'ask for a passphrase, and encrypt the copy with it')
    .option('--passphrase-file <file>', 'encrypt the copy with the passphrase in this file')
    .addOption(
      new Option(
        '--recipient <key>',
        'encrypt the copy for a public key of age; repeat it for several',
      ).argParser(collect),
    )
    .option('--force', 'overwrite the file if it exists')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', EXAMPLES)
    .action(async (file: string, flags) => {
      setExitCode(await backupCommand(context, file, flags))
    })
  addSettings(backup, context, [...DATA_SETTINGS, 'secretFile'])
}

type BackupFlags = PassphraseFlags & {
  readonly encrypt?: boolean
  readonly recipient?: readonly string[]
  readonly force?: boolean
  readonly json?: boolean
  readonly [setting: string]: unknown
}

/** Makes the copy, verifies it and returns the exit code. */
async function backupCommand(
  context: CliContext,
  target: string,
  flags: BackupFlags,
): Promise<number> {
  const config = readConfig(context, flags)
  if (isShared(config)) throw pgDumpHint(target, config)
  const file = resolve(inCwd(context, target))
  const encryption = await readEncryption(context, flags)
  const secret = encryption === null ? null : findSecret(config)
  const input = { databaseUrl: databaseUrl(config), file, force: flags.force ?? false }
  const { backup } = await import('../maintenance/backup.ts')
  const stop = startInterruption(context, 'removing the unfinished copy')
  try {
    const copy = await backup({ ...input, encryption, secret }, stop.signal)
    const secretFile = secretFileOf(config)
    if (flags.json) printJson(context, backupObject(copy, secretFile))
    else {
      printText(context, backupText(copy, target))
      if (!copy.hasSecret) printMessage(context, 'warning', secretWarning(copy, secretFile))
    }
    return 0
  } catch (error) {
    if (!stop.signal.aborted) throw error
    context.stderr.write('Stopped: no backup was written.\n')
    return EXIT_CODES.interrupted
  } finally {
    stop.dispose()
  }
}

/** Reads how to encrypt the copy; null for a copy that is not encrypted. Throws EvError('usage'). */
async function readEncryption(context: CliContext, flags: BackupFlags): Promise<Encryption | null> {
  const { recipient: recipients = [], passphraseFile, encrypt = false } = flags
  if (recipients.length > 0) {
    if (passphraseFile !== undefined || encrypt) {
      throw new EvError(
        'usage',
        'A backup is encrypted with a passphrase or for recipients, not both. Remove --recipient, or --passphrase-file and --encrypt.',
      )
    }
    const { checkEncryption } = await import('../maintenance/age-file.ts')
    const encryption = { recipients }
    checkEncryption(encryption)
    return encryption
  }
  const passphrase = findPassphrase(context, flags)
  if (passphrase !== null) return { passphrase: checkPassphrase(passphrase) }
  if (!encrypt) return null
  const asked = await askPassphrase(context, { isNew: true })
  if (asked !== null) return { passphrase: checkPassphrase(asked) }
  throw new EvError(
    'usage',
    '--encrypt asks for a passphrase, which needs a terminal. Set --passphrase-file, EV_BACKUP_PASSPHRASE or --recipient.',
  )
}

/** Returns the file of the secret; null if there is none or it is not in a file. */
function secretFileOf(config: Config): string | null {
  const file = secretPath(config)
  return config.secret === null && existsSync(file) ? file : null
}

function secretWarning({ isEncrypted }: Backup, secretFile: string | null): string {
  const without = 'The backup does not have the secret that decrypts the secrets of webhooks'
  if (isEncrypted) {
    return `${without}, because none is set here. If the service has EV_SECRET or EV_SECRET_FILE, set the same for this command.`
  }
  return `${without}, because it is not encrypted. Store ${
    secretFile ?? 'the value of EV_SECRET or EV_SECRET_FILE, if the service has one,'
  } separately, or add --encrypt, --passphrase-file or --recipient to include it.`
}

/** Formats the contents of a copy and how to restore it. */
function backupText(
  { file, bytes, contents, isEncrypted, hasSecret }: Backup,
  target: string,
): string {
  const what = hasSecret ? 'the database and the secret' : 'the database'
  return `Backed up ${what} to ${file}: ${formatBytes(bytes)}, verified${isEncrypted ? ' and encrypted' : ''}.
${contentsText(contents)}

To restore it, stop every ev process and run: ev restore ${shellQuoted(target)}
`
}

const backupObject = (
  { file, bytes, contents, database, isEncrypted, hasSecret }: Backup,
  secretFile: string | null,
) => ({
  file,
  bytes,
  ...contents,
  database,
  encrypted: isEncrypted,
  includes_secret: hasSecret,
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
export function withoutPasswords(url: string): string {
  const bare = new URL(url)
  bare.password = ''
  for (const name of ['password', 'sslpassword']) bare.searchParams.delete(name)
  return bare.href
}

export const shellQuoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
