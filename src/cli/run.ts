import { type Command, CommanderError, type OutputConfiguration } from 'commander'
import { hasPassword } from '../config/values.ts'
import { addAccounts, addAudit } from './commands/accounts.ts'
import { addFeedback } from './commands/feedback.ts'
import { addHelp } from './commands/help.ts'
import { addJobs } from './commands/jobs.ts'
import { addKeys } from './commands/keys.ts'
import {
  addBackup,
  addConfig,
  addDoctor,
  addLists,
  addMigrate,
  addPurge,
  addRestore,
} from './commands/maintenance.ts'
import { addSchedules } from './commands/schedules.ts'
import { addServe, addWorker } from './commands/serve.ts'
import { addCompletion, addMcp, addSimulate, addVersion } from './commands/tools.ts'
import { addBulk, addVerify } from './commands/verify.ts'
import { addWebhooks } from './commands/webhooks.ts'
import { type CliContext, type CliOutput, type SetExitCode, version } from './context.ts'
import { commandTree, EvCommand } from './ev-command.ts'
import { EXIT_CODES, reportError, watchOutput } from './exit.ts'
import { printMessage } from './print.ts'
import { widthOf } from './width.ts'

/**
 * Runs one command line and returns the exit code. Removes all listeners that it has added to the
 * context.
 */
export async function run(argv: readonly string[], context: CliContext): Promise<number> {
  const isDebug = argv.includes('--debug')
  const endWatch = watchOutput(context, isDebug)
  try {
    return await runCommand(argv, context, isDebug)
  } finally {
    await settled(context.stdout, context.stderr)
    endWatch()
  }
}

async function runCommand(
  argv: readonly string[],
  context: CliContext,
  isDebug: boolean,
): Promise<number> {
  let code = 0
  const ev = program(context, exitCode => {
    code = exitCode
  })
  try {
    await ev.parseAsync(argv, { from: 'user' })
    return code
  } catch (error) {
    if (!(error instanceof CommanderError)) return reportError(context, error, isDebug)
    // Commander has printed help or the version; help after a missing command ends with 1.
    return error.exitCode === 0 ? 0 : EXIT_CODES.usage
  }
}

/** Waits until all output is flushed or has failed, so that `watchOutput` sees a failure. */
async function settled(...outputs: readonly CliOutput[]): Promise<void> {
  for (const output of outputs) {
    if (output.writableLength === 0) continue
    await new Promise<void>(resolve => void output.write('', () => resolve()))
  }
  // A stream emits its error one turn of the event loop after the failed write.
  await new Promise<void>(resolve => void setImmediate(resolve))
}

/** Defines all commands with their options. Each loads its modules only when it runs. */
export function program(context: CliContext, setExitCode: SetExitCode): Command {
  const ev = new EvCommand('ev')
    .description('Verify whether an email address can receive mail, without sending any.')
    .version(version(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'show help')
    .helpCommand(false)
    .exitOverride()
    .configureOutput(outputOf(context))
    .addHelpText('after', EXAMPLES)
    .hook('preAction', (_, action) => warnAboutPassword(context, action.opts()))
  // Subcommands inherit these settings when they are added, so this comes after them.
  for (const [title, all] of GROUPS) {
    ev.commandsGroup(title)
    for (const add of all) add(ev, context, setExitCode)
  }
  for (const command of commandTree(ev)) {
    if (command.commands.length > 0) addHelp(command)
  }
  // The option of a command with subcommands would take precedence over theirs.
  for (const command of commandTree(ev).filter(({ commands }) => commands.length === 0)) {
    const hasOption = command.options.some(({ long }) => long === '--help-all')
    if (command instanceof EvCommand && !hasOption) command.addHelpAll({ isListed: false })
  }
  return ev
}

const EXAMPLES = `
Examples:
  ev verify ann@example.com
  ev bulk list.csv
  ev serve

To show the options and examples of a command, run "ev help COMMAND".`

/** The commands under their headings in help. */
const GROUPS = [
  ['Verify:', [addVerify, addBulk, addJobs]],
  [
    'Service:',
    [addServe, addWorker, addAccounts, addKeys, addWebhooks, addSchedules, addFeedback, addAudit],
  ],
  [
    'Set up and maintain:',
    [addDoctor, addConfig, addLists, addBackup, addRestore, addMigrate, addPurge],
  ],
  ['Tools:', [addMcp, addCompletion, addSimulate, addVersion]],
] as const

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
