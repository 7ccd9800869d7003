import type { Command } from 'commander'
import type { CliContext, SetExitCode } from '../context.ts'
import { addSettings, DATA_SETTINGS } from '../settings.ts'

const EXAMPLES = `
Examples:
  ev backup /backup/ev.sqlite
  ev backup "/backup/ev-$(date +%F).sqlite"
  ev backup /backup/ev.sqlite --force

The copy is a consistent snapshot; other processes can keep writing to the database. ev verifies the copy before it
renames the file to its final name. Rate limit counters and the secret in the data directory are not copied.`

export function addBackup(ev: Command, context: CliContext, setExitCode: SetExitCode): void {
  const backup = ev
    .command('backup')
    .description('back up the database while it is in use, and verify the copy')
    .argument('<file>', 'path of the copy')
    .option('--force', 'overwrite the file if it exists')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', EXAMPLES)
    .action(async (file: string, flags) => {
      const { backupCommand } = await import('../backup.ts')
      setExitCode(backupCommand(context, file, flags))
    })
  addSettings(backup, context, [...DATA_SETTINGS, 'secretFile'])
}
