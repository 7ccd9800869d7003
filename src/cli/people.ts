import type { Account } from '../accounts/account-store.ts'
import {
  changePerson,
  invitationUrl,
  invitePerson,
  removePerson,
  renewInvitation,
  resetSecondFactor,
} from '../accounts/people/people.ts'
import {
  hasJoined,
  listPeople,
  type Person,
  presentPerson,
} from '../accounts/people/person-store.ts'
import { isRole, ROLES } from '../accounts/people/role.ts'
import type { Database } from '../db/database.ts'
import { EvError } from '../platform/error.ts'
import { isoTime } from '../platform/format.ts'
import { sanitizeText } from '../platform/text.ts'
import { confirm } from './confirm.ts'
import type { CliContext } from './context.ts'
import { auditServices } from './database.ts'
import { withAccounts } from './local/with-accounts.ts'
import { printJson, printText, timeText } from './print.ts'
import { selectAccount } from './select-account.ts'
import { requireBaseUrl } from './serve/base-url.ts'
import { readConfig } from './settings.ts'
import { type Column, table } from './table.ts'
import { widthOf } from './width.ts'

type PeopleFlags = {
  readonly json?: boolean
  readonly yes?: boolean
  readonly account?: string
  readonly name?: string
  readonly email?: string
  readonly role?: string
  readonly [setting: string]: unknown
}

/** Runs `ev people list` and returns the exit code. */
export function listCommand(context: CliContext, flags: PeopleFlags): Promise<number> {
  return withAccounts(context, readConfig(context, flags), async (database, accounts) => {
    const people = await peopleOf(database, accounts, flags)
    if (flags.json) printJson(context, people.map(personObject))
    else if (people.length === 0) {
      printText(
        context,
        'No people. To invite one, run "ev people invite --name NAME --email ADDRESS".',
      )
    } else {
      context.stdout.write(table(COLUMNS, people.map(rowOf), widthOf(context, context.stdout)))
    }
    return 0
  })
}

const COLUMNS: readonly Column[] = [
  { title: 'ID' },
  { title: 'EMAIL' },
  { title: 'ROLE' },
  { title: 'ACCOUNT', dropRank: 2 },
  { title: '2FA', dropRank: 3 },
  { title: 'SIGNED IN', dropRank: 1 },
  { title: 'NAME' },
]

const rowOf = (person: Person): string[] => [
  person.id,
  person.email,
  person.role,
  person.account_id,
  person.totp_secret === null ? '–' : 'yes',
  signedInText(person),
  person.name,
]

function signedInText(person: Person): string {
  if (!hasJoined(person)) return 'invited'
  return person.last_signed_in_at === null ? '–' : timeText(person.last_signed_in_at)
}

const personObject = (person: Person) => {
  const { id, ...rest } = presentPerson(person)
  return { id, account_id: person.account_id, ...rest }
}

const peopleOf = async (
  database: Database,
  accounts: readonly Account[],
  { account }: PeopleFlags,
): Promise<readonly Person[]> => {
  const selected = account === undefined ? accounts : [selectAccount(accounts, account)]
  const people = await Promise.all(selected.map(({ id }) => listPeople(database.db, id)))
  return people.flat()
}

