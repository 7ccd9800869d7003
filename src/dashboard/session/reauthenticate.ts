import type { Context } from 'hono'
import { html } from 'hono/html'
import type { Person } from '../../accounts/people/person-store.ts'
import { failuresFrom, verifyPassword } from '../../accounts/people/sign-in.ts'
import { MINUTE } from '../../platform/clock.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import type { SubmittedForm } from '../page/form.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { Refusal } from '../page/notice.ts'
import { deviceOf } from './cookie.ts'
import { findSignInKey, OIDC_START } from './sign-in.ts'

// A session may be stolen, or open on a shared machine. Before it ends other sessions or changes how
// people sign in, the user proves again who it is: with the password, with the API key of the session,
// or, without a password, by a recent sign-in with the identity provider.

/** Time in which a sign-in with the identity provider counts as recent. */
const RECENT_MS = 10 * MINUTE

/** Returns why the user of a form is not verified again, as a sentence; null if it is. */
export function findReauthenticationFault(
  c: Context<Env>,
  deps: DashboardDeps,
  { raw }: SubmittedForm,
): Promise<string | null> | string | null {
  const { person } = c.get('user')
  if (person === null) return findKeyFault(c, deps, raw(FIELD).trim())
  if (person.password !== null) return findPasswordRefusal(c, deps, person, raw(FIELD))
  return hasJustSignedIn(c, deps)
    ? null
    : `You signed in more than ${RECENT_MS / MINUTE} minutes ago. Sign in again first. Nothing was changed.`
}

const FIELD = 'current'

/** Verifies the password of the person who is signed in. Returns why it is refused, or null. */
export async function findPasswordRefusal(
  c: Context<Env>,
  deps: DashboardDeps,
  { email, account_id: account }: Person,
  password: string,
): Promise<string | null> {
  const [ip, device] = [c.get('ip'), deviceOf(c)]
  const { kind } = await verifyPassword(deps, { email, account, password, ip, device })
  switch (kind) {
    case 'verified':
      return null
    case 'refused':
      return 'Your current password is wrong. Nothing was changed.'
    case 'limited':
      throw new Refusal(429, 'Too many wrong passwords. Try again in 15 minutes.')
    case 'overloaded':
      throw new Refusal(503, 'Too many people sign in at the moment. Try again in a few seconds.')
    default:
      return kind satisfies never
  }
}

async function findKeyFault(
  c: Context<Env>,
  deps: DashboardDeps,
  text: string,
): Promise<string | null> {
  const attempt = await deps.limits.charge([failuresFrom(c.get('ip'))])
  if (attempt.refusedBy !== null)
    throw new Refusal(429, 'Too many wrong keys. Try again in a minute.')
  const found = await findSignInKey(deps, text)
  if (found?.key.id !== c.get('user').keyId)
    return 'This is not the API key with which you signed in. Nothing was changed.'
  attempt.giveBack(0)
  return null
}

const hasJustSignedIn = (c: Context<Env>, { clock }: Pick<DashboardDeps, 'clock'>): boolean =>
  clock.now() - c.get('user').signedInAt <= RECENT_MS

/**
 * Renders the field of a form that verifies the user again. `id` is unique in the page, whose path is
 * `next`.
 */
export function reauthenticationField(
  c: Context<Env>,
  { clock, identityProvider }: Pick<DashboardDeps, 'clock' | 'identityProvider'>,
  { id, next }: { readonly id: string; readonly next: string },
): Html {
  const { person } = c.get('user')
  if (person === null) return secretField(id, 'Your API key')
  if (person.password !== null) return currentPassword(id)
  if (hasJustSignedIn(c, { clock })) return NOTHING
  const url = `${OIDC_START}?next=${encodeURIComponent(next)}`
  return html`<p><a href="${url}">Sign in again with ${identityProvider?.name ?? 'the identity provider'}</a> first.</p>`
}

/** Renders the field for the password of the person who is signed in. */
export const currentPassword = (id: string): Html => secretField(id, 'Current password')

const secretField = (id: string, label: string): Html => html`
  <p class="field"><label for="${id}">${label}</label>
    <input id="${id}" name="${FIELD}" type="password" autocomplete="current-password" required /></p>`
