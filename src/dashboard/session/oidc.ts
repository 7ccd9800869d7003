import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import {
  findInvitedPeople,
  findLinkedPeople,
  type IdentityWithEmail,
  joinWithIdentity,
  type LinkOutcome,
  linkIdentity,
} from '../../accounts/people/identities.ts'
import {
  type Challenge,
  type IdentityProvider,
  OIDC_CALLBACK,
  type ProviderFault,
  type VerifiedIdentity,
} from '../../accounts/people/identity-provider.ts'
import { findInvitedPerson } from '../../accounts/people/people.ts'
import type { Person, PersonOfAccount } from '../../accounts/people/person-store.ts'
import { openState, sealState } from '../../accounts/people/sealed-state.ts'
import { failuresFrom, toLimited } from '../../accounts/people/sign-in.ts'
import { MINUTE, SECOND } from '../../platform/clock.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { sentForm } from '../page/form.ts'
import { barePage } from '../page/layout.ts'
import { Refusal } from '../page/notice.ts'
import { keepOidcState, redirectWithNote, takeOidcState } from './cookie.ts'
import { checkSameSite, isOwnNavigation, shortForms } from './csrf.ts'
import { auditRefusal, limit, OIDC_START, ownPath, signInPage } from './sign-in.ts'
import { startSession } from './start-session.ts'

// Sign-in with the identity provider. The start keeps what binds the answer to this browser in a sealed
// cookie and sends the browser to the provider. The callback opens the cookie, lets the provider's
// answer be verified, and finds the person.

/** What the person wants at the provider. */
type Intent =
  | { readonly kind: 'sign_in' }
  /** To accept the invitation of a link. */
  | { readonly kind: 'invitation'; readonly token: string }
  /** To link the identity to the person who is signed in. */
  | { readonly kind: 'link'; readonly personId: string; readonly sessionId: string }

type Pending = {
  readonly challenge: Challenge
  readonly intent: Intent
  /** The page to open afterwards. */
  readonly next: string
}

/** Time to sign in at the provider, with a second factor there. */
const PENDING_TTL_MS = 10 * MINUTE

/** Routes of the sign-in with the identity provider. */
export function oidcRoutes(deps: DashboardDeps): Hono<Env> {
  return new Hono<Env>()
    .get(OIDC_START, async c => {
      const next = ownPath(c.req.query('next'))
      // A foreign page must not sign a visitor in: the visitor starts it at the sign-in page.
      if (!isOwnNavigation(c)) return c.redirect(`/sign-in?next=${encodeURIComponent(next)}`, 303)
      return start(c, deps, { kind: 'sign_in' }, next)
    })
    .get('/invitation/:token/oidc', async c => {
      const token = c.req.param('token')
      const isOpen = (await findInvitedPerson(deps, token)) !== null
      if (!isOpen || !isOwnNavigation(c))
        return c.redirect(`/invitation/${encodeURIComponent(token)}`, 303)
      return start(c, deps, { kind: 'invitation', token }, '/overview')
    })
    .get(OIDC_CALLBACK, c => finish(c, deps))
    .post('/sign-in/oidc/account', shortForms(), async c => {
      checkSameSite(c)
      const { text } = await sentForm(c)
      const choice = openState<Choice>(deps, 'oidc_account', text('pending'))
      const next = ownPath(text('next'))
      if (choice === null) return signInPage(c, deps, { next, refusal: EXPIRED, status: 401 })
      const people = await findPeople(deps, choice)
      const person = people.find(({ id }) => id === text('person'))
      if (person === undefined)
        throw new Refusal(404, 'Account not found. Start the sign-in again.')
      const done = await signIn(c, deps, { person, choice, next })
      if (done instanceof Response) return done
      await auditRefusal(c, deps, { person })
      return signInPage(c, deps, { next, refusal: done.sentence, status: done.status })
    })
}

async function start(
  c: Context<Env>,
  deps: DashboardDeps,
  intent: Intent,
  next: string,
): Promise<Response> {
  const url = await startOidc(c, deps, intent, next)
  return url instanceof URL
    ? c.redirect(url.href, 303)
    : failPage(c, deps, { intent, next, sentence: url.sentence, status: 503 })
}

