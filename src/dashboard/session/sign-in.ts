import { type Context, Hono } from 'hono'
import { setCookie } from 'hono/cookie'
import { html } from 'hono/html'
import { hashSecret, isWellFormed } from '../../accounts/key.ts'
import { domainAllowed, ipAllowed, permits } from '../../accounts/key-rights.ts'
import { type FoundKey, findKeyByHash } from '../../accounts/key-store.ts'
import type { IdentityProvider } from '../../accounts/people/identity-provider.ts'
import { arePeopleInvited, type Person } from '../../accounts/people/person-store.ts'
import { verifySecondFactor } from '../../accounts/people/second-factor.ts'
import {
  failuresFrom,
  findPendingPerson,
  type Limited,
  sealPendingSignIn,
  toLimited,
  verifyPassword,
} from '../../accounts/people/sign-in.ts'
import { write } from '../../db/database.ts'
import { SECOND } from '../../platform/clock.ts'
import { formatDurationInWords } from '../../platform/format.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { field } from '../page/form.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { barePage, THEME_COOKIE, THEMES } from '../page/layout.ts'
import { notice, Refusal } from '../page/notice.ts'
import { copyable } from '../page/text.ts'
import { deviceOf, dropToken } from './cookie.ts'
import { checkSameSite, shortForms } from './csrf.ts'
import { auditSession, endSession, userOf } from './signed-in.ts'
import { startSession } from './start-session.ts'

