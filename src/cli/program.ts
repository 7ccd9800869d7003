import { type Command, CommanderError, type OutputConfiguration } from 'commander'
import { hasPassword } from '../config/values.ts'
import { COMMAND_GROUPS } from './command-table.ts'
import type { RunEv } from './completion/complete.ts'
import { type CliContext, type SetExitCode, VERSION_FLAGS, version } from './context.ts'
import { commandTree, EvCommand, worksWithoutData } from './ev-command.ts'
import { EXIT_CODES, reportError } from './exit.ts'
import { addHelp } from './help.ts'
import { printMessage } from './print.ts'
import { addServiceOptions, selectService } from './service.ts'
import { widthOf } from './width.ts'

type RunOptions = {
  /** Whether errors are printed with their stack. */
  readonly isDebug: boolean
  /** Runs another command line, for completion. */
  readonly runEv: RunEv
}

/** Runs a command line and returns the exit code. Errors are printed. */
export async function runCommand(
  argv: readonly string[],
  context: CliContext,
  { isDebug, runEv }: RunOptions,
): Promise<number> {
  let code = 0
  const setExitCode = (exitCode: number) => {
    code = exitCode
  }
  try {
    const ev = await program(context, { setExitCode, runEv, words: argv })
    await ev.parseAsync(argv, { from: 'user' })
    return code
  } catch (error) {
    if (!(error instanceof CommanderError)) return reportError(context, error, isDebug)
    // Commander has printed help or the version; help after a missing command ends with 1.
    return error.exitCode === 0 ? 0 : EXIT_CODES.usage
  }
}

type ProgramOptions = Pick<RunOptions, 'runEv'> & {
  readonly setExitCode: SetExitCode
  readonly words: readonly string[]
}

/**
 * Defines the commands that `words` name with their options, and the others with their name and
 * description only. Each command loads the modules that it works with when it runs.
 */
export async function program(
  context: CliContext,
  { setExitCode, runEv, words }: ProgramOptions,
): Promise<Command> {
  const evVersion = version()
  const ev = new EvCommand('ev')
    .description('Verify whether an email address can receive mail, without sending any.')
    .version(evVersion, VERSION_FLAGS, 'print the version')
    .helpOption('-h, --help', 'show help')
    .helpCommand(false)
    // Commands have options of their own with the names of options of `ev`, such as --url.
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput(outputOf(context))
    .addHelpText('after', EXAMPLES)
    .hook('preAction', (_, action) => {
      warnAboutPassword(context, action.opts())
      selectService(context, ev, action)
    })
  addServiceOptions(ev)
  // Subcommands inherit these settings when they are added, so this comes after them.
  for (const { title, commands } of COMMAND_GROUPS) {
    ev.commandsGroup(title)
    for (const { name, description, load } of commands) {
      const command = ev.command(name).description(description)
      if (words.includes(name)) (await load())(command, context, setExitCode)
    }
  }
  for (const command of commandTree(ev)) {
    if (command.commands.length > 0) addHelp(command)
  }
  for (const command of commandTree(ev)) {
    if (command !== ev && command instanceof EvCommand) command.addInheritedOptions(evVersion)
  }
  if (words.includes(COMPLETE)) addComplete(ev, context, runEv)
  return ev
}

const COMPLETE = '__complete'

/** Adds the hidden command that the completion scripts call with the words of a command line. */
function addComplete(ev: Command, context: CliContext, runEv: RunEv): void {
  const complete = ev.command(COMPLETE, { hidden: true })
  worksWithoutData(complete)
  complete
    .argument('[word...]')
    .helpOption(false)
    .passThroughOptions()
    .action(async (words: readonly string[]) => {
      const { completeCommand } = await import('./completion/complete.ts')
      await completeCommand(context, { ev, words, runEv })
    })
}

const EXAMPLES = `
Examples:
  ev verify ann@example.com
  ev bulk list.csv
  ev serve

To show the options and examples of a command, run "ev help COMMAND".`

/** Help is as wide as the terminal and has no colors. */
const outputOf = (context: CliContext): OutputConfiguration => ({
  writeOut: text => void context.stdout.write(text),
  writeErr: text => void context.stderr.write(text),
  getOutHelpWidth: () => widthOf(context, context.stdout) ?? WIDTH,
  getErrHelpWidth: () => widthOf(context, context.stderr) ?? WIDTH,
  getOutHasColors: () => false,
  getErrHasColors: () => false,
})

/** Width of help in characters if the output is not a terminal: the default of commander. */
const WIDTH = 80

/** Flags that take the URL of a database, by their names in commander. */
const DATABASE_FLAGS = { database: '--database', to: '--to' } as const

/** Warns on stderr if a flag has a password, which other users can see. The flag still applies. */
function warnAboutPassword(context: CliContext, flags: Readonly<Record<string, unknown>>): void {
  for (const [key, flag] of Object.entries(DATABASE_FLAGS)) {
    const value = flags[key]
    if (typeof value === 'string' && hasPassword(value))
      printMessage(context, 'warning', passwordWarning(flag))
  }
}

const passwordWarning = (flag: string) =>
  `Other users of this machine can see the password in ${flag} in the process list. Set the URL as EV_DATABASE in ` +
  'the environment or as "database" in the config file, or set only the password as PGPASSWORD or in ~/.pgpass.'
