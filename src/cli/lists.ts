import { Argument, type Command } from 'commander'
import { EvError } from '../platform/error.ts'
import { formatNumber, pluralize } from '../platform/format.ts'
import type { CliContext } from './context.ts'
import { worksWithoutData } from './ev-command.ts'
import type { ListUpdate, UpdateFlags } from './lists-update.ts'
import { printJson, printText } from './print.ts'
import { addSettings, readConfig } from './settings.ts'

/** The lists by their names in the command, each with its setting. */
const LISTS = {
  disposable: { list: 'disposable', setting: 'disposableFile' },
  allow: { list: 'allow', setting: 'allowFile' },
  blocked: { list: 'blocked', setting: 'blockedFile' },
  'spam-trap': { list: 'spamTrap', setting: 'spamTrapFile' },
  role: { list: 'role', setting: 'roleFile' },
} as const

type ListName = keyof typeof LISTS

const LIST_NAMES = Object.keys(LISTS) as ListName[]

const EXAMPLES = `
Examples:
  ev lists update disposable --disposable-file disposable.txt https://lists.example.com/domains.txt
  ev lists update disposable ours.txt https://lists.example.com/domains.json --dry-run
  ev lists update blocked crm-export.txt

A source is a text file with one entry per line, or a JSON array of strings. ev replaces the whole file of the
list, and only if it could read every source. To keep your own entries, add their file as a source. To
make a running ev load the new list, send it SIGHUP.`

export function defineLists(lists: Command, context: CliContext): void {
  lists.addHelpText('after', EXAMPLES)
  const update = lists
    .command('update')
    .description('write the file of a list from files and URLs')
    .addArgument(new Argument('<list>', 'list to update').choices(LIST_NAMES))
    .argument('<source...>', 'file, or http:// or https:// URL')
    .option('--dry-run', 'show what would change, and write nothing')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', EXAMPLES)
    .action((list: ListName, sources: string[], flags) =>
      updateCommand(context, list, sources, flags),
    )
  worksWithoutData(update)
  const files = LIST_NAMES.map(name => LISTS[name].setting)
  addSettings(update, context, [...files, 'dns', 'allowRanges'])
}

async function updateCommand(
  context: CliContext,
  name: ListName,
  sources: readonly string[],
  flags: UpdateFlags,
): Promise<void> {
  const config = readConfig(context, flags)
  const { list, setting } = LISTS[name]
  const file = config[setting]
  if (file === null) {
    const sentence = `Name the file to write with --${name}-file, or in the config file.`
    throw new EvError('usage', sentence)
  }
  const { updateList } = await import('./lists-update.ts')
  const isDryRun = flags.dryRun === true
  const update = await updateList(context, config, { list, file, sources, isDryRun })
  if (flags.json) printJson(context, { list: name, ...update })
  else printText(context, updateText(update))
}

function updateText({ file, written, entries, added, removed, sources }: ListUpdate): string {
  const lines = sources.map(({ source, entries, left_out, first_left_out }) => {
    const first =
      first_left_out === null ? '' : `; left out ${formatNumber(left_out)}, first ${first_left_out}`
    return `${source}: ${pluralize(entries, 'entry')}${first}\n`
  })
  const verb = written ? 'has' : 'would have'
  const change = `${formatNumber(added)} added, ${formatNumber(removed)} removed`
  return `${lines.join('')}${file} ${verb} ${pluralize(entries, 'entry')}: ${change}.\n`
}
