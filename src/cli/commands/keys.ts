import type { Command } from 'commander'
import type { CliContext, EndWith } from '../context.ts'
import { addSettings, DATA_SETTINGS } from '../settings.ts'
import { noSuchCommand } from './no-such-command.ts'

const EXAMPLES = `
Examples:
  ev keys
  ev keys create --name CI
  ev keys create --name Shop --scopes verify:single --allow-ip 203.0.113.0/24 --expires 90d
  ev keys rotate key_4kq2
  ev keys revoke key_4kq2

They work while “ev serve” runs, which notices within a second. A key is shown when it is made and never again.
Rotating or revoking one signs out whoever came to the dashboard with it.`

export function addKeys(ev: Command, context: CliContext, end: EndWith): void {
  const keys = ev
    .command('keys')
    .description('keys of the HTTP API: see, make, rotate and revoke them')
    .addHelpText('after', EXAMPLES)
  addList(keys, context, end)
  addCreate(keys, context, end)
  addRotate(keys, context, end)
  addRevoke(keys, context, end)
}

function addList(keys: Command, context: CliContext, end: EndWith): void {
  const list = keys
    .command('list', { isDefault: true })
    .description('all that are not revoked')
    .allowExcessArguments()
    .option('--account <account>', 'of this account only: its ID or name')
    .option('--json', 'print JSON: an array of objects')
    .addHelpText('after', '\nExamples:\n  ev keys list\n  ev keys --json')
    .action(async (flags, { args: [unknown] }: Command) => {
      if (unknown !== undefined) throw noSuchCommand(unknown, keys)
      const { listCommand } = await import('../keys/change.ts')
      end(await listCommand(context, flags))
    })
  addSettings(list, context, DATA_SETTINGS)
}

function addCreate(keys: Command, context: CliContext, end: EndWith): void {
  const create = keys
    .command('create')
    .description('make one')
    .requiredOption('--name <name>', 'what it is for')
    .option('--scopes <a,b>', 'what it may do (default: everything)')
    .option('--allow-ip <range,…>', 'only from these addresses and CIDRs')
    .option('--allow-domain <domain,…>', 'only by browsers on these web sites')
    .option('--expires <time>', 'not after: 90d, 12h, or a date such as 2030-01-31')
    .option('--rate-limit <n>', 'requests a minute, beside the limit of the plan')
    .option('--account <account>', 'ID or name; may be left out where there is only one')
    .option('--json', 'print JSON: one object')
    .addHelpText(
      'after',
      `
Examples:
  ev keys create --name CI
  ev keys create --name Shop --scopes verify:single,verify:bulk --allow-domain shop.example.com

Scopes: verify:single, verify:bulk, jobs:read, jobs:write, webhooks:read, webhooks:write, account:read, keys:write,
dashboard (to sign in to it), and * for all of them.`,
    )
    .action(async flags => {
      const { createCommand } = await import('../keys/create.ts')
      end(await createCommand(context, flags))
    })
  addSettings(create, context, DATA_SETTINGS)
}

function addRotate(keys: Command, context: CliContext, end: EndWith): void {
  const rotate = keys
    .command('rotate')
    .description('give one another text; the old one goes on for a while')
    .argument('<key>', 'its ID')
    .option(
      '--grace <time>',
      'how long the old text works: 30m, 24h, up to 7d, or 0 (default: 24h)',
    )
    .option('--json', 'print JSON: one object')
    .addHelpText(
      'after',
      '\nExamples:\n  ev keys rotate key_4kq2\n  ev keys rotate key_4kq2 --grace 0',
    )
    .action(async (id: string, flags) => {
      const { rotateCommand } = await import('../keys/change.ts')
      end(await rotateCommand(context, id, flags))
    })
  addSettings(rotate, context, DATA_SETTINGS)
}

function addRevoke(keys: Command, context: CliContext, end: EndWith): void {
  const revoke = keys
    .command('revoke')
    .description('end one for good')
    .argument('<key>', 'its ID')
    .option('--force', 'also the last key of its account')
    .addHelpText(
      'after',
      '\nExamples:\n  ev keys revoke key_4kq2\n  ev keys revoke key_4kq2 --force',
    )
    .action(async (id: string, flags) => {
      const { revokeCommand } = await import('../keys/change.ts')
      end(await revokeCommand(context, id, flags))
    })
  addSettings(revoke, context, DATA_SETTINGS)
}
