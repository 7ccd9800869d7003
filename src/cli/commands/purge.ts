import { type Command, Option } from 'commander'
import type { CliContext, EndWith } from '../context.ts'
import { addSettings, DATA_SETTINGS } from '../settings.ts'

const EXAMPLES = `
Examples:
  ev purge
  ev purge --dry-run
  ev purge --keep-results 7
  ev purge --all
  ev purge --address ann@example.com

Lists that are not finished always stay; “ev jobs delete ID” removes one. Of an address that is forgotten the
rows of finished lists and of the history keep their place and their class, so that counts stay true, and hold
nothing else; answers to requests with an Idempotency-Key, which are sealed, go by themselves within a day. Your own
files, lists as well as outputs, are never touched.`

export function addPurge(ev: Command, context: CliContext, end: EndWith): void {
  const purge = ev
    .command('purge')
    .description('remove what is no longer needed: old finished lists, history, answers, leftovers')
    .option(
      '--all',
      'every finished list, all of the history and all remembered answers, however young',
    )
    .addOption(
      new Option('--address <address>', 'forget this one address instead').conflicts('all'),
    )
    .option('--dry-run', 'only say what would go')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', EXAMPLES)
    .action(async flags => {
      const { purgeCommand } = await import('../purge.ts')
      end(await purgeCommand(context, flags))
    })
  addSettings(purge, context, ['keepResultsMs', 'keepHistoryMs', ...DATA_SETTINGS])
}
