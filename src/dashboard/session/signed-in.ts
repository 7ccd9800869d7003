import type { Context, MiddlewareHandler } from 'hono'
import { html } from 'hono/html'
import { ipAllowed, permits, type Scope } from '../../accounts/key-rights.ts'
import type { ApiKey } from '../../accounts/key-store.ts'
import type { Person } from '../../accounts/people/person-store.ts'
import { lacksSecondFactor } from '../../accounts/people/second-factor.ts'
import {
  csrfToken,
  endSession as deleteSession,
  findSession,
  hashToken,
  touchSession,
} from '../../accounts/session-store.ts'
import { isPoll } from '../../api/request-context.ts'
import { type AuditAction, addAuditEntry, type Origin } from '../../audit.ts'
import { type Trx, write, writeConcurrent } from '../../db/database.ts'
import { MINUTE } from '../../platform/clock.ts'
import { errorMessage } from '../../platform/error.ts'
import { writeLog } from '../../platform/log.ts'
import { apiFor } from '../api.ts'
import type { DashboardDeps, Env, SignedIn } from '../deps.ts'
import { type Html, isHtmx } from '../page/html.ts'
import { DASHBOARD_LOG } from '../telemetry.ts'
import { sessionToken } from './cookie.ts'

/** Returns whether the key or the role of the session has a scope. */
export const may = (user: SignedIn, scope: Scope): boolean => permits(user.scopes, scope)

/** Requires a session; redirects to the sign-in page without one. */
export function signedIn(deps: DashboardDeps): MiddlewareHandler<Env> {
  return async (c, next) => {
    if (await setUser(c, deps)) return next()
    return isCrossSite(c) ? resumeSession(c) : toSignIn(c)
  }
}

/** Sets the user of the session cookie; returns whether there is one. */
export async function setUser(c: Context<Env>, deps: DashboardDeps): Promise<boolean> {
  const user = await userOf(c, deps)
  if (user === null) return false
  c.set('user', user)
  c.set('api', apiFor(c, deps, user))
  return true
}

/** Returns the user of the session cookie; null if there is no valid session. */
export async function userOf(
  c: Context<Env>,
  { database, clock, log }: DashboardDeps,
): Promise<SignedIn | null> {
  const token = sessionToken(c)
  if (token === null) return null
  const now = clock.now()
  const found = await findSession(database, hashToken(token), now)
  if (found === null || !permits(found.key.scopes, 'dashboard')) return null
  const { session, key, account, person } = found
  const isTwoFactorRequired = account.two_factor_required === 1
  if (person === null && isTwoFactorRequired) return null
  // The API checks the IP address too, but some pages render without calling it.
  if (!ipAllowed(key, c.get('ip'))) return null
  // The polling of an open page must not keep the session alive.
  if (!isPoll(c.req) && now - session.lastSeenAt > TOUCH_EVERY_MS) {
    // Not awaited: a slow or full disk must not delay or fail the page.
    writeConcurrent(database, trx => touchSession(trx, session.id, now)).catch(error =>
      writeLog(log, DASHBOARD_LOG.lastUseNotWritten, { why: errorMessage(error) }),
    )
  }
  return {
    sessionId: session.id,
    signedInAt: session.createdAt,
    csrf: csrfToken(token),
    secretExpiresAt: session.secretExpiresAt,
    keyId: key.id,
    name: key.name,
    person,
    scopes: key.scopes,
    isTest: key.isTest,
    accountId: account.id,
    accountName: account.name,
    accountEmail: account.email,
    plan: account.plan,
    isAdmin: account.operator === 1,
    isTwoFactorRequired,
    lacksSecondFactor: person !== null && lacksSecondFactor(account, person),
  }
}

/** Avoids a database write for every page. */
const TOUCH_EVERY_MS = MINUTE

/** Leads back to the page, or to that of a form or of a part that was requested. */
function toSignIn(c: Context<Env>): Response {
  const { req } = c
  const isPart = isHtmx(c)
  const isPage = req.method === 'GET' && !isPart
  const from = isPage ? req.url : (req.header('HX-Current-URL') ?? req.header('Referer') ?? '')
  const { pathname = '/', search = '' } = URL.parse(from) ?? {}
  const path = `/sign-in${pathname === '/' ? '' : `?next=${encodeURIComponent(pathname + search)}`}`
  // htmx would render the sign-in page inside this page.
  return isPart ? c.body(null, 401, { 'HX-Redirect': path }) : c.redirect(path, 303)
}

