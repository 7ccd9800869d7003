import type { Command } from 'commander'
import { parseName } from '../accounts/name.ts'
import type { AccountPatch } from '../client/types.ts'
import { ACTION_POLICIES, type ActionPolicy } from '../engine/verdict/action.ts'
import { EvError } from '../platform/error.ts'
import { formatNumber } from '../platform/format.ts'
import { sanitizeText } from '../platform/text.ts'
import type { CliContext } from './context.ts'
import {
  addListCommand,
  type DataFlags,
  openBackend,
  printTable,
  worksOnData,
} from './data-command.ts'
import { parseOnOff } from './on-off.ts'
import { printJson, printText, timeText } from './print.ts'
import {
  type AccountsBackend,
  createRemoteAccounts,
  type ListedAccount,
} from './remote/accounts.ts'
import type { Column } from './table.ts'

const EXAMPLES = `
Examples:
  ev accounts
  ev accounts create --name Shop --plan starter
  ev accounts set-name Shop "Web shop"
  ev accounts set-plan Shop professional
  ev accounts set-email Shop owner@shop.example
  ev accounts set-admin Ops on
  ev accounts set-policy Shop strict

Keys, lists and history belong to one account; other accounts cannot see them. The plans are free, starter,
professional and enterprise, and those that the config file adds under "plans".

Alerts about webhooks and emails about finished lists go to the address of the account.

An admin account can open the Health page of the dashboard, and its keys can manage accounts over HTTP (/v1/accounts).
The account that the first start of "ev serve" creates is an admin.`

const openAccounts = (context: CliContext, flags: DataFlags): Promise<AccountsBackend> =>
  openBackend(context, flags, {
    remote: createRemoteAccounts,
    loadLocal: async () => (await import('./local/accounts.ts')).createLocalAccounts,
  })

export function defineAccounts(accounts: Command, context: CliContext): void {
  accounts.addHelpText('after', EXAMPLES)
  addList(accounts, context)
  addCreate(accounts, context)
  for (const setter of SETTERS) addSetter(accounts, context, setter)
}

const addList = (accounts: Command, context: CliContext): void =>
  addListCommand(accounts, context, {
    description: 'list all accounts, oldest first',
    examples: ['ev accounts list', 'ev accounts --json'],
    run: flags => listCommand(context, flags),
  })

async function listCommand(context: CliContext, flags: DataFlags): Promise<void> {
  const accounts = await openAccounts(context, flags)
  const all = await accounts.list()
  const none = `No accounts in ${accounts.location}. "ev serve" creates the first one.`
  if (flags.json) printJson(context, all)
  else printTable(context, all, { columns: COLUMNS, rowOf, none })
}

const COLUMNS: readonly Column[] = [
  { title: 'ID' },
  { title: 'NAME' },
  { title: 'PLAN' },
  { title: 'EMAIL', dropRank: 2 },
  { title: 'ADMIN', dropRank: 3 },
  { title: 'KEYS', align: 'right' },
  { title: 'CREATED', dropRank: 1 },
]

const rowOf = ({ id, name, plan, email, admin, keys, created_at }: ListedAccount) => [
  id,
  sanitizeText(name),
  sanitizeText(plan),
  sanitizeText(email ?? '–'),
  admin ? 'yes' : '–',
  keys === null ? '–' : formatNumber(keys),
  timeText(Date.parse(created_at)),
]

type CreateFlags = DataFlags & {
  readonly name: string
  readonly email?: string
  readonly plan?: string
}

function addCreate(accounts: Command, context: CliContext): void {
  const create = accounts
    .command('create')
    .description('create an account')
    .requiredOption('--name <name>', 'name of the account')
    .option('--plan <name>', 'plan of the account (default: enterprise)')
    .option('--email <address>', 'address for webhook failure alerts')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev accounts create --name Shop --plan starter')
    .action(flags => createCommand(context, flags))
  worksOnData(create, context)
}

async function createCommand(context: CliContext, flags: CreateFlags): Promise<void> {
  const accounts = await openAccounts(context, flags)
  const { name, plan, email = null } = flags
  const account = await accounts.create({ name, plan, email })
  if (flags.json) printJson(context, account)
  else {
    printText(
      context,
      `Created account ${account.id} "${account.name}" on the plan "${account.plan}". To create a key for it, run "ev keys create --name NAME --account ${account.id}".\n`,
    )
  }
}

