import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import type { AccountAnswer } from '../client/types.ts'
import type { ApiProblem } from './api.ts'
import type { Env } from './deps.ts'
import {
  field,
  form,
  problemWith,
  type SubmittedForm,
  select,
  sentForm,
  toChoices,
} from './page/form.ts'
import type { Html } from './page/html.ts'
import { page } from './page/layout.ts'
import { card, facts } from './page/parts.ts'
import { capitalize, time } from './page/text.ts'
import { redirectWithNote } from './session/cookie.ts'
import { may, readOnlyNote } from './session/signed-in.ts'

type Account = AccountAnswer['data']

/** The Account page: the settings of the account. */
export const accountRoutes = (): Hono<Env> =>
  new Hono<Env>()
    .get('/account', c => accountPage(c))
    .post('/account', async c => {
      const sent = await sentForm(c)
      try {
        await c.get('api').ask('/v1/account', { method: 'PATCH', body: bodyOf(sent) })
      } catch (error) {
        return accountPage(c, { sent, problem: problemWith(error) })
      }
      return redirectWithNote(c, '/account', 'Account saved.')
    })

function bodyOf({ text }: SubmittedForm) {
  const policy = text('action_policy')
  const secondFactor = text('two_factor')
  return {
    name: text('name'),
    email: text('email') || null,
    ...(policy !== '' && { action_policy: policy === DEFAULT_POLICY ? null : policy }),
    ...(secondFactor !== '' && { two_factor_required: secondFactor === REQUIRED }),
  }
}

/** The choice of an account without a policy. */
const DEFAULT_POLICY = 'default'

/** The choice of an account that requires a second factor. */
const REQUIRED = 'required'

/** The form after it was refused. */
type Draft = { readonly sent: SubmittedForm; readonly problem: ApiProblem }

async function accountPage(c: Context<Env>, draft?: Draft): Promise<Response> {
  const { data: account } = await c.get('api').ask<AccountAnswer>('/v1/account')
  return page(c, {
    title: 'Account',
    body: html`
      <div class="grid">
        ${card({ title: 'Settings', body: settings(c, account, draft) })}
        ${card({
          title: 'Details',
          body: html`
            ${facts([
              ['Plan', capitalize(account.plan)],
              ['Created', time(account.created_at)],
              ['Admin account', account.admin ? 'Yes' : 'No'],
            ])}
            <p><small>Account ID <code>${account.id}</code></small></p>`,
        })}
      </div>`,
    problem: draft?.problem,
    labels: LABELS,
  })
}

const LABELS = {
  name: 'Name',
  email: 'Email address',
  action_policy: 'Action policy',
  two_factor_required: 'Second factor',
}

const POLICIES: Readonly<Record<string, string>> = {
  [DEFAULT_POLICY]: 'As the service',
  balanced: 'Balanced: what a careful sender mails',
  strict: 'Strict: only confirmed mailboxes of people',
  lenient: 'Lenient: all but what is known to bounce or to do harm',
}

const POLICY_HINT = 'Decides about the action that results recommend, also of earlier lists.'

const SECOND_FACTORS: Readonly<Record<string, string>> = {
  optional: 'Optional',
  [REQUIRED]: 'Required of people with a password',
}

const SECOND_FACTOR_HINT =
  'If it is required, people without one can only set one up, and API keys cannot sign in to the dashboard.'

const EMAIL_HINT =
  'Receives alerts about webhooks and the emails about finished lists. Leave it empty to send alerts to the administrator of the service.'

const current = ({ two_factor_required: isRequired }: Account): string =>
  isRequired ? REQUIRED : 'optional'

function settings(c: Context<Env>, account: Account, draft: Draft | undefined): Html {
  if (!may(c.get('user'), 'account:write')) {
    return html`
      ${facts([
        [LABELS.name, account.name],
        [LABELS.email, account.email ?? 'None'],
        [LABELS.action_policy, POLICIES[account.action_policy ?? DEFAULT_POLICY] ?? ''],
        [LABELS.two_factor_required, SECOND_FACTORS[current(account)] ?? ''],
      ])}
      <p>${readOnlyNote(c, 'account:write')}</p>`
  }
  const value = (name: 'name' | 'email') => draft?.sent.text(name) ?? account[name] ?? ''
  const secondFactor = draft?.sent.text('two_factor') || current(account)
  const policy = draft?.sent.text('action_policy') || (account.action_policy ?? DEFAULT_POLICY)
  return form(
    c,
    '/account',
    html`
      ${field({ label: LABELS.name, name: 'name', value: value('name'), required: true })}
      ${field({ label: LABELS.email, name: 'email', type: 'email', value: value('email'), autocomplete: 'email', hint: EMAIL_HINT })}
      ${select({
        label: LABELS.action_policy,
        name: 'action_policy',
        choices: toChoices(Object.entries(POLICIES), policy),
        hint: POLICY_HINT,
      })}
      ${select({
        label: LABELS.two_factor_required,
        name: 'two_factor',
        choices: toChoices(Object.entries(SECOND_FACTORS), secondFactor),
        hint: SECOND_FACTOR_HINT,
      })}
      <button class="primary">Save</button>`,
  )
}
