import { Argument, type Command } from 'commander'
import type { CliContext, SetExitCode } from '../context.ts'
import type { ListChoice } from '../lists-update.ts'
import { addSettings } from '../settings.ts'

const LIST_CHOICES: readonly ListChoice[] = ['disposable', 'allow', 'blocked', 'spam-trap', 'role']

const EXAMPLES = `
Examples:
  ev lists update disposable --disposable-file disposable.txt https://lists.example.com/domains.txt
  ev lists update disposable ours.txt https://lists.example.com/domains.json --dry-run
  ev lists update blocked crm-export.txt

A source is a text file with one entry per line, or a JSON array of strings. ev replaces the whole file of the
list, and only if it could read every source. To keep entries of your own, name their file as a source.
Send SIGHUP to a running ev to reload the list.`

export function addLists(ev: Command, context: CliContext, setExitCode: SetExitCode): void {
  const lists = ev
    .command('lists')
    .description('update the files of custom lists')
    .addHelpText('after', EXAMPLES)
  const update = lists
    .command('update')
    .description('write the file of a list from files and URLs')
    .addArgument(new Argument('<list>', 'the list').choices(LIST_CHOICES))
    .argument('<source...>', 'files, and http:// or https:// URLs')
    .option('--dry-run', 'show what would change, and write nothing')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', EXAMPLES)
    .action(async (list: ListChoice, sources: string[], flags) => {
      const { updateCommand } = await import('../lists-update.ts')
      setExitCode(await updateCommand(context, list, sources, flags))
    })
  addSettings(update, context, [
    ...(['disposableFile', 'allowFile', 'blockedFile', 'spamTrapFile', 'roleFile'] as const),
    ...(['dns', 'allowRanges'] as const),
  ])
}
