import type { Context, MiddlewareHandler } from 'hono'
import { html } from 'hono/html'
import { ipAllowed } from '../../accounts/key-restrictions.ts'
import { permits, type Scope } from '../../accounts/scope.ts'
import { csrfToken, hashToken } from '../../accounts/session.ts'
import { findSession, touchSession } from '../../accounts/session-store.ts'
import { writeConcurrent } from '../../db/database.ts'
import { MINUTE } from '../../platform/clock.ts'
import { errorMessage } from '../../platform/error.ts'
import { apiFor } from '../api.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { sessionToken } from './cookie.ts'

/** Who is signed in, by the key that they signed in with. */
export type SignedIn = {
  readonly sessionId: string
  /** The end of the grace period of the key's text that they signed in with, epoch ms; null: it was not replaced. */
  readonly secretExpiresAt: number | null
  /** To be sent along with whatever changes something. */
  readonly csrf: string
  readonly keyId: string
  readonly keyName: string
  readonly scopes: readonly Scope[]
  readonly accountId: string
  readonly accountName: string
  readonly plan: string
  /** Whether the account is that of whoever runs the service. */
  readonly isAdmin: boolean
}

/** Whether the key of this session may do something. */
export const may = (user: SignedIn, scope: Scope): boolean => permits(user.scopes, scope)

/** Lets only those on who are signed in; others are shown where they can. */
export function signedIn(deps: DashboardDeps): MiddlewareHandler<Env> {
  return async (c, next) => {
    const user = await userOf(c, deps)
    if (user === null) return isCrossSite(c) ? resumeSession(c) : toSignIn(c)
    c.set('user', user)
    c.set('api', apiFor(c, deps, user))
    return next()
  }
}

/** Who a request's cookie says that it is from; null: nobody who may be here. */
export async function userOf(
  c: Context<Env>,
  { database, clock, log }: DashboardDeps,
): Promise<SignedIn | null> {
  const token = sessionToken(c)
  if (token === null) return null
  const now = clock.now()
  const found = await findSession(database, hashToken(token), now)
  if (found === null || !permits(found.key.scopes, 'dashboard')) return null
  const { session, key, account } = found
  // The API would refuse what pages ask of it; some pages show what they know without asking.
  if (!ipAllowed(key, c.get('ip'))) return null
  if (isByHand(c) && now - session.lastSeenAt > TOUCH_EVERY_MS) {
    // Nobody should wait for it, nor be turned away where the disk is full.
    writeConcurrent(database, trx => touchSession(trx, session.id, now)).catch(error =>
      log.warn('the last use of a session could not be noted', { why: errorMessage(error) }),
    )
  }
  return {
    ...{ sessionId: session.id, csrf: csrfToken(token) },
    secretExpiresAt: session.secretExpiresAt,
    ...{ keyId: key.id, keyName: key.name, scopes: key.scopes },
    ...{ accountId: account.id, accountName: account.name, plan: account.plan },
    isAdmin: account.operator === 1,
  }
}

/** A page that stands open asks by itself, and would keep its session for as long as nobody closes it. */
function isByHand({ req }: Context<Env>): boolean {
  const asksItself =
    req.header('HX-Request') === 'true' || req.header('Accept') === 'text/event-stream'
  return req.method !== 'GET' || !asksItself
}

/** Each page would else be a write. */
const TOUCH_EVERY_MS = MINUTE

function toSignIn(c: Context<Env>): Response {
  const { pathname, search } = new URL(c.req.url)
  const next =
    c.req.method === 'GET' && pathname !== '/'
      ? `?next=${encodeURIComponent(pathname + search)}`
      : ''
  // htmx would show the page of signing in inside of this one.
  if (c.req.header('HX-Request') === 'true') {
    return c.body(null, 401, { 'HX-Redirect': '/sign-in' })
  }
  return c.redirect(`/sign-in${next}`, 303)
}

/** A strict cookie does not come along with a link of another site, as in a mail. */
const isCrossSite = (c: Context<Env>) =>
  c.req.method === 'GET' && c.req.header('Sec-Fetch-Site') === 'cross-site'

/** Asked for by a page of ours, the same page comes with the cookie. */
const resumeSession = (c: Context<Env>) =>
  c.html(html`<!doctype html><meta http-equiv="refresh" content="0" /><title>ev</title>`)
