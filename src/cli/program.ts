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
import type { CliContext, CliOutput, EndWith } from './context.ts'
import { version } from './version.ts'

/** All commands with their options; each loads what it needs only when it runs. */
export function program(context: CliContext, end: EndWith): Command {
  const ev = new Command('ev')
    .description('Finds out whether an email address can receive mail, before anyone sends to it.')
    .version(version())
    .showHelpAfterError('(ev help shows what there is)')
    .exitOverride()
    .configureOutput(outputOf(context))
    .hook('preAction', (_, action) => hintAtPassword(context, action.opts()))
  // A command takes over what is set here as it is added.
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
    add(ev, context, end)
  return ev
}

/** Help is as wide as the terminal, and has no colours. */
const outputOf = ({ stdout, stderr }: CliContext): OutputConfiguration => ({
  writeOut: text => void stdout.write(text),
  writeErr: text => void stderr.write(text),
  getOutHelpWidth: () => widthOf(stdout),
  getErrHelpWidth: () => widthOf(stderr),
  getOutHasColors: () => false,
  getErrHasColors: () => false,
})

/** Width of help where the output is no terminal, in characters: the default of commander. */
const WIDTH = 80

const widthOf = ({ isTTY, columns }: CliOutput) => (isTTY === true ? (columns ?? WIDTH) : WIDTH)

/** Flags that take the URL of a database, as commander names them, and where the same may stand unseen. */
const PLACES = { database: '--database', to: '--to' } as const

/** Says on stderr that a password is seen by others, where a flag holds one. It is taken all the same. */
function hintAtPassword(context: CliContext, flags: Readonly<Record<string, unknown>>): void {
  for (const [key, flag] of Object.entries(PLACES)) {
    const given = flags[key]
    if (typeof given === 'string' && hasPassword(given)) context.stderr.write(hintFor(flag))
  }
}

const hintFor = (flag: string) =>
  `ev: Whoever may list the processes of this machine sees the password in ${flag}. Give the URL as EV_DATABASE in the ` +
  'environment or as "database" in the config file, or the password alone as PGPASSWORD or in ~/.pgpass.\n'
