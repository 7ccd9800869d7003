import { type Context, Hono } from 'hono'
import { html, raw } from 'hono/html'
import encodeQr from 'qr'
import { unlinkIdentity } from '../../accounts/people/identities.ts'
import type { IdentityProvider } from '../../accounts/people/identity-provider.ts'
import { changePassword } from '../../accounts/people/people.ts'
import { countRecoveryCodes, type Person } from '../../accounts/people/person-store.ts'
import {
  disableTotp,
  enableTotp,
  findSetupSecret,
  replaceRecoveryCodes,
  startTotpSetup,
} from '../../accounts/people/second-factor.ts'
import { totpUri } from '../../accounts/people/totp.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { confirmed, field, form, sentForm } from '../page/form.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { page } from '../page/layout.ts'
import { Refusal } from '../page/notice.ts'
import { card, primaryLink } from '../page/parts.ts'
import { copyable } from '../page/text.ts'
import { redirectWithNote } from '../session/cookie.ts'
import { requireProvider, startOidc } from '../session/oidc.ts'
import { currentPassword, findPasswordRefusal } from '../session/reauthenticate.ts'
import { sessionOrigin } from '../session/signed-in.ts'
import { findNewPasswordFault, newPasswordFields } from './invitation.ts'

/** The page where a person changes the own password and second factor. */
export function profileRoutes(deps: DashboardDeps): Hono<Env> {
  const router = new Hono<Env>()
    .get('/profile', c => profilePage(c, deps))
    .post('/profile/password', async c => {
      const person = personOf(c)
      const { raw: value } = await sentForm(c)
      const password = value('password')
      const fault =
        (await findRefusal(c, deps)) ??
        (await findNewPasswordFault(password, value('repeated'), person.email))
      if (fault !== null) return profilePage(c, deps, fault)
      const passwordHash = await deps.passwords.hash(password)
      const keepSession = c.get('user').sessionId
      await changePassword(withOrigin(c, deps), { person, passwordHash, keepSession })
      return redirectWithNote(c, '/profile', 'Password changed. Your other sessions have ended.')
    })
  router.route('/', secondFactorRoutes(deps))
  router.route('/', identityRoutes(deps))
  return router
}

function secondFactorRoutes(deps: DashboardDeps): Hono<Env> {
  return new Hono<Env>()
    .get('/profile/two-factor', async c => {
      const person = personOf(c)
      return person.totp_secret === null
        ? setupPage(c, deps, startTotpSetup(deps, person))
        : c.redirect('/profile', 303)
    })
    .post('/profile/two-factor', async c => {
      const person = personOf(c)
      const { text } = await sentForm(c)
      const setup = text('setup')
      const secret = findSetupSecret(deps, person, setup)
      if (secret === null) {
        const fault = 'The setup has expired. Scan the new code.'
        return setupPage(c, deps, { ...startTotpSetup(deps, person), fault })
      }
      const fault = await findRefusal(c, deps)
      if (fault !== null) return setupPage(c, deps, { secret, setup, fault })
      const services = withOrigin(c, deps)
      const codes = await enableTotp(services, person, { secret, code: text('code') })
      return codes === null
        ? setupPage(c, deps, { secret, setup, fault: WRONG_CODE })
        : codesPage(c, codes)
    })
    .post('/profile/two-factor/remove', async c => {
      const fault = await findRefusal(c, deps)
      if (fault !== null) return profilePage(c, deps, fault)
      if (c.get('user').isTwoFactorRequired) return profilePage(c, deps, REQUIRED)
      await disableTotp(withOrigin(c, deps), personOf(c))
      return redirectWithNote(c, '/profile', 'Second factor removed.')
    })
    .post('/profile/recovery-codes', async c => {
      const fault = await findRefusal(c, deps)
      if (fault !== null) return profilePage(c, deps, fault)
      return codesPage(c, await replaceRecoveryCodes(withOrigin(c, deps), personOf(c)))
    })
}

