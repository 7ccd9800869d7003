import { type AuditAction, type AuditServices, addAuditEntry } from '../../audit.ts'
import { type BeforeCommit, type Database, type Trx, write, writeWith } from '../../db/database.ts'
import { DAY } from '../../platform/clock.ts'
import { omitUndefined } from '../../platform/omit-undefined.ts'
import { parseEmail } from '../accounts.ts'
import { accountError } from '../errors.ts'
import { hashSecret } from '../key.ts'
import { exceedingRights, type KeyRights } from '../key-rights.ts'
import { endSessionsOfKey } from '../key-store.ts'
import { parseName } from '../name.ts'
import {
  deletePerson,
  deleteRecoveryCodes,
  findPerson,
  findPersonByInvitation,
  hasJoined,
  insertPerson,
  listPeople,
  type Person,
  updatePerson,
} from './person-store.ts'
import { type Role, roleRights } from './role.ts'

// An admin of an account invites a person with a link, which is shown once. The person sets a
// password at the link, or signs in with the identity provider. A new link replaces a forgotten
// password. All sessions of a person end when the person sets a password at a link or is removed.

/** Enough for a company. The People page shows all of them. */
const PEOPLE_MAX = 200

/** A link that is sent before a weekend works after it. */
const INVITATION_TTL_MS = 7 * DAY

type PeopleServices = AuditServices & { readonly database: Database }

type Actor = {
  /** The rights of the caller, which no managed role exceeds; null for the admin of the service. */
  readonly actor: KeyRights | null
}

export type PersonTarget = Actor & {
  readonly personId: string
  /** Null for a person of any account, as the admin of the service may address. */
  readonly accountId: string | null
}

export type Invitation = {
  readonly person: Person
  /** The secret part of the link. Only the caller gets it: the database stores its hash. */
  readonly token: string
}

/** Returns the link of an invitation. */
export const invitationUrl = (baseUrl: string, token: string): string =>
  `${baseUrl}/invitation/${token}`

/**
 * Invites a person to an account. Throws `name_invalid`, `email_invalid`, `person_exists`,
 * `person_limit_reached` and `person_rights_exceeded`.
 */
export function invitePerson(
  services: PeopleServices,
  input: Actor & {
    readonly accountId: string
    readonly name: string
    readonly email: string
    readonly role: Role
  },
  beforeCommit?: BeforeCommit<Invitation>,
): Promise<Invitation> {
  const { database, clock, random } = services
  const { accountId, role } = input
  requireRole(input, role)
  const email = parsePersonEmail(input.email)
  const { token, ...invitation } = newInvitation(services)
  const person: Person = {
    id: `per_${random.token(ID_LENGTH)}`,
    account_id: accountId,
    name: parseName(input.name),
    email,
    role,
    created_at: clock.now(),
    password: null,
    totp_secret: null,
    totp_step: null,
    oidc_issuer: null,
    oidc_subject: null,
    last_signed_in_at: null,
    ...invitation,
  }
  const insert = async (trx: Trx) => {
    const people = await listPeople(trx, accountId)
    if (people.some(one => one.email === email)) throw accountError('person_exists', { email })
    if (people.length >= PEOPLE_MAX) {
      throw accountError('person_limit_reached', { count: people.length })
    }
    await insertPerson(trx, person)
    await audit(trx, services, { action: 'person.invited', person })
    return { person, token }
  }
  return writeWith(database, insert, beforeCommit)
}

/** Parses an address into the form in which people are compared. Throws `email_invalid`. */
export const parsePersonEmail = (email: string): string => parseEmail(email).toLowerCase()

function newInvitation({ clock, random }: Pick<PeopleServices, 'clock' | 'random'>) {
  const token = random.token(TOKEN_LENGTH)
  return {
    token,
    invitation_hash: hashSecret(token),
    invitation_expires_at: clock.now() + INVITATION_TTL_MS,
  }
}

/** 206 bits of entropy. */
const TOKEN_LENGTH = 40
const ID_LENGTH = 16

/**
 * Creates a new link for a person; the previous one stops working. The password stays valid until
 * the person sets another one at the link. Throws `person_not_found` and `person_rights_exceeded`.
 */
export function renewInvitation(
  services: PeopleServices,
  target: PersonTarget,
  beforeCommit?: BeforeCommit<Invitation>,
): Promise<Invitation> {
  const renew = async (trx: Trx) => {
    const { id } = await manageablePerson(trx, target)
    const { token, ...invitation } = newInvitation(services)
    const person = (await updatePerson(trx, id, invitation)) ?? personNotFound(target)
    await audit(trx, services, { action: 'person.invited', person })
    return { person, token }
  }
  return writeWith(services.database, renew, beforeCommit)
}

/**
 * Changes the name or the role of a person. Throws `name_invalid`, `person_not_found`,
 * `person_rights_exceeded` and, for the role of the person who asks, `own_person`.
 */
