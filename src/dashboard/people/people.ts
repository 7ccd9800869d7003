import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import { exceedingRights } from '../../accounts/key-rights.ts'
import { ROLES, type Role, roleRights } from '../../accounts/people/role.ts'
import type { Person, PersonLink, PersonList } from '../../client/types.ts'
import { ApiProblem } from '../api.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import {
  confirmed,
  field,
  form,
  nonceField,
  problemWith,
  readNonce,
  type SubmittedForm,
  select,
  sentForm,
} from '../page/form.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { page } from '../page/layout.ts'
import { Refusal } from '../page/notice.ts'
import { card } from '../page/parts.ts'
import { table } from '../page/table.ts'
import { ago, capitalize, copyable, statusBadge, time } from '../page/text.ts'
import { redirectWithNote } from '../session/cookie.ts'
import { findReauthenticationFault, reauthenticationField } from '../session/reauthenticate.ts'
import { may } from '../session/signed-in.ts'

const PEOPLE = { href: '/people', label: 'People' }

/** Routes that list, invite and manage the people of the account. */
export function peopleRoutes(deps: DashboardDeps): Hono<Env> {
  const router = new Hono<Env>()
    .get('/people', c => peoplePage(c, deps))
    .post('/people', async c => {
      const sent = await sentForm(c)
      const [body, once] = [newPersonOf(sent), readNonce(sent)]
      const invited = await c
        .get('api')
        .ask<PersonLink>('/v1/people', { body, once })
        .catch(problemWith)
      if (invited instanceof ApiProblem)
        return peoplePage(c, deps, { sent, problem: invited, once })
      return linkPage(c, invited.data, 'Person invited')
    })
  router.route('/', personRoutes(deps))
  return router
}

const newPersonOf = ({ text }: SubmittedForm) => ({
  name: text('name'),
  email: text('email'),
  role: text('role'),
})

/** Routes of one person. */
function personRoutes(deps: DashboardDeps): Hono<Env> {
  return new Hono<Env>()
    .get('/people/:id', async c => personPage(c, deps, await personOf(c)))
    .post('/people/:id', async c => {
      const person = await personOf(c)
      const { text } = await sentForm(c)
      const body = {
        name: text('name'),
        ...(text('role') !== '' && { role: text('role') }),
      }
      const changed = await c
        .get('api')
        .ask(pathOf(person), { method: 'PATCH', body })
        .catch(problemWith)
      if (changed instanceof ApiProblem) return personPage(c, deps, person, changed)
      return redirectWithNote(c, '/people', 'Person updated. A new role applies at once.')
    })
    .post('/people/:id/link', async c => {
      const person = await personOf(c)
      const sent = await sentForm(c)
      const fault = await findReauthenticationFault(c, deps, sent)
      if (fault !== null) return personPage(c, deps, person, fault)
      const once = readNonce(sent)
      const made = await c
        .get('api')
        .ask<PersonLink>(`${pathOf(person)}/link`, { method: 'POST', once })
        .catch(problemWith)
      if (made instanceof ApiProblem) return personPage(c, deps, person, made)
      return linkPage(c, made.data, 'New link')
    })
    .post('/people/:id/two-factor', async c => {
      const person = await personOf(c)
      const fault = await findReauthenticationFault(c, deps, await sentForm(c))
      if (fault !== null) return personPage(c, deps, person, fault)
      const reset = await c
        .get('api')
        .ask(`${pathOf(person)}/two-factor`, { method: 'DELETE' })
        .catch(problemWith)
      if (reset instanceof ApiProblem) return personPage(c, deps, person, reset)
      return redirectWithNote(c, '/people', `Second factor of ${person.name} removed.`)
    })
    .post('/people/:id/remove', async c => {
      const person = await personOf(c)
      const removed = await c
        .get('api')
        .ask(pathOf(person), { method: 'DELETE' })
        .catch(problemWith)
      if (removed instanceof ApiProblem) return personPage(c, deps, person, removed)
      return redirectWithNote(c, '/people', `${person.name} removed. The sessions have ended.`)
    })
}

const pathOf = ({ id }: Person) => `/v1/people/${encodeURIComponent(id)}`

/** An account has at most a few hundred people. */
const listPeople = async (c: Context<Env>): Promise<readonly Person[]> =>
  (await c.get('api').ask<PersonList>('/v1/people')).data.people

/** Returns the person of the path; throws a 404 Refusal if there is none. */
async function personOf(c: Context<Env>): Promise<Person> {
  const person = (await listPeople(c)).find(({ id }) => id === c.req.param('id'))
  if (person !== undefined) return person
  throw new Refusal(404, 'Person not found. The person may have been removed.')
}

type Draft = {
  readonly sent: SubmittedForm
  readonly problem: ApiProblem
  readonly once: string | undefined
}

const LABELS = { name: 'Name', email: 'Email address', role: 'Role' }

async function peoplePage(
  c: Context<Env>,
  { random }: DashboardDeps,
  draft?: Draft,
): Promise<Response> {
  const people = await listPeople(c)
  const mayInvite = may(c.get('user'), 'people:write')
  return page(c, {
    title: 'People',
    intro: 'People sign in with a password. Programs use API keys.',
    body: html`
      ${people.length === 0 ? html`<p role="status">No people yet.</p>` : personTable(c, people, mayInvite)}
      ${
        mayInvite
          ? card({
              title: 'Invite a person',
              body: inviteForm(c, nonceField(random, draft), draft),
            })
          : html`<p><small>To invite people, you need the scope "people:write", which admins have.</small></p>`
      }`,
    problem: draft?.problem,
    labels: LABELS,
  })
}

