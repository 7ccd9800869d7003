import { type Command, Option } from 'commander'
import { isRole, ROLES } from '../accounts/people/role.ts'
import { EvError } from '../platform/error.ts'
import { sanitizeText } from '../platform/text.ts'
import { confirm, YES } from './confirm.ts'
import type { CliContext } from './context.ts'
import {
  addOwnedListCommand,
  type DataFlags,
  openBackend,
  ownedObject,
  worksOnData,
} from './data-command.ts'
import { parseOnOff } from './on-off.ts'
import { printJson, printText, timeText } from './print.ts'
import {
  createRemotePeople,
  type OwnedPerson,
  type PeopleBackend,
  type PersonWithLink,
} from './remote/people.ts'
import { DATA_SETTINGS } from './settings.ts'
import type { Column } from './table.ts'

const EXAMPLES = `
Examples:
  ev people
  ev people invite --name "Ann Lee" --email ann@shop.example --role admin
  ev people link ann@shop.example
  ev people set-role ann@shop.example viewer
  ev people reset-two-factor ann@shop.example
  ev people require-two-factor on
  ev people remove ann@shop.example

People sign in to the dashboard of one account. A person sets a password at a link, which ev shows once and which works
for seven days. Admins may do everything in the account, members verify and manage lists and webhooks, viewers only
read.`

export function definePeople(people: Command, context: CliContext): void {
  people.addHelpText('after', EXAMPLES)
  addList(people, context)
  addInvite(people, context)
  addLink(people, context)
  addSetRole(people, context)
  addResetTwoFactor(people, context)
  addRequireTwoFactor(people, context)
  addRemove(people, context)
}

const openPeople = (context: CliContext, flags: DataFlags): Promise<PeopleBackend> =>
  openBackend(context, flags, {
    remote: createRemotePeople,
    loadLocal: async () => (await import('./local/people.ts')).createLocalPeople,
  })

const ACCOUNT = ['--account <account>', 'account of the person, by ID or name'] as const
const PERSON = ['<person>', 'ID or email address of the person'] as const
const LINK_SETTINGS = [...DATA_SETTINGS, 'baseUrl'] as const

const addList = (people: Command, context: CliContext): void =>
  addOwnedListCommand(people, context, {
    noun: 'people',
    description: 'list people with their roles',
    examples: ['ev people list', 'ev people --json'],
    open: flags => openPeople(context, flags),
    table: { columns: COLUMNS, rowOf, none: NO_PEOPLE },
  })

const NO_PEOPLE = 'No people. To invite one, run "ev people invite --name NAME --email ADDRESS".'

const COLUMNS: readonly Column[] = [
  { title: 'ID' },
  { title: 'EMAIL' },
  { title: 'ROLE' },
  { title: 'ACCOUNT', dropRank: 2 },
  { title: '2FA', dropRank: 3 },
  { title: 'SIGNED IN', dropRank: 1 },
  { title: 'NAME' },
]

const rowOf = (person: OwnedPerson): string[] => [
  person.id,
  person.email,
  person.role,
  person.account_id,
  person.two_factor ? 'yes' : '–',
  signedInText(person),
  sanitizeText(person.name),
]

function signedInText({ joined, last_signed_in_at: at }: OwnedPerson): string {
  if (!joined) return 'invited'
  return at === null ? '–' : timeText(Date.parse(at))
}

/** Returns the person with that ID or email address. Throws EvError if there is none, or several. */
async function selectPerson(
  backend: PeopleBackend,
  idOrEmail: string,
  { account }: DataFlags,
): Promise<OwnedPerson> {
  const people = await backend.list(account)
  const email = idOrEmail.trim().toLowerCase()
  const [first, second] = people.filter(one => one.id === idOrEmail || one.email === email)
  if (first === undefined) {
    throw new EvError(
      'no_input',
      `Person ${sanitizeText(idOrEmail)} does not exist. To list people, run "ev people".`,
    )
  }
  if (second === undefined) return first
  throw new EvError(
    'usage',
    `Several accounts have a person with the address ${email}. Add --account, such as --account ${first.account_id}.`,
  )
}

type InviteFlags = DataFlags & {
  readonly name: string
  readonly email: string
  readonly role: string
}

function addInvite(people: Command, context: CliContext): void {
  const invite = people
    .command('invite')
    .description('invite a person to an account')
    .requiredOption('--name <name>', 'name of the person')
    .requiredOption('--email <address>', 'email address, with which the person signs in')
    .addOption(new Option('--role <role>', 'role of the person').choices(ROLES).default('member'))
    .option(...ACCOUNT)
    .option('--json', 'print JSON: one object')
    .addHelpText(
      'after',
      '\nExamples:\n  ev people invite --name "Ann Lee" --email ann@shop.example --role admin',
    )
    .action(flags => inviteCommand(context, flags))
  worksOnData(invite, context, LINK_SETTINGS)
}

async function inviteCommand(context: CliContext, flags: InviteFlags): Promise<void> {
  const { name, email, role, account } = flags
  const backend = await openPeople(context, flags)
  printLink(context, flags, await backend.invite({ name, email, role: parseRole(role) }, account))
}