/** Routes that link the person to the identity provider and remove the link. */
function identityRoutes(deps: DashboardDeps): Hono<Env> {
  return new Hono<Env>()
    .post('/profile/identity', async c => {
      const person = personOf(c)
      const fault = await findRefusal(c, deps)
      if (fault !== null) return profilePage(c, deps, fault)
      const { sessionId } = c.get('user')
      const intent = { kind: 'link', personId: person.id, sessionId } as const
      const url = await startOidc(c, deps, intent, '/profile')
      return url instanceof URL ? providerPage(c, deps, url) : profilePage(c, deps, url.sentence)
    })
    .post('/profile/identity/remove', async c => {
      const fault = await findRefusal(c, deps)
      if (fault !== null) return profilePage(c, deps, fault)
      const keepSession = c.get('user').sessionId
      await unlinkIdentity(withOrigin(c, deps), { person: personOf(c), keepSession })
      return redirectWithNote(
        c,
        '/profile',
        'Sign in with your password from now on. Your other sessions have ended.',
      )
    })
}

const REQUIRED = 'Your account requires a second factor. Nothing was changed.'

const WRONG_CODE = 'Wrong code. Check the clock of your phone and enter the code that it shows now.'

const withOrigin = (c: Context<Env>, deps: DashboardDeps) => ({ ...deps, origin: sessionOrigin(c) })

/** Throws a Refusal for a session that a key started. */
function personOf(c: Context<Env>): Person {
  const { person } = c.get('user')
  if (person !== null) return person
  throw new Refusal(404, 'You are signed in with an API key. Only people have a password.')
}

/** Returns why the current password in a form is refused, as a sentence; null if it is right. */
const findRefusal = async (c: Context<Env>, deps: DashboardDeps): Promise<string | null> =>
  findPasswordRefusal(c, deps, personOf(c), (await sentForm(c)).raw('current'))

async function profilePage(
  c: Context<Env>,
  { database, identityProvider }: DashboardDeps,
  fault?: string,
): Promise<Response> {
  const person = personOf(c)
  const codesLeft = await countRecoveryCodes(database.reader, person.id)
  return page(c, {
    title: 'Your sign-in',
    intro: `${person.name}, ${person.email}, ${person.role} of this account.`,
    body: html`
      <div class="grid">
        ${passwordCard(c, person)} ${secondFactorCard(c, person, codesLeft)} ${identityCard(c, person, identityProvider)}
      </div>`,
    problem: fault,
  })
}

const passwordCard = (c: Context<Env>, { password }: Person): Html =>
  card({
    title: 'Password',
    body:
      password === null
        ? html`<p>You have no password here. To set one, ask an admin of the account for a new link.</p>`
        : form(
            c,
            '/profile/password',
            html`${currentPassword('current')}${newPasswordFields()}<button class="primary">Change password</button>`,
          ),
  })

/** Linking asks for the password: a stolen session must not add another way to sign in. */
function identityCard(
  c: Context<Env>,
  { password, oidc_subject: subject }: Person,
  provider: IdentityProvider | null,
): Html {
  const name = provider?.name ?? 'the identity provider'
  if (subject === null) {
    if (provider === null) return NOTHING
    const fields = html`${currentPassword('link-password')}<button>Link ${name}</button>`
    return card({
      title: name,
      body: html`
        <p>Sign in with ${name} in place of your password. It must have your address ${c.get('user').person?.email}.</p>
        ${form(c, '/profile/identity', fields)}`,
    })
  }
  const isOnly = password === null
  return card({
    title: provider?.name ?? 'Identity provider',
    body: html`
      <p>You can sign in with ${name}${isOnly ? html`, which asks for a second factor if it requires one` : NOTHING}.</p>
      ${
        isOnly
          ? NOTHING
          : confirmed(c, {
              action: '/profile/identity/remove',
              label: 'Remove the link',
              question: `You will sign in with your password again, and no longer with ${name}.`,
              yes: 'Yes, remove it',
              fields: currentPassword('unlink-password'),
            })
      }`,
  })
}