export function changePerson(
  services: PeopleServices,
  { name, role, ...target }: PersonTarget & { readonly name?: string; readonly role?: Role },
): Promise<Person> {
  const patch = omitUndefined({ name: name === undefined ? undefined : parseName(name), role })
  const changed = Object.keys(patch)
  return write(services.database, async trx => {
    const current = await manageablePerson(trx, target)
    if (role !== undefined && role !== current.role) {
      requireRole(target, role)
      requireOther(services, target)
    }
    if (changed.length === 0) return current
    const person = (await updatePerson(trx, current.id, patch)) ?? personNotFound(target)
    await audit(trx, services, { action: 'person.updated', person, changed })
    return person
  })
}

/**
 * Removes a person and ends the sessions. Throws `person_not_found`, `person_rights_exceeded` and,
 * for the person who asks, `own_person`.
 */
export function removePerson(services: PeopleServices, target: PersonTarget): Promise<Person> {
  return write(services.database, async trx => {
    const person = await manageablePerson(trx, target)
    requireOther(services, target)
    await deletePerson(trx, person.id)
    await endSessionsOfKey(trx, person.id, null)
    await audit(trx, services, { action: 'person.removed', person })
    return person
  })
}

/**
 * Removes the second factor of a person who lost it, with the recovery codes. Throws
 * `person_not_found` and `person_rights_exceeded`.
 */
export function resetSecondFactor(services: PeopleServices, target: PersonTarget): Promise<Person> {
  return write(services.database, async trx => {
    const { id } = await manageablePerson(trx, target)
    await deleteRecoveryCodes(trx, id)
    const patch = { totp_secret: null, totp_step: null }
    const person = (await updatePerson(trx, id, patch)) ?? personNotFound(target)
    await audit(trx, services, { action: 'person.totp_disabled', person })
    return person
  })
}

/** Finds the person of a link that is neither used nor expired. */
export async function findInvitedPerson(
  { database, clock }: Pick<PeopleServices, 'database' | 'clock'>,
  token: string,
): Promise<Person | null> {
  const person = await findPersonByInvitation(database.reader, hashSecret(token))
  return person !== null && isInvited(person, clock.now()) ? person : null
}

/** Whether the person has an invitation that is not expired. */
export const isInvited = ({ invitation_expires_at: expiresAt }: Person, now: number): boolean =>
  expiresAt !== null && expiresAt > now

/**
 * Sets the password of the person of a link, uses the link up and ends all sessions of the person.
 * Returns null if the link is not valid.
 */
export function acceptInvitation(
  services: Omit<PeopleServices, 'origin'> & { readonly ip: string },
  { token, passwordHash }: { readonly token: string; readonly passwordHash: string },
): Promise<Person | null> {
  const { database, clock, ip } = services
  return write(database, async trx => {
    const invited = await findPersonByInvitation(trx, hashSecret(token))
    if (invited === null || !isInvited(invited, clock.now())) return null
    const person = await updatePerson(trx, invited.id, {
      password: passwordHash,
      invitation_hash: null,
      invitation_expires_at: null,
    })
    if (person === null) return null
    await endSessionsOfKey(trx, person.id, null)
    const origin = { actor: 'session', keyId: null, person, sessionId: null, ip } as const
    const action = hasJoined(invited) ? 'person.password_changed' : 'person.joined'
    await audit(trx, { ...services, origin }, { action, person })
    return person
  })
}

/** Changes the password of a person and ends all other sessions. */
export function changePassword(
  services: PeopleServices,
  input: { readonly person: Person; readonly passwordHash: string; readonly keepSession: string },
): Promise<void> {
  const { person, passwordHash, keepSession } = input
  return write(services.database, async trx => {
    await updatePerson(trx, person.id, { password: passwordHash })
    await endSessionsOfKey(trx, person.id, keepSession)
    await audit(trx, services, { action: 'person.password_changed', person })
  })
}

type Audited = {
  readonly action: AuditAction
  readonly person: Person
  readonly changed?: readonly string[]
}

const audit = (trx: Trx, services: AuditServices, { person, ...entry }: Audited) =>
  addAuditEntry(trx, services, { ...entry, accountId: person.account_id, target: person })

async function manageablePerson(trx: Trx, target: PersonTarget): Promise<Person> {
  const { accountId, personId } = target
  const person = (await findPerson(trx, accountId, personId)) ?? personNotFound(target)
  requireRole(target, person.role)
  return person
}

/** Nobody manages a role that has more rights, or gives it. */
function requireRole({ actor }: Actor, role: Role): void {
  if (actor === null || exceedingRights(roleRights(role), actor).length === 0) return
  throw accountError('person_rights_exceeded', { role })
}

/** So an account that people manage keeps an admin. */
function requireOther({ origin }: PeopleServices, { personId }: PersonTarget): void {
  if (origin.person?.id === personId) throw accountError('own_person', {})
}

function personNotFound({ personId: id }: Pick<PersonTarget, 'personId'>): never {
  throw accountError('person_not_found', { id })
}