const personTable = (c: Context<Env>, rows: readonly Person[], isManaged: boolean): Html =>
  table({
    caption: 'People of this account',
    rows,
    columns: [
      {
        label: 'Name',
        kind: 'name',
        cell: ({ id, name }) =>
          html`${isManaged ? html`<a href="/people/${id}">${name}</a>` : name} ${id === c.get('user').keyId ? html`<small>you</small>` : NOTHING}`,
      },
      { label: 'Email address', kind: 'long', cell: ({ email }) => email },
      { label: 'Role', cell: ({ role }) => capitalize(role) },
      { label: 'Sign-in', cell: signInText },
      { label: 'Signed in', cell: signedInCell },
    ],
  })

const signInText = (person: Person): string => {
  if (person.identity_provider) return 'Identity provider'
  return person.two_factor ? 'Password, second factor' : 'Password'
}

const signedInCell = (person: Person): Html =>
  person.joined
    ? ago(person.last_signed_in_at, 'Never')
    : html`${statusBadge('info', 'Invited')} <small class="line">until ${time(person.invitation_expires_at)}</small>`

/** The roles that the user may give. */
function roleChoices(c: Context<Env>, current: string) {
  const { scopes } = c.get('user')
  const limit = { ...roleRights('admin'), scopes }
  return ROLES.filter(role => exceedingRights(roleRights(role), limit).length === 0).map(value => ({
    value,
    label: `${capitalize(value)}: ${ROLE_TEXTS[value]}`,
    checked: value === current,
  }))
}

const ROLE_TEXTS: Readonly<Record<Role, string>> = {
  admin: 'everything',
  member: 'verify, lists, webhooks, feedback',
  viewer: 'read only',
}

const inviteForm = (c: Context<Env>, nonce: Html, draft: Draft | undefined): Html =>
  form(
    c,
    '/people',
    html`
      ${nonce}
      ${field({ label: LABELS.name, name: 'name', value: draft?.sent.text('name') ?? '', required: true })}
      ${field({ label: LABELS.email, name: 'email', type: 'email', value: draft?.sent.text('email') ?? '', required: true })}
      ${select({ label: LABELS.role, name: 'role', choices: roleChoices(c, draft?.sent.text('role') ?? 'member') })}
      <button class="primary">Create a link</button>`,
  )

const linkPage = (
  c: Context<Env>,
  { name, email, url, invitation_expires_at: expiresAt }: PersonLink['data'],
  title: string,
): Promise<Response> =>
  page(c, {
    title,
    back: PEOPLE,
    hasAlerts: false,
    body: html`
      <div class="card">
        <p>Send this link to ${name} (${email}). It is not shown again. It works once, until ${time(expiresAt)}.</p>
        <p>${copyable(url)}</p>
        <p><a class="button primary" href="/people">Done</a></p>
      </div>`,
  })

function personPage(
  c: Context<Env>,
  deps: DashboardDeps,
  person: Person,
  problem?: ApiProblem | string,
): Promise<Response> {
  const isOwn = person.id === c.get('user').keyId
  const choices = roleChoices(c, person.role)
  return page(c, {
    title: person.name,
    back: PEOPLE,
    intro: html`${person.email} · ${person.role} · ${person.joined ? html`last signed in ${ago(person.last_signed_in_at, 'never')}` : 'invited'}`,
    body: html`
      ${card({
        title: 'Settings',
        body: form(
          c,
          `/people/${person.id}`,
          html`
            ${field({ label: LABELS.name, name: 'name', value: person.name, required: true })}
            ${isOwn ? NOTHING : select({ label: LABELS.role, name: 'role', choices })}
            <button class="primary">Save changes</button>`,
        ),
      })}
      <div class="grid">
        ${card({
          title: 'New link',
          body: html`
            <p>For a forgotten password or an expired invitation. The current password works until the link is used.</p>
            ${form(c, `/people/${person.id}/link`, html`${nonceField(deps.random)}${reauthenticationField(c, deps, { id: 'link-password', next: `/people/${person.id}` })}<button>Create a link</button>`)}`,
        })}
        ${person.two_factor ? twoFactorCard(c, deps, person) : NOTHING} ${isOwn ? NOTHING : removalCard(c, person)}
      </div>`,
    problem,
    labels: LABELS,
  })
}

const twoFactorCard = (c: Context<Env>, deps: DashboardDeps, { id, name }: Person): Html =>
  card({
    title: 'Second factor',
    body: confirmed(c, {
      action: `/people/${id}/two-factor`,
      label: 'Remove second factor',
      question: `${name} will sign in with the password alone. Make sure that it is ${name} who asks.`,
      yes: 'Yes, remove it',
      fields: reauthenticationField(c, deps, { id: 'reset-password', next: `/people/${id}` }),
    }),
  })

const removalCard = (c: Context<Env>, { id, name }: Person): Html =>
  card({
    title: 'Remove',
    body: confirmed(c, {
      action: `/people/${id}/remove`,
      label: 'Remove person',
      question: `${name} is signed out at once and can no longer sign in. Lists and keys stay.`,
      yes: 'Yes, remove',
    }),
  })
