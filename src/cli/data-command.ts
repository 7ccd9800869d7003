import { type Command, Option } from 'commander'
import type { EvClient } from '../client/client.ts'
import type { Config, Settings } from '../config/settings.ts'
import type { CliContext } from './context.ts'
import { worksOnService } from './ev-command.ts'
import { noSuchCommand } from './help.ts'
import { printJson, printText } from './print.ts'
import { connectService, type ServiceFlags } from './service.ts'
import { addSettings, DATA_SETTINGS, readConfig } from './settings.ts'
import { type Column, table } from './table.ts'
import { widthOf } from './width.ts'

// Shared by the commands that read or change the data of this machine or, with --url, of a service.

/** Flags that most of these commands have. */
export type DataFlags = ServiceFlags & {
  readonly account?: string
  readonly json?: boolean
  readonly yes?: boolean
  readonly [setting: string]: unknown
}

/** Adds the settings of a command that works on stored data. */
export function worksOnData(
  command: Command,
  context: CliContext,
  settings: readonly (keyof Settings)[] = DATA_SETTINGS,
): void {
  addSettings(command, context, settings)
  worksOnService(command)
}

/** The two implementations of what a command calls. */
type Backends<B> = {
  /** `location` is the URL of the service, for messages. */
  readonly remote: (client: EvClient, location: string) => B
  /** Loaded only when it is used, because it loads the database. */
  readonly loadLocal: () => Promise<(context: CliContext, config: Config) => B>
}

/** Opens the data of the service that the flags select, or of this machine. */
export async function openBackend<B>(
  context: CliContext,
  flags: DataFlags,
  { remote, loadLocal }: Backends<B>,
): Promise<B> {
  const { service } = flags
  if (service !== undefined) return remote(await connectService(service), service.url)
  const config = readConfig(context, flags)
  return (await loadLocal())(context, config)
}

type ListCommand<F> = {
  readonly description: string
  readonly options?: readonly Option[]
  readonly examples: readonly string[]
  readonly settings?: readonly (keyof Settings)[]
  readonly run: (flags: F) => Promise<void>
}

/** Adds `list` to a command, which runs it if no subcommand is named: `ev keys` lists keys. */
export function addListCommand<F extends DataFlags>(
  parent: Command,
  context: CliContext,
  { description, options = [], examples, settings, run }: ListCommand<F>,
): void {
  const list = parent
    .command('list', { isDefault: true })
    .description(description)
    .allowExcessArguments()
  for (const option of options) list.addOption(option)
  list
    .option('--json', 'print JSON: an array of objects')
    .addHelpText('after', `\nExamples:\n${examples.map(one => `  ${one}\n`).join('')}`.trimEnd())
    .action(async (flags: F, { args: [unknown] }: Command) => {
      if (unknown !== undefined) throw noSuchCommand(unknown, parent)
      await run(flags)
    })
  worksOnData(list, context, settings)
}

type TableFormat<T> = {
  readonly columns: readonly Column[]
  readonly rowOf: (row: T) => readonly string[]
  /** The sentence for an empty table. */
  readonly none: string
}

/** An object that belongs to an account. */
type Owned = { readonly id: string; readonly account_id: string }

type OwnedListCommand<T> = Pick<ListCommand<DataFlags>, 'description' | 'examples' | 'settings'> & {
  /** Plural name of the objects, such as `keys`. */
  readonly noun: string
  readonly open: (
    flags: DataFlags,
  ) => Promise<{ list(account: string | undefined): Promise<readonly T[]> }>
  readonly table: TableFormat<T>
}

/** Adds `list` for objects that belong to accounts. */
export function addOwnedListCommand<T extends Owned>(
  parent: Command,
  context: CliContext,
  { noun, open, table: format, ...command }: OwnedListCommand<T>,
): void {
  addListCommand(parent, context, {
    ...command,
    options: [new Option('--account <account>', `only ${noun} of this account, by ID or name`)],
    run: async flags => {
      const objects = await (await open(flags)).list(flags.account)
      if (flags.json) printJson(context, objects.map(ownedObject))
      else printTable(context, objects, format)
    },
  })
}

/** Prints rows as a table. Without rows, prints the sentence `none`. */
export function printTable<T>(
  context: CliContext,
  rows: readonly T[],
  { columns, rowOf, none }: TableFormat<T>,
): void {
  const { stdout } = context
  if (rows.length === 0) printText(context, none)
  else stdout.write(table(columns, rows.map(rowOf), widthOf(context, stdout)))
}

/** Returns the JSON form of an object of an account: its ID and that of the account come first. */
export const ownedObject = <T extends Owned>({ id, account_id, ...rest }: T) => ({
  id,
  account_id,
  ...rest,
})
