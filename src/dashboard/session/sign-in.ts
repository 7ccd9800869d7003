import { type Context, Hono } from 'hono'
import { setCookie } from 'hono/cookie'
import { html } from 'hono/html'
import { hashSecret, isWellFormed } from '../../accounts/key.ts'
import { domainAllowed, ipAllowed, permits } from '../../accounts/key-rights.ts'
import { type FoundKey, findKeyByHash } from '../../accounts/key-store.ts'
import type { Bucket } from '../../accounts/rate-limits/windows.ts'
import { createSession, newSessionToken, SESSION_MAX_MS } from '../../accounts/session-store.ts'
import { write } from '../../db/database.ts'
import { MINUTE, SECOND } from '../../platform/clock.ts'
import { formatDurationInWords } from '../../platform/format.ts'
import { rateLimitIp } from '../../platform/ip.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { field } from '../page/form.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { barePage, THEME_COOKIE, THEMES } from '../page/layout.ts'
import { notice } from '../page/notice.ts'
import { copyable } from '../page/text.ts'
import { dropToken, keepToken } from './cookie.ts'
import { checkSameSite, shortForms } from './csrf.ts'
import { auditSession, endSession, userOf } from './signed-in.ts'

/** Sign-in with an API key, sign-out, and the welcome page with the first key. */
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
      const attempt = await deps.limits.charge([attemptsFrom(c.get('ip'))])
      if (attempt.refusedBy !== null) {
        const waitMs = (attempt.states[0]?.resetAt ?? 0) - deps.clock.now()
        c.header('Retry-After', String(Math.ceil(waitMs / SECOND)))
        const refusal = `Too many failed sign-ins from ${c.get('ip')}. Try again in ${formatDurationInWords(waitMs, Math.ceil)}.`
        return signInPage(c, deps, { next: ownPath(next), refusal, status: 429 })
      }
      const text = typeof key === 'string' ? key.trim() : ''
      const found = await keyOf(deps, text)
      const refusal = refusalOf(c, deps, found)
      if (found === null || refusal !== null) {
        await write(database, trx =>
          auditSession(trx, c, deps, { action: 'session.refused', key: found?.key ?? null }),
        )
        return signInPage(c, deps, { next: ownPath(next), refusal, status: 401 })
      }
      attempt.giveBack(0)
      await startSession(c, deps, found)
      return c.redirect(ownPath(next), 303)
    })
    .post('/sign-out', async c => {
      const { sessionId } = c.get('user')
      await endSession(c, deps, sessionId)
      dropToken(c)
      return c.redirect('/sign-in', 303)
    })
    .get('/welcome/:token', c => {
      if (!firstKeys.has(c.req.param('token'))) return gone(c)
      const body = html`
        <p>This service has started for the first time. It created an account and an API key with all scopes. The key is
        shown once: store it in your password manager.</p>
        <form method="post" action="${c.req.path}"><button class="primary">Show the key and sign in</button></form>`
      return barePage(c, { title: 'Welcome', body })
    })
    .post('/welcome/:token', async c => {
      checkSameSite(c)
      const key = firstKeys.take(c.req.param('token'))
      const found = key === null ? null : await keyOf(deps, key)
      if (key === null || found === null) return gone(c)
      await startSession(c, deps, found)
      const body = html`
        <p>Your API key. It is not shown again:</p>
        <p>${copyable(key)}</p>
        <p>You are signed in with this key. Programs send it as <code>Authorization: Bearer …</code>. To create keys with
        fewer scopes, go to API keys.</p>
        <p><a class="button primary" href="/overview">Continue</a></p>`
      return barePage(c, { title: 'Your key', body, scripts: [] })
    })
}

/** Failed sign-ins from one IP address in a minute. Each one reads the database. */
const ATTEMPTS_MAX = 10

const attemptsFrom = (ip: string): Bucket => ({
  key: `sign-in:${rateLimitIp(ip)}`,
  limit: ATTEMPTS_MAX,
  perMs: MINUTE,
})

/** Returns the path to open after sign-in, `/overview` if `next` is not a local path. */
function ownPath(next: unknown): string {
  const isOwn = typeof next === 'string' && /^\/(?![/\\])[\x21-\x7e]*$/.test(next)
  return isOwn ? next : '/overview'
}

type SignIn = {
  readonly next: string
  readonly refusal?: string | null
  readonly status?: 401 | 429
}