/** Keeps the state of the sign-in in a cookie. Returns the URL of the provider to open. */
export async function startOidc(
  c: Context<Env>,
  deps: DashboardDeps,
  intent: Intent,
  next: string,
): Promise<URL | ProviderFault> {
  const provider = requireProvider(deps)
  const challenge = provider.newChallenge()
  const url = await provider.authorizationUrl(challenge)
  if (!(url instanceof URL)) return url
  const pending: Pending = {
    challenge,
    intent,
    next: next.length > NEXT_LENGTH_MAX ? '/overview' : next,
  }
  keepOidcState(c, sealState(deps, 'oidc', pending, PENDING_TTL_MS), PENDING_TTL_MS / SECOND)
  return url
}

/** Browsers drop a cookie of more than 4,096 bytes. */
const NEXT_LENGTH_MAX = 1_000

/** Throws a Refusal if the service has no identity provider. */
export function requireProvider({ identityProvider }: DashboardDeps): IdentityProvider {
  if (identityProvider !== null) return identityProvider
  throw new Refusal(404, 'This service has no identity provider. Sign in with your password.')
}

async function finish(c: Context<Env>, deps: DashboardDeps): Promise<Response> {
  const provider = requireProvider(deps)
  const sealed = takeOidcState(c)
  const attempt = await deps.limits.charge([failuresFrom(c.get('ip'))])
  if (attempt.refusedBy !== null) {
    const refusal = limit(c, deps, toLimited(attempt))
    return signInPage(c, deps, { next: '/overview', refusal, status: 429 })
  }
  const pending = sealed === null ? null : openState<Pending>(deps, 'oidc', sealed)
  if (pending === null) {
    await auditRefusal(c, deps, null)
    return signInPage(c, deps, { next: '/overview', refusal: expired(deps), status: 401 })
  }
  const { intent, next, challenge } = pending
  const identity = await provider.redeem(new URL(c.req.url).searchParams, challenge)
  const done =
    'fault' in identity ? toFailure(identity) : await useIdentity(c, deps, pending, identity)
  if (done instanceof Response) {
    attempt.giveBack(0)
    return done
  }
  // An outage of the provider is not a failure of the person.
  if (done.status === 503) attempt.giveBack(0)
  else await auditRefusal(c, deps, done.person && { person: done.person })
  return failPage(c, deps, { intent, next, sentence: done.sentence, status: done.status })
}

const expired = ({ settings }: DashboardDeps) =>
  `${EXPIRED} If that does not help, open the dashboard at ${settings.baseUrl} and allow its cookies.`

const EXPIRED =
  'The sign-in has expired, or was started in another browser or another tab. Start it again.'

/** Why nobody is signed in. */
type Failure = {
  readonly sentence: string
  readonly status: 401 | 503
  readonly person: Person | null
}

const toFailure = ({ fault, sentence }: ProviderFault): Failure => ({
  sentence,
  status: fault === 'unavailable' ? 503 : 401,
  person: null,
})

async function useIdentity(
  c: Context<Env>,
  deps: DashboardDeps,
  { intent, next }: Pending,
  identity: VerifiedIdentity,
): Promise<Response | Failure> {
  if (intent.kind === 'sign_in') return signInIdentity(c, deps, identity, next)
  const found = await identity.findVerifiedEmail()
  if ('fault' in found) return toFailure(found)
  const [input, services] = [
    { identity, email: found.email },
    { ...deps, ip: c.get('ip') },
  ]
  if (intent.kind === 'link') {
    const linked = await linkIdentity(services, { ...input, ...intent })
    if (linked.kind === 'refused') return explain(deps, linked, input)
    return redirectWithNote(
      c,
      '/profile',
      `You can now sign in with ${requireProvider(deps).name}.`,
    )
  }
  const invited = await findInvitedPerson(deps, intent.token)
  if (invited === null) return explain(deps, NOT_INVITED, input)
  const { token } = intent
  const joined = await joinWithIdentity(services, { ...input, personId: invited.id, token })
  if (joined.kind === 'refused') return explain(deps, joined, input)
  await startSession(c, deps, { person: joined.person })
  return c.redirect(next, 303)
}

/** Signs in the person of an identity; for several accounts, the person chooses one. */
async function signInIdentity(
  c: Context<Env>,
  deps: DashboardDeps,
  identity: VerifiedIdentity,
  next: string,
): Promise<Response | Failure> {
  const { issuer, subject } = identity
  const linked = await findLinkedPeople(deps, identity)
  const found = linked.length > 0 ? NO_EMAIL : await identity.findVerifiedEmail()
  if ('fault' in found) return toFailure(found)
  const choice: Choice = { identity: { issuer, subject }, email: found.email }
  const people = linked.length > 0 ? linked : await findPeople(deps, choice)
  const [person] = people
  if (person === undefined) {
    return explain(deps, found.email === null ? UNVERIFIED : NOT_INVITED, choice)
  }
  return people.length === 1
    ? signIn(c, deps, { person, choice, next })
    : choicePage(c, deps, { people, choice, next })
}