/** Sends a person who must set up a second factor to that page. */
export const requireSecondFactor = (): MiddlewareHandler<Env> => async (c, next) => {
  if (!c.get('user').lacksSecondFactor) return next()
  if (isHtmx(c)) return c.body(null, 403, { 'HX-Redirect': SECOND_FACTOR })
  return c.redirect(SECOND_FACTOR, 303)
}

/** The page where a person sets up a second factor. */
export const SECOND_FACTOR = '/profile/two-factor'

/** A SameSite=Strict cookie is not sent with a link from another site or an email. */
const isCrossSite = (c: Context<Env>) =>
  c.req.method === 'GET' && c.req.header('Sec-Fetch-Site') === 'cross-site'

/** Reloads the same URL from a page of this site, so that the browser sends the cookie. */
const resumeSession = (c: Context<Env>) =>
  c.html(html`<!doctype html><meta http-equiv="refresh" content="0" /><title>ev</title>`)

type SessionEvent = {
  readonly action: Extract<AuditAction, 'session.started' | 'session.refused'>
  /** Null if the given key or address is unknown. */
  readonly by:
    | { readonly key: Pick<ApiKey, 'id' | 'accountId' | 'name'> }
    | { readonly person: Person }
    | null
  /** Omitted for a refused sign-in. */
  readonly sessionId?: string
}

/** Records a sign-in, or a refused one, in the audit log. */
export function auditSession(
  trx: Trx,
  c: Context<Env>,
  { clock, random }: DashboardDeps,
  { action, by, sessionId: id }: SessionEvent,
): Promise<void> {
  const sessionId = id ?? null
  const person = by !== null && 'person' in by ? by.person : null
  const key = by !== null && 'key' in by ? by.key : null
  const keyId = key?.id ?? null
  const origin = { actor: 'session', keyId, person, sessionId, ip: c.get('ip') } as const
  const opener = person ?? key
  return addAuditEntry(
    trx,
    { clock, random, origin },
    {
      action,
      accountId: person?.account_id ?? key?.accountId ?? null,
      ...(opener !== null && { target: { id: sessionId ?? opener.id, name: opener.name } }),
    },
  )
}

/** Returns the origin of what the signed-in user does, for the audit log. */
export function sessionOrigin(c: Context<Env>): Origin {
  const { keyId, person, sessionId } = c.get('user')
  return {
    actor: 'session',
    keyId: person === null ? keyId : null,
    person,
    sessionId,
    ip: c.get('ip'),
  }
}

/** Ends a session of the account and records it. Returns false if there is none. */
export function endSession(
  c: Context<Env>,
  { database, clock, random }: DashboardDeps,
  id: string,
): Promise<boolean> {
  const { accountId } = c.get('user')
  return write(database, async trx => {
    if (!(await deleteSession(trx, accountId, id))) return false
    const entry = { action: 'session.ended', accountId, target: { id, name: null } } as const
    await addAuditEntry(trx, { clock, random, origin: sessionOrigin(c) }, entry)
    return true
  })
}

/** Says that the key or the role lacks a scope, without a period. */
const describeMissingScope = ({ person, name }: SignedIn, scope: Scope): string =>
  `${person === null ? `The key "${name}"` : `Your role "${person.role}"`} lacks the scope "${scope}"`

/** Explains that the key or the role lacks a scope; `purpose` continues "which". */
export const explainMissingScope = (user: SignedIn, scope: Scope, purpose: string): string =>
  `${describeMissingScope(user, scope)}, which ${purpose}. ${scopeRemedy(user)}`

/** Says how a user gets a scope that the key or the role lacks. */
export const scopeRemedy = ({ person }: SignedIn): string =>
  person === null
    ? 'Sign in with a key that has the scope, or add it to this key under API keys.'
    : 'An admin of the account can change your role.'

/** The note of a page that a user without the scope may only read. */
export const readOnlyNote = (c: Context<Env>, scope: Scope): Html =>
  html`<small>Read-only. ${describeMissingScope(c.get('user'), scope)}.</small>`