/** A link and not a redirect: the Content-Security-Policy lets no form end at another site. */
const providerPage = (c: Context<Env>, deps: DashboardDeps, url: URL): Promise<Response> => {
  const { name } = requireProvider(deps)
  return page(c, {
    title: `Link ${name}`,
    back: { href: '/profile', label: 'Your sign-in' },
    hasAlerts: false,
    body: html`
      <div class="card">
        <p>Sign in with ${name}. It then sends you back to your page.</p>
        <p><a class="button primary" href="${url.href}">Continue to ${name}</a></p>
      </div>`,
  })
}

function secondFactorCard(c: Context<Env>, person: Person, codesLeft: number): Html {
  if (person.password === null) return NOTHING
  if (person.totp_secret === null) {
    return card({
      title: 'Second factor',
      body: html`
        <p>With a second factor, a stolen password is not enough to sign in. You need an authenticator app.</p>
        <p>${primaryLink('/profile/two-factor', 'Set up a second factor')}</p>`,
    })
  }
  return card({
    title: 'Second factor',
    body: html`
      <p>Sign-in asks for a code of your authenticator app. Recovery codes left: <b>${codesLeft}</b>.</p>
      ${form(c, '/profile/recovery-codes', html`${currentPassword('codes-password')}<button>Create new recovery codes</button>`)}
      ${
        c.get('user').isTwoFactorRequired
          ? html`<p><small>Your account requires it.</small></p>`
          : confirmed(c, {
              action: '/profile/two-factor/remove',
              label: 'Remove second factor',
              question:
                'Without it, anyone who knows your password can sign in. The recovery codes stop working.',
              yes: 'Yes, remove it',
              fields: currentPassword('remove-password'),
            })
      }`,
  })
}

type Setup = { readonly secret: string; readonly setup: string; readonly fault?: string }

function setupPage(
  c: Context<Env>,
  { settings }: DashboardDeps,
  { secret, setup, fault }: Setup,
): Promise<Response> {
  const { email } = personOf(c)
  const uri = totpUri(secret, { issuer: new URL(settings.baseUrl).host, email })
  return page(c, {
    title: 'Second factor',
    back: { href: '/profile', label: 'Your sign-in' },
    hasAlerts: false,
    body: html`
      <div class="card">
        ${c.get('user').lacksSecondFactor ? html`<p>Your account requires a second factor. Set it up to continue.</p>` : NOTHING}
        <p>Scan the code with an authenticator app, or enter the key in the app.</p>
        <div class="qr" role="img" aria-label="QR code of the key below">${raw(encodeQr(uri, 'svg'))}</div>
        <p>Key: ${copyable(secret)}</p>
        ${form(
          c,
          '/profile/two-factor',
          html`
            <input type="hidden" name="setup" value="${setup}" />
            ${field({ label: 'Code', name: 'code', required: true, autocomplete: 'one-time-code', hint: 'The six digits that the app shows.' })}
            ${currentPassword('current')}
            <button class="primary">Enable</button>`,
        )}
      </div>`,
    problem: fault,
  })
}

const codesPage = (c: Context<Env>, codes: readonly string[]): Promise<Response> =>
  page(c, {
    title: 'Recovery codes',
    back: { href: '/profile', label: 'Your sign-in' },
    hasAlerts: false,
    body: html`
      <div class="card">
        <p>The second factor is on. Each of these codes replaces it once, for when you lose your phone. They are not shown
        again: store them in your password manager, or print them.</p>
        <ul class="codes">${codes.map(code => html`<li><code>${code}</code></li>`)}</ul>
        <p><a class="button primary" href="/profile">Done</a></p>
      </div>`,
  })
