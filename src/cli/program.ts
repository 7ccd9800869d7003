import { Command, type OutputConfiguration } from 'commander'
import { addAccounts } from './command/accounts.ts'
import { addBackup } from './command/backup.ts'
import { addBulk } from './command/bulk.ts'
import { addCompletion } from './command/completion.ts'
import { addConfig } from './command/config.ts'
import { addDoctor } from './command/doctor.ts'
import { addJobs } from './command/jobs.ts'
import { addKeys } from './command/keys.ts'
import { addLists } from './command/lists.ts'
import { addMigrate } from './command/migrate.ts'
import { addPurge } from './command/purge.ts'
import { addServe } from './command/serve.ts'
import { addVerify } from './command/verify.ts'
import { addWebhooks } from './command/webhooks.ts'
import { addWorker } from './command/worker.ts'
import { addSimulate } from './command/world.ts'
import type { CliContext, CliOutput, EndWith } from './context.ts'
import { hintAtPassword } from './settings/password-hint.ts'
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
