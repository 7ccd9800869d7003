import { Argument, type Command, Option } from 'commander'
import { SETTINGS } from '../../config/settings.ts'
import { YES } from '../confirm.ts'
import type { CliContext, SetExitCode } from '../context.ts'
import { worksWithoutData } from '../ev-command.ts'
import { collect } from '../flag-values.ts'
import type { ListChoice } from '../lists-update.ts'
import { addSettings, DATA_SETTINGS } from '../settings.ts'

const DOCTOR_EXAMPLES = `
Examples:
  ev doctor --helo probe.example.com --mail-from probe@example.com
  ev doctor --json
  ev doctor --ask mx.example.com,192.0.2.25

Exit codes: 0 no check failed, but there may be warnings; 1 at least one check failed.`

export function defineDoctor(doctor: Command, context: CliContext, setExitCode: SetExitCode): void {
  worksWithoutData(doctor)
  doctor
    .option(
      '--ask <host,…>',
      'mail servers to connect to, by name or IP address (default: large providers)',
    )
    .option('--json', 'print the results as JSON')
    .addHelpText('after', DOCTOR_EXAMPLES)
    .action(async flags => {
      const { doctorCommand } = await import('../doctor.ts')
      setExitCode(await doctorCommand(context, flags))
    })
  addSettings(doctor, context)
}

const CONFIG_EXAMPLES = `
Examples:
  ev config
  ev config --json
  EV_HELO=probe.example.com ev config --proxy socks5://proxy.example.com:1080

Passwords in URLs are not shown. A setting shown as – is not set, so ev uses its default.`

export function defineConfig(config: Command, context: CliContext, setExitCode: SetExitCode): void {
  worksWithoutData(config)
  config
    .option('--json', 'print JSON: one object')
    .addHelpText('after', CONFIG_EXAMPLES)
    .action(async flags => {
      const { configCommand } = await import('../config-command.ts')
      setExitCode(configCommand(context, flags))
    })
  addSettings(
    config,
    context,
    SETTINGS.map(one => one.key),
  )
}

const LIST_CHOICES: readonly ListChoice[] = ['disposable', 'allow', 'blocked', 'spam-trap', 'role']

const LISTS_EXAMPLES = `
Examples:
  ev lists update disposable --disposable-file disposable.txt https://lists.example.com/domains.txt
  ev lists update disposable ours.txt https://lists.example.com/domains.json --dry-run
  ev lists update blocked crm-export.txt

A source is a text file with one entry per line, or a JSON array of strings. ev replaces the whole file of the
list, and only if it could read every source. To keep your own entries, add their file as a source. To
make a running ev load the new list, send it SIGHUP.`

export function defineLists(lists: Command, context: CliContext, setExitCode: SetExitCode): void {
  lists.addHelpText('after', LISTS_EXAMPLES)
  const update = lists
    .command('update')
    .description('write the file of a list from files and URLs')
    .addArgument(new Argument('<list>', 'list to update').choices(LIST_CHOICES))
    .argument('<source...>', 'file, or http:// or https:// URL')
    .option('--dry-run', 'show what would change, and write nothing')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', LISTS_EXAMPLES)
    .action(async (list: ListChoice, sources: string[], flags) => {
      const { updateCommand } = await import('../lists-update.ts')
      setExitCode(await updateCommand(context, list, sources, flags))
    })
  worksWithoutData(update)
  addSettings(update, context, [
    ...(['disposableFile', 'allowFile', 'blockedFile', 'spamTrapFile', 'roleFile'] as const),
    ...(['dns', 'allowRanges'] as const),
  ])
}

const BACKUP_EXAMPLES = `
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
    .addHelpText('after', BACKUP_EXAMPLES)
    .action(async (file: string, flags) => {
      const { backupCommand } = await import('../backup.ts')
      setExitCode(await backupCommand(context, file, flags))
    })
  addSettings(backup, context, [...DATA_SETTINGS, 'secretFile'])
}

const RESTORE_EXAMPLES = `
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
    .addHelpText('after', RESTORE_EXAMPLES)
    .action(async (file: string, flags) => {
      const { restoreCommand } = await import('../restore.ts')
      setExitCode(await restoreCommand(context, file, flags))
    })
  addSettings(restore, context, [...DATA_SETTINGS, 'secretFile'])
}

const MIGRATE_EXAMPLES = `
Examples:
  EV_DATABASE=postgres://ev:…@db.example.com/ev ev migrate
  EV_DATABASE=postgres://ev:…@db.example.com/ev ev migrate --from /var/lib/ev
  ev migrate --from /var/lib/ev --to postgres://ev@db.example.com/ev --json

Stop "ev serve" first. The PostgreSQL database must be empty. The copy is atomic, and the data directory is not
changed. Set EV_SECRET to the secret of the data directory for every process that uses the copy.`

export function defineMigrate(
  migrate: Command,
  context: CliContext,
  setExitCode: SetExitCode,
): void {
  migrate
    .option(
      '--from <dir>',
      'data directory to copy (default: EV_DATA_DIR, otherwise ~/.local/share/ev)',
    )
    .option('--to <url>', 'target database: postgres://… (default: EV_DATABASE)')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', MIGRATE_EXAMPLES)
    .action(async flags => {
      const { migrateCommand } = await import('../migrate.ts')
      setExitCode(await migrateCommand(context, flags))
    })
  addSettings(migrate, context, ['secret', 'secretFile'])
}

const PURGE_EXAMPLES = `
Examples:
  ev purge
  ev purge --dry-run
  ev purge --keep-results 7
  ev purge --all
  ev purge --address ann@example.com --yes

Without options, ev deletes what is older than --keep-results and --keep-history. Unfinished lists are kept; to delete
one, run "ev jobs delete ID". With --address, rows of finished lists and of the history keep only their class, so that
counts stay correct. Stored responses to requests with an Idempotency-Key are encrypted and expire within a day. Your
own list and output files are never changed.`

export function definePurge(purge: Command, context: CliContext, setExitCode: SetExitCode): void {
  purge
    .option('--all', 'delete all finished lists, history and cached answers, regardless of age')
    .addOption(
      new Option('--address <address>', 'erase only this address, everywhere').conflicts('all'),
    )
    .option('--dry-run', 'show what would be deleted, and delete nothing')
    .option(...YES)
    .option('--json', 'print JSON: one object')
    .addHelpText('after', PURGE_EXAMPLES)
    .action(async flags => {
      const { purgeCommand } = await import('../purge.ts')
      setExitCode(await purgeCommand(context, flags))
    })
  addSettings(purge, context, ['keepResultsMs', 'keepHistoryMs', ...DATA_SETTINGS])
}
