import { type Command, Option } from 'commander'
import { YES } from '../confirm.ts'
import type { CliContext, SetExitCode } from '../context.ts'
import { addSettings, DATA_SETTINGS } from '../settings.ts'

const EXAMPLES = `
Examples:
  ev purge
  ev purge --dry-run
  ev purge --keep-results 7
  ev purge --all
  ev purge --address ann@example.com --yes

Unfinished lists are kept; to delete one, run "ev jobs delete ID". With --address, rows of finished lists and of the
history keep only their class, so that counts stay correct. Stored responses to requests with an Idempotency-Key are
encrypted and expire within a day. Your own list and output files are never changed.`

export function addPurge(ev: Command, context: CliContext, setExitCode: SetExitCode): void {
  const purge = ev
    .command('purge')
    .description('delete old finished lists, history, cached answers and leftover files')
    .option('--all', 'delete all finished lists, history and cached answers, regardless of age')
    .addOption(new Option('--address <address>', 'erase this one address instead').conflicts('all'))
    .option('--dry-run', 'show what would be deleted, and delete nothing')
    .option(...YES)
    .option('--json', 'print JSON: one object')
    .addHelpText('after', EXAMPLES)
    .action(async flags => {
      const { purgeCommand } = await import('../purge.ts')
      setExitCode(await purgeCommand(context, flags))
    })
  addSettings(purge, context, ['keepResultsMs', 'keepHistoryMs', ...DATA_SETTINGS])
}
