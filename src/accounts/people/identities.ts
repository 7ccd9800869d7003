import { type AuditAction, type AuditServices, addAuditEntry, type Origin } from '../../audit.ts'
import { type Database, type Trx, write } from '../../db/database.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Random } from '../../platform/random.ts'
import { hashSecret } from '../key.ts'
import { endSessionsOfKey } from '../key-store.ts'
import { isSessionLive } from '../session-store.ts'
import type { Identity } from './identity-provider.ts'
import { isInvited } from './people.ts'
import {
  findPerson,
  hasJoined,
  listPeopleByEmail,
  listPeopleByIdentity,
  type Person,
  type PersonOfAccount,
  updatePerson,
} from './person-store.ts'
import { normalizeEmail } from './sign-in.ts'

// A person is linked to an identity at the provider once, by an email address that the provider has
// verified: at the first sign-in of a person with an open invitation, or when a person who is signed in
// asks for it. From then on the issuer and the subject identify the person, whatever the address is.
// A sign-in creates no person.

type Services = {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly ip: string
}

/** An identity, with the address that the provider has verified; null if there is none. */
export type IdentityWithEmail = {
  readonly identity: Identity
  readonly email: string | null
}

/**
 * - `not_invited`: the person has no open invitation, or was removed;
 * - `session_ended`: the person is no longer signed in;
 * - `email_unverified`, `email_differs`: by what the provider says about the address;
 * - `identity_taken`: another person of the account is linked to it.
 */
type LinkRefusal =
  | 'not_invited'
  | 'session_ended'
  | 'email_unverified'
  | 'email_differs'
  | 'identity_taken'

export type LinkOutcome =
  | { readonly kind: 'linked'; readonly person: Person }
  | { readonly kind: 'refused'; readonly why: LinkRefusal; readonly person: Person | null }

/** Lists the people who are linked to an identity, one for each account. */
export const findLinkedPeople = (
  { database }: Pick<Services, 'database'>,
  identity: Identity,
): Promise<PersonOfAccount[]> => listPeopleByIdentity(database.reader, identity)

/** Lists the people who have not joined yet and have an open invitation to an address. */
export async function findInvitedPeople(
  { database, clock }: Pick<Services, 'database' | 'clock'>,
  email: string,
): Promise<PersonOfAccount[]> {
  const people = await listPeopleByEmail(database.reader, normalizeEmail(email), null)
  return people.filter(person => !hasJoined(person) && isInvited(person, clock.now()))
}

/**
 * Accepts an invitation with an identity: links the person, uses the link up and ends all sessions of
 * the person. `token` is that of the link; without it, only a person who has not joined yet is linked.
 */
export function joinWithIdentity(
  services: Services,
  input: IdentityWithEmail & { readonly personId: string; readonly token: string | null },
): Promise<LinkOutcome> {
  const { personId, token } = input
  return write(services.database, async trx => {
    const invited = await findPerson(trx, null, personId)
    const isOpen = invited !== null && isInvited(invited, services.clock.now())
    const isMeant =
      token === null
        ? invited !== null && !hasJoined(invited)
        : invited?.invitation_hash === hashSecret(token)
    if (invited === null || !isOpen || !isMeant) return refused('not_invited', invited)
    const outcome = await link(trx, services, invited, input)
    if (outcome.kind === 'refused') return outcome
    const used = { invitation_hash: null, invitation_expires_at: null }
    const person = await updatePerson(trx, personId, used)
    if (person === null) return refused('not_invited', null)
    await endSessionsOfKey(trx, personId, null)
    if (!hasJoined(invited)) await audit(trx, services, person, 'person.joined')
    return { kind: 'linked', person }
  })
}

/** Links a person who is signed in, if the session that asked for it is still live. */
export function linkIdentity(
  services: Services,
  input: IdentityWithEmail & { readonly personId: string; readonly sessionId: string },
): Promise<LinkOutcome> {
  const { personId, sessionId } = input
  return write(services.database, async trx => {
    const session = { id: sessionId, keyId: personId, now: services.clock.now() }
    const person = (await isSessionLive(trx, session))
      ? await findPerson(trx, null, personId)
      : null
    if (person === null) return refused('session_ended', null)
    return link(trx, services, person, input, sessionId)
  })
}

/** Removes the link of a person who has a password, and ends all other sessions. */
export function unlinkIdentity(
  services: AuditServices & { readonly database: Database },
  { person, keepSession }: { readonly person: Person; readonly keepSession: string },
): Promise<void> {
  return write(services.database, async trx => {
    await updatePerson(trx, person.id, { oidc_issuer: null, oidc_subject: null })
    await endSessionsOfKey(trx, person.id, keepSession)
    await addAuditEntry(trx, services, {
      action: 'person.identity_unlinked',
      accountId: person.account_id,
      target: person,
    })
  })
}

async function link(
  trx: Trx,
  services: Services,
  person: Person,
  { identity, email }: IdentityWithEmail,
  sessionId: string | null = null,
): Promise<LinkOutcome> {
  const { issuer, subject } = identity
  if (email === null) return refused('email_unverified', person)
  if (normalizeEmail(email) !== person.email) return refused('email_differs', person)
  const others = await listPeopleByIdentity(trx, identity)
  const isTaken = others.some(one => one.account_id === person.account_id && one.id !== person.id)
  if (isTaken) return refused('identity_taken', person)
  const linked = await updatePerson(trx, person.id, { oidc_issuer: issuer, oidc_subject: subject })
  if (linked === null) return refused('not_invited', null)
  await audit(trx, services, linked, 'person.identity_linked', sessionId)
  return { kind: 'linked', person: linked }
}

const refused = (why: LinkRefusal, person: Person | null): LinkOutcome => ({
  kind: 'refused',
  why,
  person,
})

function audit(
  trx: Trx,
  { clock, random, ip }: Services,
  person: Person,
  action: AuditAction,
  sessionId: string | null = null,
): Promise<void> {
  const origin: Origin = { actor: 'session', keyId: null, person, sessionId, ip }
  const entry = { action, accountId: person.account_id, target: person }
  return addAuditEntry(trx, { clock, random, origin }, entry)
}
