import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import { accountIn } from '../../accounts/account-store.ts'
import type { IdentityProvider } from '../../accounts/people/identity-provider.ts'
import { findPasswordFault, PASSWORD_LENGTH_MIN } from '../../accounts/people/password.ts'
import { acceptInvitation, findInvitedPerson } from '../../accounts/people/people.ts'
import { hasJoined, type Person } from '../../accounts/people/person-store.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { field, sentForm } from '../page/form.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { barePage } from '../page/layout.ts'
import { Refusal } from '../page/notice.ts'
import { checkSameSite, shortForms } from '../session/csrf.ts'
import { continueSignIn } from '../session/sign-in.ts'

/** The page of an invitation, where a person sets a password. */
export function invitationRoutes(deps: DashboardDeps): Hono<Env> {
  return new Hono<Env>()
    .get('/invitation/:token', async c => {
      const person = await findInvitedPerson(deps, c.req.param('token'))
      return person === null ? expiredPage(c) : invitationPage(c, deps, { person })
    })
    .post('/invitation/:token', shortForms(), async c => {
      checkSameSite(c)
      const token = c.req.param('token')
      const invited = await findInvitedPerson(deps, token)
      if (invited === null) return expiredPage(c)
      const { raw } = await sentForm(c)
      const [password, repeated] = [raw('password'), raw('repeated')]
      const fault = await findNewPasswordFault(password, repeated, invited.email)
      if (fault !== null) return invitationPage(c, deps, { person: invited, fault })
      if (deps.passwords.isOverloaded()) {
        throw new Refusal(503, 'Too many people sign in at the moment. Try again in a few seconds.')
      }
      const passwordHash = await deps.passwords.hash(password)
      const services = { ...deps, ip: c.get('ip') }
      const person = await acceptInvitation(services, { token, passwordHash })
      return person === null
        ? expiredPage(c)
        : continueSignIn(c, deps, { person, next: '/overview' })
    })
}

/** Returns why a new password is refused; null if it is accepted. */
export const findNewPasswordFault = async (password: string, repeated: string, email: string) =>
  password === repeated
    ? findPasswordFault(password, email)
    : 'The two passwords differ. Enter the same password twice.'

/** Renders the fields of a new password. */
export const newPasswordFields = (): Html => html`
  ${field({
    label: 'New password',
    name: 'password',
    type: 'password',
    required: true,
    autocomplete: 'new-password',
    hint: `At least ${PASSWORD_LENGTH_MIN} characters.`,
  })}
  ${field({ label: 'Repeat the password', name: 'repeated', type: 'password', required: true, autocomplete: 'new-password' })}`

type Shown = { readonly person: Person; readonly fault?: string }

async function invitationPage(
  c: Context<Env>,
  { database, identityProvider }: DashboardDeps,
  { person, fault }: Shown,
): Promise<Response> {
  const account = await accountIn(database.reader, person.account_id)
  const purpose = hasJoined(person)
    ? html`Set a new password for the account <b>${account?.name}</b>. It ends your sessions.`
    : html`You are invited to the account <b>${account?.name}</b> as ${person.role}. Set a password to join.`
  const body = html`
    <p>${purpose}</p>
    ${identityProvider === null ? NOTHING : providerLink(c, identityProvider)}
    <form method="post" action="${c.req.path}">
      <p class="field"><label for="email">Email address</label>
        <input id="email" name="email" type="email" value="${person.email}" autocomplete="username" readonly /></p>
      ${newPasswordFields()}
      <button class="primary">Set the password and sign in</button>
    </form>`
  return barePage(c, { title: `Welcome, ${person.name}`, body, problem: fault })
}

const providerLink = (c: Context<Env>, { name }: IdentityProvider): Html => html`
  <p><a class="button primary" href="${c.req.path}/oidc">Continue with ${name}</a></p>
  <p><small>Or set a password:</small></p>`

function expiredPage(c: Context<Env>) {
  const body = html`
    <p>The link was used, replaced by a newer one, or is older than seven days. An admin of the account can create a new
    link for you.</p>
    <p><a class="button" href="/sign-in">Sign in</a></p>`
  return barePage(c, { title: 'This link has expired', body, status: 404 })
}
