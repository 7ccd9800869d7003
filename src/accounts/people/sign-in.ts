import type { Database } from '../../db/database.ts'
import { type Clock, DAY, MINUTE } from '../../platform/clock.ts'
import { rateLimitIp } from '../../platform/ip.ts'
import { isRefusal } from '../../platform/operation-error.ts'
import type { Random } from '../../platform/random.ts'
import type { SecretBox } from '../../platform/secret-box.ts'
import { hashEquals, hashSecret } from '../key.ts'
import type { Bucket, Charge, LimitStore } from '../rate-limits/windows.ts'
import type { PasswordHasher } from './password.ts'
import { parsePersonEmail } from './people.ts'
import { findPerson, hasJoined, listPeopleByEmail, type Person } from './person-store.ts'
import { openState, sealState } from './sealed-state.ts'

/** Failed sign-ins from one IP address in a minute. Each one reads the database. */
const IP_FAILURES_MAX = 10
/** Failed sign-ins with one address in `FAILURES_PERIOD_MS`, whoever sends them. */
const FAILURES_MAX = 10
const FAILURES_PERIOD_MS = 15 * MINUTE

export const failuresFrom = (ip: string): Bucket => ({
  key: `sign-in:${rateLimitIp(ip)}`,
  limit: IP_FAILURES_MAX,
  perMs: MINUTE,
})

export const failuresOf = (subject: string): Bucket => ({
  key: `sign-in:${subject}`,
  limit: FAILURES_MAX,
  perMs: FAILURES_PERIOD_MS,
})

export type SignInServices = {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly limits: LimitStore
  readonly passwords: PasswordHasher
  readonly secretBox: SecretBox
}

type PasswordInput = {
  readonly email: string
  readonly password: string
  /** Name or ID of the account; null if the address belongs to one account only. */
  readonly account: string | null
  readonly ip: string
  /** The cookie of a browser that has signed in before; null if there is none. */
  readonly device: string | null
}

/** Too many failures; `resetAt` is epoch ms. */
export type Limited = { readonly kind: 'limited'; readonly resetAt: number }

type PasswordOutcome =
  | Limited
  | { readonly kind: 'overloaded' }
  /** `person` is the one whose password it is not; null for an unknown address. */
  | { readonly kind: 'refused'; readonly person: Person | null }
  | { readonly kind: 'verified'; readonly person: Person }

/**
 * Verifies a password. Failures are limited for each IP address and each email address. A stranger
 * who uses up the failures of an address locks out only browsers that are new to its owner: one that
 * has signed in before has a limit of its own (the device cookies of OWASP). An unknown address
 * takes the same time and has the same limit as a known one.
 */
export async function verifyPassword(
  services: SignInServices,
  { email: given, password, account, ip, device }: PasswordInput,
): Promise<PasswordOutcome> {
  const { database, limits, passwords } = services
  if (passwords.isOverloaded()) return { kind: 'overloaded' }
  const email = normalizeEmail(given)
  const people = await listPeopleByEmail(database.reader, email, account)
  const person = people.length === 1 ? (people[0] ?? null) : null
  const subject = deviceSubject(services, person, device) ?? `email:${hashSecret(email)}`
  const attempt = await limits.charge([failuresFrom(ip), failuresOf(subject)])
  if (attempt.refusedBy !== null) return toLimited(attempt)
  const isRight = await passwords.verify(password, person?.password ?? null)
  if (!isRight || person === null || !hasJoined(person)) return { kind: 'refused', person }
  attempt.giveBack(0)
  attempt.giveBack(1)
  return { kind: 'verified', person }
}

export const toLimited = ({ refusedBy, states }: Charge): Limited => ({
  kind: 'limited',
  resetAt: states[refusedBy ?? 0]?.resetAt ?? 0,
})

/** Returns the form in which addresses are compared; empty if it is not an address. */
export function normalizeEmail(text: string): string {
  try {
    return parsePersonEmail(text)
  } catch (error) {
    if (isRefusal(error, 'email_invalid')) return ''
    throw error
  }
}

/** A browser is known for a year after its last sign-in. */
export const DEVICE_TTL_MS = 365 * DAY

/** Returns the cookie that marks this browser as one in which the person has signed in. */
export function newDevice({ random, secretBox }: SignInServices, { id }: Person): string {
  const nonce = random.token(DEVICE_LENGTH)
  return `${nonce}.${secretBox.sign(`device 1 ${id} ${nonce}`)}`
}

const DEVICE_LENGTH = 20

/** Returns what failures of a known browser are counted by; null if the browser is new. */
function deviceSubject(
  { secretBox }: SignInServices,
  person: Person | null,
  device: string | null,
): string | null {
  if (person === null || device === null) return null
  const [nonce = '', signature = ''] = device.split('.')
  const expected = secretBox.sign(`device 1 ${person.id} ${nonce}`)
  return hashEquals(signature, expected) ? `device:${person.id}:${nonce}` : null
}

type PendingSignIn = { readonly personId: string; readonly password: string }

/** Time to find the authenticator app. */
const PENDING_TTL_MS = 5 * MINUTE

/** Returns the state of a sign-in whose password was right, for the form that asks for the code. */
export const sealPendingSignIn = (
  services: Pick<SignInServices, 'secretBox' | 'clock'>,
  person: Person,
): string => {
  const state: PendingSignIn = { personId: person.id, password: hashSecret(person.password ?? '') }
  return sealState(services, 'second_factor', state, PENDING_TTL_MS)
}

/** Returns the person of a pending sign-in; null if it has expired or the password was changed. */
export async function findPendingPerson(
  services: SignInServices,
  pending: string,
): Promise<Person | null> {
  const state = openState<PendingSignIn>(services, 'second_factor', pending)
  const person =
    state === null ? null : await findPerson(services.database.reader, null, state.personId)
  return person !== null && hashSecret(person.password ?? '') === state?.password ? person : null
}
