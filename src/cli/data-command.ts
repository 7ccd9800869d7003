import type { Command, Option } from 'commander'
import type { EvClient } from '../client/client.ts'
import type { Config, Settings } from '../config/settings.ts'
import type { CliContext } from './context.ts'
import { worksOnService } from './ev-command.ts'
import { noSuchCommand } from './help.ts'
import { printText } from './print.ts'
import { connectService, type ServiceFlags } from './service.ts'
import { addSettings, DATA_SETTINGS, readConfig } from './settings.ts'
import { type Column, table } from './table.ts'
import { widthOf } from './width.ts'

// What the commands share that work on stored data: that of this machine or, with --url, of a service.

/** Flags that most of them have. */
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

/** Prints a table, or a sentence if there are no rows. */
export function printTable<T>(
  context: CliContext,
  rows: readonly T[],
  o: {
    readonly columns: readonly Column[]
    readonly rowOf: (row: T) => readonly string[]
    readonly none: string
  },
): void {
  if (rows.length === 0) printText(context, o.none)
  else {
    const { stdout } = context
    stdout.write(table(o.columns, rows.map(o.rowOf), widthOf(context, stdout)))
  }
}

/** Returns the JSON form of what belongs to an account: its ID and that of the account come first. */
export const ownedObject = <T extends { readonly id: string; readonly account_id: string }>({
  id,
  account_id,
  ...rest
}: T) => ({ id, account_id, ...rest })
