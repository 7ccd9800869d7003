import { type Command, Option } from 'commander'
import { SCOPES } from '../../accounts/key-rights.ts'
import { YES } from '../confirm.ts'
import type { CliContext, SetExitCode } from '../context.ts'
import { addSettings, DATA_SETTINGS } from '../settings.ts'
import { noSuchCommand } from './help.ts'

const EXAMPLES = `
Examples:
  ev keys
  ev keys create --name CI
  ev keys create --name Shop --scopes verify:single --allow-ip 203.0.113.0/24 --expires 90d
  ev keys rotate key_4kq2
  ev keys revoke key_4kq2

These commands work while "ev serve" runs; changes take effect within a second. ev shows a key once, when it is created.
Rotating or revoking a key ends the dashboard sessions that were opened with it.`

export function defineKeys(keys: Command, context: CliContext, setExitCode: SetExitCode): void {
  keys.addHelpText('after', EXAMPLES)
  addList(keys, context, setExitCode)
  addCreate(keys, context, setExitCode)
  addRotate(keys, context, setExitCode)
  addRevoke(keys, context, setExitCode)
}

function addList(keys: Command, context: CliContext, setExitCode: SetExitCode): void {
  const list = keys
    .command('list', { isDefault: true })
    .description('list all keys that are not revoked')
    .allowExcessArguments()
    .option('--account <account>', 'only keys of this account, by ID or name')
    .option('--json', 'print JSON: an array of objects')
    .addHelpText('after', '\nExamples:\n  ev keys list\n  ev keys --json')
    .action(async (flags, { args: [unknown] }: Command) => {
      if (unknown !== undefined) throw noSuchCommand(unknown, keys)
      const { listCommand } = await import('../keys.ts')
      setExitCode(await listCommand(context, flags))
    })
  addSettings(list, context, DATA_SETTINGS)
}

function addCreate(keys: Command, context: CliContext, setExitCode: SetExitCode): void {
  const create = keys
    .command('create')
    .description('create a key')
    .requiredOption('--name <name>', 'name of the key')
    .option('--scopes <scope,…>', 'scopes of the key (default: all)')
    .option('--publishable', 'create a publishable key for forms on websites; needs --allow-domain')
    .addOption(
      new Option('--test', 'create a test key, whose requests all use the sandbox').conflicts(
        'publishable',
      ),
    )
    .option('--allow-ip <range,…>', 'accept the key only from these IP addresses or CIDR ranges')
    .option('--allow-domain <domain,…>', 'accept the key only from browsers on these websites')
    .option('--expires <time>', 'expiry: 90d, 12h, or a date such as 2030-01-31')
    .option('--rate-limit <n>', 'requests per minute, in addition to the limit of the plan')
    .option('--account <account>', 'account, by ID or name; optional if there is only one')
    .option('--json', 'print JSON: one object')
    .addHelpText(
      'after',
      `
Examples:
  ev keys create --name CI
  ev keys create --name Shop --scopes verify:single,verify:bulk --allow-domain shop.example.com
  ev keys create --name "Sign-up form" --publishable --allow-domain shop.example.com

Scopes: ${SCOPES.filter(scope => scope !== 'dashboard').join(', ')}, dashboard (sign in to the dashboard), and * for
all scopes. The scope accounts:write needs an admin account.

A publishable key (ev_pub_…) may be part of a web page: it can only verify addresses of forms on the websites of
--allow-domain. All requests of a test key (ev_test_…) use the sandbox: they are simulated and cost no credits.`,
    )
    .action(async flags => {
      const { createCommand } = await import('../keys.ts')
      setExitCode(await createCommand(context, flags))
    })
  addSettings(create, context, DATA_SETTINGS)
}

function addRotate(keys: Command, context: CliContext, setExitCode: SetExitCode): void {
  const rotate = keys
    .command('rotate')
    .description('issue a new secret; the old one stays valid during the grace period')
    .argument('<key>', 'ID of the key')
    .option('--grace <time>', 'grace period: 30m, 24h, up to 7d, or 0 (default: 24h)')
    .option('--json', 'print JSON: one object')
    .addHelpText(
      'after',
      '\nExamples:\n  ev keys rotate key_4kq2\n  ev keys rotate key_4kq2 --grace 0',
    )
    .action(async (id: string, flags) => {
      const { rotateCommand } = await import('../keys.ts')
      setExitCode(await rotateCommand(context, id, flags))
    })
  addSettings(rotate, context, DATA_SETTINGS)
}

function addRevoke(keys: Command, context: CliContext, setExitCode: SetExitCode): void {
  const revoke = keys
    .command('revoke')
    .description('revoke a key')
    .argument('<key>', 'ID of the key')
    .option('--force', 'revoke even the last key of an account')
    .option(...YES)
    .addHelpText(
      'after',
      '\nExamples:\n  ev keys revoke key_4kq2\n  ev keys revoke key_4kq2 --force --yes',
    )
    .action(async (id: string, flags) => {
      const { revokeCommand } = await import('../keys.ts')
      setExitCode(await revokeCommand(context, id, flags))
    })
  addSettings(revoke, context, DATA_SETTINGS)
}