/** Returns the person with that ID or email address. Throws EvError if there is none, or several. */
async function selectPerson(
  database: Database,
  accounts: readonly Account[],
  idOrEmail: string,
  flags: PeopleFlags,
): Promise<Person> {
  const people = await peopleOf(database, accounts, flags)
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

/** Runs `ev people invite` and returns the exit code. */
export function inviteCommand(context: CliContext, flags: PeopleFlags): Promise<number> {
  const config = readConfig(context, flags)
  const { name = '', email = '', role = '' } = flags
  return withAccounts(context, config, async (database, accounts) => {
    const account = selectAccount(accounts, flags.account)
    const baseUrl = await requireBaseUrl(database, config)
    const services = { ...auditServices(context), database }
    const input = { accountId: account.id, name, email, role: parseRole(role), actor: null }
    const { person, token } = await invitePerson(services, input)
    printLink(context, flags, { person, url: invitationUrl(baseUrl, token) })
    return 0
  })
}

/** Runs `ev people link` and returns the exit code. */
export function linkCommand(
  context: CliContext,
  idOrEmail: string,
  flags: PeopleFlags,
): Promise<number> {
  const config = readConfig(context, flags)
  return withAccounts(context, config, async (database, accounts) => {
    const found = await selectPerson(database, accounts, idOrEmail, flags)
    const baseUrl = await requireBaseUrl(database, config)
    const services = { ...auditServices(context), database }
    const { person, token } = await renewInvitation(services, ofAdmin(found))
    printLink(context, flags, { person, url: invitationUrl(baseUrl, token) })
    return 0
  })
}

const ofAdmin = ({ id }: Person) => ({ personId: id, accountId: null, actor: null })

type Link = { readonly person: Person; readonly url: string }

function printLink(context: CliContext, flags: PeopleFlags, { person, url }: Link): void {
  const expiresAt = person.invitation_expires_at ?? 0
  if (flags.json) {
    printJson(context, { ...personObject(person), url, expires_at: isoTime(expiresAt) })
    return
  }
  printText(
    context,
    `Link for ${person.id} "${person.name}" <${person.email}>, ${person.role} of account ${person.account_id}:

  ${url}

Send it to the person now: ev cannot show it again. It works once, until ${timeText(expiresAt)}.
`,
  )
}

/** Runs `ev people set-role` and returns the exit code. */
export function setRoleCommand(
  context: CliContext,
  idOrEmail: string,
  given: string,
  flags: PeopleFlags,
): Promise<number> {
  const role = parseRole(given)
  return withAccounts(context, readConfig(context, flags), async (database, accounts) => {
    const found = await selectPerson(database, accounts, idOrEmail, flags)
    const services = { ...auditServices(context), database }
    const person = await changePerson(services, { ...ofAdmin(found), role })
    if (flags.json) printJson(context, personObject(person))
    else {
      printText(
        context,
        `Changed the role of ${person.id} "${person.name}" from ${found.role} to ${role}.\n`,
      )
    }
    return 0
  })
}

function parseRole(text: string) {
  if (isRole(text)) return text
  throw new EvError('usage', `Unknown role "${sanitizeText(text)}". Roles: ${ROLES.join(', ')}.`)
}

/** Runs `ev people reset-two-factor` and returns the exit code. */
export function resetTwoFactorCommand(
  context: CliContext,
  idOrEmail: string,
  flags: PeopleFlags,
): Promise<number> {
  return withAccounts(context, readConfig(context, flags), async (database, accounts) => {
    const found = await selectPerson(database, accounts, idOrEmail, flags)
    await confirm(context, flags, `remove the second factor of ${nameText(found)}`)
    await resetSecondFactor({ ...auditServices(context), database }, ofAdmin(found))
    printText(
      context,
      `Removed the second factor of ${nameText(found)}, who now signs in with the password alone.\n`,
    )
    return 0
  })
}

/** Runs `ev people remove` and returns the exit code. */
export function removeCommand(
  context: CliContext,
  idOrEmail: string,
  flags: PeopleFlags,
): Promise<number> {
  return withAccounts(context, readConfig(context, flags), async (database, accounts) => {
    const found = await selectPerson(database, accounts, idOrEmail, flags)
    await confirm(context, flags, `remove ${nameText(found)} from account ${found.account_id}`)
    await removePerson({ ...auditServices(context), database }, ofAdmin(found))
    printText(context, `Removed ${nameText(found)}. The sessions have ended.\n`)
    return 0
  })
}

const nameText = ({ id, name }: Person) => `${id} "${sanitizeText(name)}"`