type Changed = Awaited<ReturnType<AccountsBackend['change']>>

/** A command that sets one field of an account. */
type Setter = {
  readonly name: string
  readonly description: string
  /** The argument behind the account. */
  readonly argument: readonly [name: string, description: string]
  readonly examples: readonly string[]
  readonly parse: (word: string) => AccountPatch
  /** Says what was changed. */
  readonly text: (changed: Changed) => string
}

const SETTERS: readonly Setter[] = [
  {
    name: 'set-name',
    description: 'rename an account',
    argument: ['<name>', 'new name, which no other account has'],
    examples: ['Shop "Web shop"'],
    parse: word => ({ name: parseName(word) }),
    text: ({ before, after }) =>
      `Renamed account ${before.id} from "${before.name}" to "${after.name}".`,
  },
  {
    name: 'set-plan',
    description: "change an account's plan",
    argument: ['<plan>', 'name of the plan'],
    examples: ['Shop professional'],
    parse: plan => ({ plan }),
    text: ({ before, after }) =>
      `Changed the plan of account ${before.id} "${before.name}" from ${before.plan} to ${after.plan}. A running "ev serve" applies it within a second.`,
  },
  {
    name: 'set-email',
    description: 'set the address for alerts and for emails about finished lists',
    argument: ['<address>', 'email address, or none to use --notify-to of "ev serve"'],
    examples: ['Shop owner@shop.example', 'Shop none'],
    parse: word => ({ email: word === 'none' ? null : word }),
    text: ({ after: { id, name, email } }) =>
      email === null
        ? `Removed the address of account ${id} "${name}". Its alerts go to --notify-to of "ev serve", or to its log.`
        : `Alerts for account ${id} "${name}" now go to ${email}, through the mail server in --notify-smtp of "ev serve".`,
  },
  {
    name: 'set-admin',
    description: 'grant or revoke admin rights of an account',
    argument: ['<on|off>', 'on: grant admin rights; off: revoke them'],
    examples: ['Ops on'],
    parse: word => ({ admin: parseOnOff('second', word) }),
    text: ({ after: { id, name, admin } }) =>
      `Account ${id} "${name}" can ${admin ? 'now' : 'no longer'} manage accounts over HTTP ${admin ? 'and' : 'or'} open the Health page of the dashboard.`,
  },
  {
    name: 'set-policy',
    description: 'set how results recommend to send, wait or suppress',
    argument: [
      '<policy>',
      `${ACTION_POLICIES.join(', ')}, or default to use --action-policy of "ev serve"`,
    ],
    examples: ['Shop strict'],
    parse: word => ({ action_policy: parseActionPolicy(word) }),
    text: ({ after: { id, name, action_policy: policy } }) =>
      policy === null
        ? `Account ${id} "${name}" now has the action policy of the service.`
        : `Account ${id} "${name}" now has the action policy ${policy}. Results that are stored get their action by it.`,
  },
]

function addSetter(
  accounts: Command,
  context: CliContext,
  { name, description, argument, examples, parse, text }: Setter,
): void {
  const command = accounts
    .command(name)
    .description(description)
    .argument('<account>', 'ID or name of the account')
    .argument(...argument)
    .option('--json', 'print JSON: one object')
    .addHelpText(
      'after',
      ['\nExamples:', ...examples.map(one => `  ev accounts ${name} ${one}`)].join('\n'),
    )
    .action(async (idOrName: string, word: string, flags: DataFlags) => {
      const patch = parse(word)
      const changed = await (await openAccounts(context, flags)).change(idOrName, patch)
      if (flags.json) printJson(context, changed.after)
      else printText(context, text(changed))
    })
  worksOnData(command, context)
}

function parseActionPolicy(word: string): ActionPolicy | null {
  if (word === 'default') return null
  const policy = ACTION_POLICIES.find(one => one === word)
  if (policy !== undefined) return policy
  throw new EvError(
    'usage',
    `The second argument is "${sanitizeText(word)}"; it takes ${ACTION_POLICIES.join(', ')} or default.`,
  )
}