const NO_EMAIL = { email: null }
const NOT_INVITED = { kind: 'refused', why: 'not_invited', person: null } as const
const UNVERIFIED = { kind: 'refused', why: 'email_unverified', person: null } as const

/** An identity that was verified, while the person chooses an account. */
type Choice = IdentityWithEmail

/** Lists the people whom an identity may sign in: those linked to it, else those invited. */
async function findPeople(
  deps: DashboardDeps,
  { identity, email }: Choice,
): Promise<readonly PersonOfAccount[]> {
  const linked = await findLinkedPeople(deps, identity)
  if (linked.length > 0 || email === null) return linked
  return findInvitedPeople(deps, email)
}

type SignIn = { readonly person: Person; readonly choice: Choice; readonly next: string }

/** Starts the session of a person, who joins with it if it is the first one. */
async function signIn(
  c: Context<Env>,
  deps: DashboardDeps,
  { person, choice, next }: SignIn,
): Promise<Response | Failure> {
  if (person.oidc_subject === null) {
    const services = { ...deps, ip: c.get('ip') }
    const joined = await joinWithIdentity(services, {
      ...choice,
      personId: person.id,
      token: null,
    })
    if (joined.kind === 'refused') return explain(deps, joined, choice)
  }
  await startSession(c, deps, { person })
  return c.redirect(next, 303)
}

type Shown = { readonly people: readonly PersonOfAccount[]; readonly choice: Choice }

function choicePage(
  c: Context<Env>,
  deps: DashboardDeps,
  { people, choice, next }: Shown & { readonly next: string },
): Response | Promise<Response> {
  const pending = sealState(deps, 'oidc_account', choice, PENDING_TTL_MS)
  const body = html`
    <p>Your address belongs to several accounts. Choose the one to open:</p>
    <form method="post" action="/sign-in/oidc/account">
      <input type="hidden" name="next" value="${next}" />
      <input type="hidden" name="pending" value="${pending}" />
      ${people.map(
        ({ id, account_name: account, role }) =>
          html`<p><button name="person" value="${id}">${account} <small>${role}</small></button></p>`,
      )}
    </form>`
  return barePage(c, { title: 'Choose an account', body })
}

/** Explains why an identity was not linked. */
function explain(
  deps: DashboardDeps,
  { why, person }: Extract<LinkOutcome, { kind: 'refused' }>,
  { email }: Pick<IdentityWithEmail, 'email'>,
): Failure {
  const { name } = requireProvider(deps)
  const sentence = REFUSALS[why](name, sanitizeText(email ?? ''))
  return { sentence, status: 401, person }
}

type Refused = Extract<LinkOutcome, { kind: 'refused' }>['why']

const REFUSALS: Readonly<Record<Refused, (name: string, email: string) => string>> = {
  not_invited: (name, email) =>
    `There is no open invitation for ${email}. If you have a password here, sign in with it and link ${name} under "Your sign-in". Otherwise ask an admin of your account for a new link.`,
  session_ended: name =>
    `Your session here has ended in the meantime. Sign in again and link ${name} again.`,
  email_unverified: name =>
    `${name} did not send a verified email address, so ev cannot tell who you are. Its administrator can let it send the claims "email" and "email_verified".`,
  email_differs: (name, email) =>
    `Your address at ${name} is ${email}, and this person has another one. Sign in at ${name} with the invited address, or ask an admin of your account.`,
  identity_taken: name =>
    `Another person of this account already signs in with your identity at ${name}. Ask an admin of your account.`,
}

type FailPage = {
  readonly intent: Intent
  readonly next: string
  readonly sentence: string
  readonly status: 401 | 503
}

/** Shows a failure where the sign-in was started. */
function failPage(
  c: Context<Env>,
  deps: DashboardDeps,
  { intent, next, sentence, status }: FailPage,
): Response | Promise<Response> {
  if (intent.kind === 'sign_in') return signInPage(c, deps, { next, refusal: sentence, status })
  const back = intent.kind === 'link' ? '/profile' : `/invitation/${intent.token}`
  const body = html`<p><a class="button" href="${back}">Back</a></p>`
  return barePage(c, { title: 'Nothing was changed', body, problem: sentence, status })
}