/** Sign-in with a password or an API key, sign-out, and the welcome page with the first key. */
export function signInRoutes(deps: DashboardDeps): Hono<Env> {
  const { firstKeys } = deps
  return new Hono<Env>()
    .get('/sign-in', async c => {
      const next = ownPath(c.req.query('next'))
      if ((await userOf(c, deps)) !== null) return c.redirect(next, 303)
      return signInPage(c, deps, { next })
    })
    .post('/sign-in', shortForms(), async c => {
      checkSameSite(c)
      const sent = await c.req.parseBody()
      const [next, text] = [ownPath(sent.next), (name: string) => textOf(sent[name])]
      return sent.key === undefined
        ? signInPerson(c, deps, { next, text })
        : signInKey(c, deps, { next, key: text('key').trim() })
    })
    .post('/sign-in/code', shortForms(), async c => {
      checkSameSite(c)
      const sent = await c.req.parseBody()
      const [next, pending] = [ownPath(sent.next), textOf(sent.pending)]
      const person = await findPendingPerson(deps, pending)
      if (person === null) {
        const refusal = 'The sign-in has expired. Enter your password again.'
        return signInPage(c, deps, { next, refusal, status: 401 })
      }
      const code = textOf(sent.code).trim()
      const checked = await verifySecondFactor(deps, person, { code, ip: c.get('ip') })
      if (checked.kind === 'limited')
        return codePage(c, { next, pending, limited: limit(c, deps, checked) })
      if (checked.kind === 'refused') {
        await auditRefusal(c, deps, { person })
        return codePage(c, { next, pending, refusal: WRONG_CODE })
      }
      await startSession(c, deps, { person })
      return c.redirect(next, 303)
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
      const found = key === null ? null : await findSignInKey(deps, key)
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

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

async function signInKey(
  c: Context<Env>,
  deps: DashboardDeps,
  { next, key: text }: { readonly next: string; readonly key: string },
): Promise<Response> {
  const attempt = await deps.limits.charge([failuresFrom(c.get('ip'))])
  if (attempt.refusedBy !== null) {
    return signInPage(c, deps, { next, refusal: limit(c, deps, toLimited(attempt)), status: 429 })
  }
  const found = await findSignInKey(deps, text)
  const refusal = refusalOf(c, deps, found)
  if (found === null || refusal !== null) {
    await auditRefusal(c, deps, found)
    return signInPage(c, deps, { next, refusal, status: 401, isKey: true })
  }
  attempt.giveBack(0)
  await startSession(c, deps, found)
  return c.redirect(next, 303)
}

type PersonForm = { readonly next: string; readonly text: (name: string) => string }

async function signInPerson(
  c: Context<Env>,
  deps: DashboardDeps,
  { next, text }: PersonForm,
): Promise<Response> {
  const email = text('email').trim()
  const account = text('account').trim()
  const checked = await verifyPassword(deps, {
    email,
    password: text('password'),
    account: account === '' ? null : account,
    ip: c.get('ip'),
    device: deviceOf(c),
  })
  const shown = { next, email, account }
  switch (checked.kind) {
    case 'overloaded':
      throw new Refusal(503, 'Too many people sign in at the moment. Try again in a few seconds.')
    case 'limited':
      return signInPage(c, deps, { ...shown, refusal: limit(c, deps, checked), status: 429 })
    case 'refused':
      await auditRefusal(c, deps, checked.person && { person: checked.person })
      return signInPage(c, deps, { ...shown, refusal: WRONG_PASSWORD, status: 401 })
    case 'verified':
      return continueSignIn(c, deps, { person: checked.person, next })
    default:
      return checked satisfies never
  }
}

/** Starts the session of a person whose password was verified, after the second factor if there is one. */
export async function continueSignIn(
  c: Context<Env>,
  deps: DashboardDeps,
  { person, next }: { readonly person: Person; readonly next: string },
): Promise<Response> {
  if (person.totp_secret !== null) {
    return codePage(c, { next, pending: sealPendingSignIn(deps, person) })
  }
  await startSession(c, deps, { person })
  return c.redirect(next, 303)
}

const WRONG_PASSWORD =
  'Wrong email address or password. If your address belongs to several accounts, enter the account too.'
const WRONG_CODE =
  'Wrong code. A code works once: wait for the next one, and check the clock of your phone.'

/** Sets `Retry-After` and returns the sentence for too many failures. */
export function limit(c: Context<Env>, { clock }: DashboardDeps, { resetAt }: Limited): string {
  const waitMs = resetAt - clock.now()
  c.header('Retry-After', String(Math.ceil(waitMs / SECOND)))
  return `Too many failed sign-ins from ${c.get('ip')}. Try again in ${formatDurationInWords(waitMs, Math.ceil)}.`
}

export const auditRefusal = (
  c: Context<Env>,
  deps: DashboardDeps,
  by: Parameters<typeof auditSession>[3]['by'],
): Promise<void> =>
  write(deps.database, trx => auditSession(trx, c, deps, { action: 'session.refused', by }))

type CodeForm = {
  readonly next: string
  readonly pending: string
  readonly refusal?: string
  readonly limited?: string
}

function codePage(c: Context<Env>, { next, pending, refusal, limited }: CodeForm) {
  const body = html`
    <form method="post" action="/sign-in/code">
      <input type="hidden" name="next" value="${next}" />
      <input type="hidden" name="pending" value="${pending}" />
      ${field({
        label: 'Code',
        name: 'code',
        required: true,
        autocomplete: 'one-time-code',
        hint: 'The six digits of your authenticator app, or a recovery code.',
      })}
      <button class="primary">Sign in</button>
    </form>
    <p><small>Lost your phone and your recovery codes? An admin of the account can remove the second factor.</small></p>`
  const status = limited !== undefined ? 429 : refusal !== undefined ? 401 : 200
  return barePage(c, { title: 'Second factor', body, problem: refusal ?? limited, status })
}

/** Returns the path to open after sign-in, `/overview` if `next` is not a local path. */
export function ownPath(next: unknown): string {
  const isOwn = typeof next === 'string' && /^\/(?![/\\])[\x21-\x7e]*$/.test(next)
  return isOwn ? next : '/overview'
}

type SignIn = {
  readonly next: string
  readonly refusal?: string | null
  readonly status?: 401 | 429 | 503
  /** Whether the refused form was that of a key. */
  readonly isKey?: boolean
  readonly email?: string
  readonly account?: string
}

/** Shows the form of a key alone until people are invited. */
export async function signInPage(
  c: Context<Env>,
  { settings, database, identityProvider }: DashboardDeps,
  o: SignIn,
) {
  const hasPeople = await arePeopleInvited(database.reader)
  const body = html`
    ${isStored(c, settings.baseUrl) ? NOTHING : notStored()}
    ${hasPeople && identityProvider !== null ? oidcLink(identityProvider, o) : NOTHING}
    ${hasPeople ? personForm(o) : keyForm(o)}
    ${
      hasPeople
        ? html`<details ${o.isKey ? html`open` : NOTHING}><summary>Sign in with an API key</summary>${keyForm(o)}</details>`
        : html`<p><small>No key yet? The first start of <code>ev serve</code> prints one. To create another, run <code>ev keys create --name NAME</code>.</small></p>`
    }`
  return barePage(c, { title: 'Sign in', body, problem: o.refusal ?? undefined, status: o.status })
}

const oidcLink = ({ name }: IdentityProvider, { next }: SignIn): Html => html`
  <p><a class="button primary" href="${OIDC_START}?next=${encodeURIComponent(next)}">Sign in with ${name}</a></p>
  <p><small>Or sign in with your password:</small></p>`

/** A link and not a form, because the Content-Security-Policy lets no form end at another site. */
export const OIDC_START = '/sign-in/oidc'

const personForm = ({ next, email, account }: SignIn): Html => html`
  <form method="post" action="/sign-in">
    <input type="hidden" name="next" value="${next}" />
    ${field({ label: 'Email address', name: 'email', type: 'email', value: email ?? '', required: true, autocomplete: 'username' })}
    ${field({ label: 'Password', name: 'password', type: 'password', required: true, autocomplete: 'current-password' })}
    ${field({
      label: 'Account',
      name: 'account',
      value: account ?? '',
      autocomplete: 'organization',
      hint: 'Only if your address belongs to several accounts: the name of one.',
    })}
    <button class="primary">Sign in</button>
  </form>
  <p><small>Forgot your password? An admin of the account can create a new link for you.</small></p>`

const keyForm = ({ next }: SignIn): Html => html`
  <form method="post" action="/sign-in">
    <input type="hidden" name="next" value="${next}" />
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
  </form>`

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

/** Finds the valid key with this secret. */
export async function findSignInKey(
  { database, clock }: Pick<DashboardDeps, 'database' | 'clock'>,
  text: string,
): Promise<FoundKey | null> {
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
  const { key, account } = found
  if (account.two_factor_required === 1) {
    return `The account "${account.name}" requires a second factor, so API keys cannot sign in. Sign in with your email address and password.`
  }
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