function addLink(people: Command, context: CliContext): void {
  const link = people
    .command('link')
    .description('create a new link, at which a person sets another password')
    .argument(...PERSON)
    .option(...ACCOUNT)
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev people link ann@shop.example')
    .action((person: string, flags) => linkCommand(context, person, flags))
  worksOnData(link, context, LINK_SETTINGS)
}

async function linkCommand(
  context: CliContext,
  idOrEmail: string,
  flags: DataFlags,
): Promise<void> {
  const backend = await openPeople(context, flags)
  const found = await selectPerson(backend, idOrEmail, flags)
  printLink(context, flags, await backend.link(found))
}

function printLink(context: CliContext, flags: DataFlags, { person, url }: PersonWithLink): void {
  const { invitation_expires_at: expires_at } = person
  if (flags.json) {
    printJson(context, { ...ownedObject(person), url, expires_at })
    return
  }
  printText(
    context,
    `Link for ${nameText(person)} <${person.email}>, ${person.role} of account ${person.account_id}:

  ${url}

Send it to the person now: ev cannot show it again. It works once, until ${timeText(Date.parse(expires_at ?? ''))}.
`,
  )
}

function addSetRole(people: Command, context: CliContext): void {
  const setRole = people
    .command('set-role')
    .description('change the role of a person')
    .argument(...PERSON)
    .argument('<role>', ROLES.join(', '))
    .option(...ACCOUNT)
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev people set-role ann@shop.example viewer')
    .action((person: string, role: string, flags) => setRoleCommand(context, person, role, flags))
  worksOnData(setRole, context)
}

async function setRoleCommand(
  context: CliContext,
  idOrEmail: string,
  given: string,
  flags: DataFlags,
): Promise<void> {
  const role = parseRole(given)
  const backend = await openPeople(context, flags)
  const found = await selectPerson(backend, idOrEmail, flags)
  const person = await backend.setRole(found, role)
  if (flags.json) printJson(context, ownedObject(person))
  else {
    const text = `Changed the role of ${nameText(person)} from ${found.role} to ${role}.\n`
    printText(context, text)
  }
}

function parseRole(text: string) {
  if (isRole(text)) return text
  throw new EvError('usage', `Unknown role "${sanitizeText(text)}". Roles: ${ROLES.join(', ')}.`)
}

function addResetTwoFactor(people: Command, context: CliContext): void {
  const reset = people
    .command('reset-two-factor')
    .description('remove the second factor of a person who lost it')
    .argument(...PERSON)
    .option(...ACCOUNT)
    .option(...YES)
    .addHelpText('after', '\nExamples:\n  ev people reset-two-factor ann@shop.example')
    .action((person: string, flags) => resetTwoFactorCommand(context, person, flags))
  worksOnData(reset, context)
}

async function resetTwoFactorCommand(
  context: CliContext,
  idOrEmail: string,
  flags: DataFlags,
): Promise<void> {
  const backend = await openPeople(context, flags)
  const found = await selectPerson(backend, idOrEmail, flags)
  await confirm(context, flags, `remove the second factor of ${nameText(found)}`)
  await backend.resetTwoFactor(found)
  printText(
    context,
    `Removed the second factor of ${nameText(found)}, who now signs in with the password alone.\n`,
  )
}

function addRequireTwoFactor(people: Command, context: CliContext): void {
  const require = people
    .command('require-two-factor')
    .description('require a second factor of the people of an account')
    .argument('<on|off>', 'on: people with a password need one; off: optional')
    .option('--account <account>', 'the account, by ID or name')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev people require-two-factor on --account Shop')
    .action((word: string, flags) => requireTwoFactorCommand(context, word, flags))
  worksOnData(require, context)
}

async function requireTwoFactorCommand(
  context: CliContext,
  word: string,
  flags: DataFlags,
): Promise<void> {
  const isRequired = parseOnOff('first', word)
  const backend = await openPeople(context, flags)
  const account = await backend.requireTwoFactor(isRequired, flags.account)
  if (flags.json) printJson(context, account)
  else {
    const what = `account ${account.id} "${sanitizeText(account.name)}"`
    printText(
      context,
      isRequired
        ? `A second factor is now required in ${what}. People with a password and without one can only set it up, and API keys cannot sign in to the dashboard.\n`
        : `A second factor is now optional in ${what}.\n`,
    )
  }
}

function addRemove(people: Command, context: CliContext): void {
  const remove = people
    .command('remove')
    .description('remove a person and end the sessions')
    .argument(...PERSON)
    .option(...ACCOUNT)
    .option(...YES)
    .addHelpText('after', '\nExamples:\n  ev people remove ann@shop.example')
    .action((person: string, flags) => removeCommand(context, person, flags))
  worksOnData(remove, context)
}

async function removeCommand(
  context: CliContext,
  idOrEmail: string,
  flags: DataFlags,
): Promise<void> {
  const backend = await openPeople(context, flags)
  const found = await selectPerson(backend, idOrEmail, flags)
  await confirm(context, flags, `remove ${nameText(found)} from account ${found.account_id}`)
  await backend.remove(found)
  printText(context, `Removed ${nameText(found)}. The sessions have ended.\n`)
}

const nameText = ({ id, name }: OwnedPerson) => `${id} "${sanitizeText(name)}"`
