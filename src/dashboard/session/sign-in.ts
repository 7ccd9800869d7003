import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import { hashSecret, isWellFormed } from '../../accounts/key.ts'
import { domainAllowed, ipAllowed } from '../../accounts/key-restrictions.ts'
import { type FoundKey, findKeyByHash } from '../../accounts/key-store.ts'
import { permits } from '../../accounts/scope.ts'
import { newSessionToken, SESSION_MAX_MS } from '../../accounts/session.ts'
import { createSession, endSession } from '../../accounts/session-store.ts'
import { write } from '../../db/database.ts'
import { SECOND } from '../../platform/clock.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { field } from '../page/form.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { barePage } from '../page/layout.ts'
import { notice } from '../page/notice.ts'
import { copyable } from '../page/text.ts'
import { dropToken, keepToken } from './cookie.ts'
import { checkSameSite, shortForms } from './csrf.ts'
import { userOf } from './signed-in.ts'

/** Signing in with a key, signing out, and the key of the first start. */
export function signInRoutes(deps: DashboardDeps): Hono<Env> {
  const { database, firstKeys } = deps
  return new Hono<Env>()
    .get('/sign-in', async c => {
      const next = ownPath(c.req.query('next'))
      if ((await userOf(c, deps)) !== null) return c.redirect(next, 303)
      return signInPage(c, deps, { next })
    })
    .post('/sign-in', shortForms(), async c => {
      checkSameSite(c)
      const { key, next } = await c.req.parseBody()
      const text = typeof key === 'string' ? key.trim() : ''
      const found = await keyOf(deps, text)
      const refusal = refusalOf(c, deps, found)
      if (found === null || refusal !== null) {
        return signInPage(c, deps, { next: ownPath(next), refusal, status: 401 })
      }
      await begin(c, deps, found)
      return c.redirect(ownPath(next), 303)
    })
    .post('/sign-out', async c => {
      const { accountId, sessionId } = c.get('user')
      await write(database, trx => endSession(trx, accountId, sessionId))
      dropToken(c)
      return c.redirect('/sign-in', 303)
    })
    .get('/welcome/:token', c => {
      if (!firstKeys.has(c.req.param('token'))) return gone(c)
      const body = html`
        <p>This is the first start of this service. It made an account and a key that may do everything. The key is shown
        here once: keep it where you keep passwords.</p>
        <form method="post" action="${c.req.path}"><button class="primary">Show the key and sign in</button></form>`
      return barePage(c, { title: 'Welcome', body })
    })
    .post('/welcome/:token', async c => {
      checkSameSite(c)
      const key = firstKeys.take(c.req.param('token'))
      const found = key === null ? null : await keyOf(deps, key)
      if (key === null || found === null) return gone(c)
      await begin(c, deps, found)
      const body = html`
        <p>Your key, shown this once:</p>
        <p>${copyable(key)}</p>
        <p>You are signed in with it. Programs send it as <code>Authorization: Bearer …</code>; keys that may do less are
        made under Keys.</p>
        <p><a class="button primary" href="/verify">Go on</a></p>`
      return barePage(c, { title: 'Your key', body, scripts: [] })
    })
}

/** A path of this service, never an address elsewhere: where somebody wanted to go before signing in. */
export function ownPath(given: unknown): string {
  const isOwn = typeof given === 'string' && /^\/(?![/\\])[\x21-\x7e]*$/.test(given)
  return isOwn ? given : '/verify'
}

type SignIn = {
  readonly next: string
  readonly refusal?: string | null
  readonly status?: 401
}

function signInPage(c: Context<Env>, { settings }: DashboardDeps, o: SignIn) {
  const body = html`
    ${o.refusal ? notice('bad', o.refusal) : NOTHING} ${isStored(c, settings.baseUrl) ? NOTHING : notStored()}
    <form method="post" action="/sign-in">
      <input type="hidden" name="next" value="${o.next}" />
      ${field({
        ...{ label: 'API key', name: 'key', type: 'password', required: true },
        ...{ placeholder: 'ev_live_…', autocomplete: 'current-password' },
        hint: 'One that has the scope “dashboard”, or may do everything.',
      })}
      <button class="primary">Sign in</button>
    </form>
    <p><small>No key yet? The first start of <code>ev serve</code> prints one; <code>ev keys create --name NAME</code> makes more.</small></p>`
  return barePage(c, { title: 'Sign in', body, ...(o.status && { status: o.status }) })
}

/** Browsers keep the cookie of a session where it came by TLS, and on the machine itself. */
function isStored(c: Context<Env>, baseUrl: string): boolean {
  const { hostname } = new URL(c.req.url)
  return baseUrl.startsWith('https:') || /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)
}

const notStored = (): Html =>
  notice(
    'warn',
    'This page came without TLS from another machine, so your browser will not keep the session. Open it by https.',
  )

async function keyOf({ database, clock }: DashboardDeps, text: string): Promise<FoundKey | null> {
  // Guessing is hopeless: a key has 190 bits, and a mistyped one is told by its checksum.
  const found = isWellFormed(text) ? await findKeyByHash(database, hashSecret(text)) : null
  if (found === null) return null
  const ends = [found.key.expiresAt, found.secretExpiresAt]
  return ends.some(end => end !== null && end <= clock.now()) ? null : found
}

/** Why a key opens nothing here, in a sentence; null: it does. */
function refusalOf(
  c: Context<Env>,
  { settings }: DashboardDeps,
  found: FoundKey | null,
): string | null {
  if (found === null) {
    return 'This is no valid API key. A key begins with ev_live_, and may have been revoked or have expired.'
  }
  const { key } = found
  if (!permits(key.scopes, 'dashboard')) {
    return `The key “${key.name}” lacks the scope “dashboard”. Sign in with a key that has it, or make one: ev keys create --name me --scopes dashboard,…`
  }
  if (!domainAllowed(key, settings.baseUrl)) {
    return `The key “${key.name}” may be used by the web sites ${key.allowedDomains.join(', ')} alone, and this is ${settings.baseUrl}. Sign in with another key.`
  }
  return ipAllowed(key, c.get('ip'))
    ? null
    : `The key “${key.name}” may not be used from ${c.get('ip')}.`
}

async function begin(c: Context<Env>, deps: DashboardDeps, found: FoundKey): Promise<void> {
  const { key, secretExpiresAt } = found
  const { database, random, clock } = deps
  const { token, hash } = newSessionToken(random)
  await write(database, trx =>
    createSession(trx, {
      ...{ id: `ses_${random.token(ID_LENGTH)}`, hash },
      ...{ keyId: key.id, accountId: key.accountId, now: clock.now(), secretExpiresAt },
      ...{
        ip: c.get('ip'),
        agent: sanitizeText(c.req.header('User-Agent') ?? '', AGENT_LENGTH_MAX),
      },
    }),
  )
  keepToken(c, token, SESSION_MAX_MS / SECOND)
}

const ID_LENGTH = 16
/** Enough to tell a browser from another. */
const AGENT_LENGTH_MAX = 200

function gone(c: Context<Env>) {
  const body = html`
    <p>The key was shown already, an hour has gone by, or the service was started again. It also stands in the first
    lines that <code>ev serve</code> printed. <code>ev keys create --name NAME</code> makes another one.</p>
    <p><a class="button" href="/sign-in">Sign in</a></p>`
  return barePage(c, { title: 'No key is offered here', body })
}
