import { Command, type OutputConfiguration } from 'commander'
import { hasPassword } from '../config/password.ts'
import { addAccounts } from './commands/accounts.ts'
import { addBackup } from './commands/backup.ts'
import { addBulk } from './commands/bulk.ts'
import { addCompletion } from './commands/completion.ts'
import { addConfig } from './commands/config.ts'
import { addDoctor } from './commands/doctor.ts'
import { addJobs } from './commands/jobs.ts'
import { addKeys } from './commands/keys.ts'
import { addLists } from './commands/lists.ts'
import { addMigrate } from './commands/migrate.ts'
import { addPurge } from './commands/purge.ts'
import { addServe } from './commands/serve.ts'
import { addSimulate } from './commands/simulate.ts'
import { addVerify } from './commands/verify.ts'
import { addWebhooks } from './commands/webhooks.ts'
import { addWorker } from './commands/worker.ts'
import type { CliContext, CliOutput, SetExitCode } from './context.ts'
import { version } from './version.ts'

/** Defines all commands with their options. Each loads its modules only when it runs. */
export function program(context: CliContext, setExitCode: SetExitCode): Command {
  const ev = new Command('ev')
    .description('Verify whether an email address can receive mail, without sending any.')
    .version(version())
    .showHelpAfterError('Run "ev help" to see all commands and options.')
    .exitOverride()
    .configureOutput(outputOf(context))
    .hook('preAction', (_, action) => warnAboutPassword(context, action.opts()))
  // Subcommands inherit these settings when they are added, so this comes after them.
  for (const add of [
    addVerify,
    addBulk,
    addServe,
    addWorker,
    addDoctor,
    addJobs,
    addConfig,
    addLists,
    addKeys,
    addAccounts,
    addWebhooks,
    addBackup,
    addMigrate,
    addPurge,
    addCompletion,
    addSimulate,
  ])
    add(ev, context, setExitCode)
  return ev
}

/** Help is as wide as the terminal and has no colors. */
const outputOf = ({ stdout, stderr }: CliContext): OutputConfiguration => ({
  writeOut: text => void stdout.write(text),
  writeErr: text => void stderr.write(text),
  getOutHelpWidth: () => widthOf(stdout),
  getErrHelpWidth: () => widthOf(stderr),
  getOutHasColors: () => false,
  getErrHasColors: () => false,
})

/** Width of help in characters if the output is not a terminal: the default of commander. */
const WIDTH = 80

const widthOf = ({ isTTY, columns }: CliOutput) => (isTTY === true ? (columns ?? WIDTH) : WIDTH)

/** Flags that take the URL of a database, by their names in commander. */
const DATABASE_FLAGS = { database: '--database', to: '--to' } as const

/** Warns on stderr if a flag has a password, which other users can see. The flag still applies. */
function warnAboutPassword(context: CliContext, flags: Readonly<Record<string, unknown>>): void {
  for (const [key, flag] of Object.entries(DATABASE_FLAGS)) {
    const value = flags[key]
    if (typeof value === 'string' && hasPassword(value)) context.stderr.write(passwordWarning(flag))
  }
}

const passwordWarning = (flag: string) =>
  `ev: Other users of this machine can see the password in ${flag} in the process list. Set the URL as EV_DATABASE in ` +
  'the environment or as "database" in the config file, or set only the password as PGPASSWORD or in ~/.pgpass.\n'