function signInPage(c: Context<Env>, { settings }: DashboardDeps, o: SignIn) {
  const body = html`
    ${o.refusal ? notice('bad', o.refusal) : NOTHING} ${isStored(c, settings.baseUrl) ? NOTHING : notStored()}
    <form method="post" action="/sign-in">
      <input type="hidden" name="next" value="${o.next}" />
      ${field({
        label: 'API key',
        name: 'key',
        type: 'password',
        required: true,
        placeholder: 'ev_live_…',
        autocomplete: 'current-password',
        hint: 'A key with the scope "dashboard" or "*".',
      })}
      <button class="primary">Sign in</button>
    </form>
    <p><small>No key yet? The first start of <code>ev serve</code> prints one. To create another, run <code>ev keys create --name NAME</code>.</small></p>`
  return barePage(c, { title: 'Sign in', body, ...(o.status && { status: o.status }) })
}

/** Browsers accept the session cookie only over TLS or from localhost. */
function isStored(c: Context<Env>, baseUrl: string): boolean {
  const { hostname } = new URL(c.req.url)
  return baseUrl.startsWith('https:') || /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)
}

const notStored = (): Html =>
  notice(
    'warn',
    'This page was loaded over plain HTTP from another machine, so your browser will not store the session. Open it over HTTPS.',
  )

async function keyOf({ database, clock }: DashboardDeps, text: string): Promise<FoundKey | null> {
  // A key has 190 bits of entropy and a checksum, so it cannot be guessed or mistyped.
  const found = isWellFormed(text) ? await findKeyByHash(database, hashSecret(text)) : null
  if (found === null) return null
  const ends = [found.key.expiresAt, found.secretExpiresAt]
  return ends.some(end => end !== null && end <= clock.now()) ? null : found
}

/** Returns why a key cannot sign in; null if it can. */
function refusalOf(
  c: Context<Env>,
  { settings }: DashboardDeps,
  found: FoundKey | null,
): string | null {
  if (found === null) {
    return 'Invalid API key. A key starts with ev_live_ or ev_test_. It may have been revoked or have expired.'
  }
  const { key } = found
  if (!permits(key.scopes, 'dashboard')) {
    return `The key "${key.name}" lacks the scope "dashboard". Sign in with a key that has it, or create one: ev keys create --name me --scopes dashboard,…`
  }
  if (!domainAllowed(key, settings.baseUrl)) {
    return `The key "${key.name}" is restricted to ${key.allowedDomains.join(', ')}; this is ${settings.baseUrl}. Sign in with another key.`
  }
  return ipAllowed(key, c.get('ip'))
    ? null
    : `The key "${key.name}" is not allowed from ${c.get('ip')}. Sign in with another key.`
}

async function startSession(c: Context<Env>, deps: DashboardDeps, found: FoundKey): Promise<void> {
  const { key, secretExpiresAt } = found
  const { database, random, clock } = deps
  const { token, hash } = newSessionToken(random)
  const id = `ses_${random.token(ID_LENGTH)}`
  await write(database, async trx => {
    await createSession(trx, {
      id,
      hash,
      keyId: key.id,
      accountId: key.accountId,
      now: clock.now(),
      secretExpiresAt,
      ip: c.get('ip'),
      agent: sanitizeText(c.req.header('User-Agent') ?? '', AGENT_LENGTH_MAX),
    })
    await auditSession(trx, c, deps, { action: 'session.started', key, sessionId: id })
  })
  keepToken(c, token, SESSION_MAX_MS / SECOND)
}

const ID_LENGTH = 16
/** Enough to distinguish browsers. */
const AGENT_LENGTH_MAX = 200

function gone(c: Context<Env>) {
  const body = html`
    <p>The key was already shown, an hour has passed, or the service was restarted. The key is also in the first lines of
    output of <code>ev serve</code>. To create another, run <code>ev keys create --name NAME</code>.</p>
    <p><a class="button" href="/sign-in">Sign in</a></p>`
  return barePage(c, { title: 'This link has expired', body })
}

const YEAR_S = 365 * 24 * 60 * 60

/** Stores the theme in a cookie, so that the first paint already uses it. */
export const themeRoutes = () =>
  new Hono<Env>().post('/theme', async c => {
    const { theme, next } = await c.req.parseBody()
    const chosen = THEMES.find(one => one === theme) ?? 'auto'
    setCookie(c, THEME_COOKIE, chosen, { path: '/', sameSite: 'Strict', maxAge: YEAR_S })
    return c.redirect(ownPath(next), 303)
  })
