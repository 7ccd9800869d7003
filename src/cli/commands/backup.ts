import type { Command } from 'commander'
import type { CliContext, EndWith } from '../context.ts'
import { addSettings, DATA_SETTINGS } from '../settings.ts'

const EXAMPLES = `
Examples:
  ev backup /backup/ev.sqlite
  ev backup "/backup/ev-$(date +%F).sqlite"
  ev backup /backup/ev.sqlite --force

The copy holds the database as it stands at one moment, and others go on writing meanwhile. It is read once more
before it gets its name. Limits of rate and the secret of the data directory are not in it.`

export function addBackup(ev: Command, context: CliContext, end: EndWith): void {
  const backup = ev
    .command('backup')
    .description('copy the database while others use it, and check the copy')
    .argument('<file>', 'where the copy goes')
    .option('--force', 'replace that file if it is there')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', EXAMPLES)
    .action(async (file: string, flags) => {
      const { backupCommand } = await import('../backup.ts')
      end(backupCommand(context, file, flags))
    })
  addSettings(backup, context, [...DATA_SETTINGS, 'secretFile'])
}
