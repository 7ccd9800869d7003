import type { Context } from 'hono'
import { html } from 'hono/html'
import { SCOPES, type SecretScope } from '../accounts/key-rights.ts'
import { PUBLISHABLE_KEY_RATE } from '../accounts/keys.ts'
import type { CreatedKey, Key } from '../client/types.ts'
import { formatNumber } from '../platform/format.ts'
import { FORM_SCRIPT } from './asset.ts'
import type { Env } from './deps.ts'
import { boxes, field, type SubmittedForm } from './page/form.ts'
import { type Html, NOTHING } from './page/html.ts'
import { page } from './page/layout.ts'
import { empty } from './page/notice.ts'
import { card } from './page/parts.ts'
import { table } from './page/table.ts'
import { ago, codeBlock, copyable, statusBadge } from './page/text.ts'
import { may } from './session/signed-in.ts'

/** The page above those of a key. */
export const KEYS = { href: '/keys', label: 'API keys' }

/** The raw values of the key form. */
export type Typed = {
  readonly name: string
  readonly scopes: readonly string[]
  /** Separated by commas or spaces. */
  readonly allowedIps: string
  readonly allowedDomains: string
  readonly rateLimit: string
  /** `2026-03-21T10:30`, UTC. */
  readonly expires: string
}

/**
 * Returns the defaults of a new secret key: verification scopes, and the restrictions of its
 * creator.
 */
export const newKey = (creator: Key): Typed => ({
  ...typedOf(creator),
  name: '',
  scopes: ['verify:single', 'verify:bulk', 'jobs:read'],
})

/** Returns the defaults of a new publishable key. */
export const newPublishableKey = (creator: Key): Typed => ({
  ...typedOf(creator),
  name: '',
  scopes: [],
  rateLimit: String(creator.rate_limit_per_minute ?? PUBLISHABLE_KEY_RATE),
})

/** Converts a key to form values. */
export const typedOf = (key: Key): Typed => ({
  name: key.name,
  scopes: key.scopes,
  allowedIps: key.allowed_ips.join(', '),
  allowedDomains: key.allowed_domains.join(', '),
  rateLimit: key.rate_limit_per_minute === null ? '' : String(key.rate_limit_per_minute),
  expires: key.expires_at?.slice(0, 'YYYY-MM-DDTHH:MM'.length) ?? '',
})

export const readTyped = ({ text, all }: SubmittedForm): Typed => ({
  name: text('name'),
  scopes: all('scopes'),
  allowedIps: text('allowed_ips'),
  allowedDomains: text('allowed_domains'),
  rateLimit: text('rate_limit_per_minute'),
  expires: text('expires_at'),
})

/**
 * Converts form values to a request body. Malformed values are sent as typed: the API rejects them.
 */
export const bodyOf = (typed: Typed) => ({
  scopes: typed.scopes,
  allowed_ips: entriesOf(typed.allowedIps),
  ...publishableBodyOf(typed),
})

/** Converts form values of a publishable key, which has fewer fields. */
export const publishableBodyOf = (typed: Typed) => ({
  name: typed.name,
  allowed_domains: entriesOf(typed.allowedDomains),
  rate_limit_per_minute: numberOf(typed.rateLimit),
  expires_at: timeOf(typed.expires),
})

const entriesOf = (text: string) => text.split(/[\s,;]+/).filter(entry => entry !== '')

function numberOf(text: string): number | string | null {
  if (text === '') return null
  return /^\d{1,9}$/.test(text) ? Number(text) : text
}

function timeOf(text: string): string | null {
  if (text === '') return null
  // Browsers omit seconds that are zero.
  const [, minute, seconds = ':00'] = /^(\d{4}-\d\d-\d\dT\d\d:\d\d)(:\d\d)?$/.exec(text) ?? []
  return minute === undefined ? text : `${minute}${seconds}Z`
}

/** Form labels by API field. */
export const LABELS = {
  name: 'Name',
  scopes: 'Scopes',
  allowed_ips: 'Allowed IP addresses',
  allowed_domains: 'Allowed websites',
  rate_limit_per_minute: 'Requests per minute',
  expires_at: 'Expires (UTC)',
} as const

/** Renders the fields of a secret key. */
export const fields = (c: Context<Env>, typed: Typed): Html => html`
  ${nameField(typed)}
  ${boxes(LABELS.scopes, 'scopes', choices(c, typed.scopes))}
  ${field({
    label: LABELS.allowed_ips,
    name: 'allowed_ips',
    value: typed.allowedIps,
    placeholder: '203.0.113.0/24, 2001:db8::1',
    hint: 'IP addresses and CIDR ranges, separated by commas. Empty: no restriction.',
  })}
  ${field({
    label: LABELS.allowed_domains,
    name: 'allowed_domains',
    value: typed.allowedDomains,
    placeholder: 'app.example.com',
    hint: 'Domains whose pages may use the key in a browser, subdomains included. Empty: any. Programs outside a browser can forge the origin.',
  })}
  ${limitFields(typed)}`

export const publishableFields = (typed: Typed): Html => html`
  ${nameField(typed)}
  ${field({
    label: LABELS.allowed_domains,
    name: 'allowed_domains',
    value: typed.allowedDomains,
    placeholder: 'shop.example.com',
    required: true,
    hint: 'Domains of the websites with the form, subdomains included, separated by commas.',
  })}
  ${limitFields(typed)}`

const nameField = (typed: Typed) =>
  field({
    label: LABELS.name,
    name: 'name',
    value: typed.name,
    required: true,
    hint: 'Describes where the key is used, such as "Shop, sign-up form".',
  })

const limitFields = (typed: Typed) => html`
  ${field({
    label: LABELS.rate_limit_per_minute,
    name: 'rate_limit_per_minute',
    type: 'number',
    value: typed.rateLimit,
    hint: 'Applies in addition to the limit of the plan. Empty: no extra limit.',
  })}
  ${field({
    label: LABELS.expires_at,
    name: 'expires_at',
    type: 'datetime-local',
    value: typed.expires,
    hint: 'The key stops working at this time. Empty: never expires.',
  })}`

/** Offers the scopes of the user, which it may grant, and those that the key already has. */
const choices = (c: Context<Env>, current: readonly string[]) =>
  SCOPES.filter(scope => may(c.get('user'), scope) || current.includes(scope)).map(scope => ({
    value: scope,
    label: scope,
    hint: SCOPE_TEXTS[scope],
    checked: current.includes(scope),
  }))

/** Help text of each scope. */
const SCOPE_TEXTS: Readonly<Record<SecretScope, string>> = {
  'verify:single': 'Verify single addresses.',
  'verify:bulk': 'Submit lists and files.',
  'jobs:read': 'View lists and download their results.',
  'jobs:write': 'Cancel, resume and delete lists.',
  'webhooks:read': 'View webhooks and their deliveries.',
  'webhooks:write': 'Create, change and test webhooks, and resend events.',
  'feedback:read': 'View the feedback report and the feedback sources.',
  'feedback:write': 'Report outcomes; create and delete feedback sources.',
  'account:read': 'View the account, its credits, usage, limits and history.',
  'account:write': 'Change the account, such as its email address.',
  'audit:read': 'View the audit log.',
  'people:write': 'Invite, change and remove people with at most its own scopes.',
  'keys:write': 'Create, change and revoke keys with at most its own scopes.',
  'accounts:write': 'Create and change accounts; only for keys of an admin account.',
  dashboard: 'Sign in to the dashboard, limited to the other scopes of the key.',
  '*': 'All scopes, including future ones.',
}

/** Renders the keys of an account; `now` is epoch ms. */
export const keyTable = (c: Context<Env>, keys: readonly Key[], now: number): Html => html`
  ${table({
    caption: 'API keys of this account',
    rows: keys,
    columns: [
      { label: 'Name', kind: 'name', cell: key => nameOf(c, key, now) },
      {
        label: 'Key',
        cell: ({ prefix, hint }) => html`<code class="nowrap">${prefix}…${hint}</code>`,
      },
      { label: 'Scopes', cell: ({ scopes }) => (scopes.includes('*') ? 'All' : scopes.join(', ')) },
      { label: 'Allowed from', cell: allowedFrom },
      { label: 'Rate limit', cell: limitOf },
      { label: 'Created', cell: ({ created_at: at }) => ago(at) },
      { label: 'Last used', cell: ({ last_used_at: at }) => ago(at, 'Never') },
      { label: 'Expires', cell: ({ expires_at: at }) => ago(at, 'Never') },
    ],
  })}
  ${keys.length > 1 ? NOTHING : SECOND_KEY_HINT}`

const nameOf = (c: Context<Env>, key: Key, now: number) => html`
  <a href="/keys/${key.id}">${key.name}</a>
  ${key.id === c.get('user').keyId ? html`<small>this session</small>` : NOTHING}
  ${key.publishable ? html`<small>publishable</small>` : NOTHING}
  ${key.test ? html`<small>test</small>` : NOTHING}
  ${isDone(key, now) ? statusBadge('bad', 'Expired') : NOTHING}`

const limitOf = ({ rate_limit_per_minute: limit }: Key) =>
  html`<span class="nowrap">${limit === null ? 'Plan limit' : `${formatNumber(limit)} per minute`}</span>`

export const isDone = ({ expires_at: at }: Key, now: number) => at !== null && Date.parse(at) <= now

/** The page of the key shows all entries. */
const ENTRIES_SHOWN_MAX = 3

function allowedFrom({ allowed_ips: ips, allowed_domains: sites }: Key): string {
  const all = [...ips, ...sites]
  if (all.length === 0) return 'Anywhere'
  const left = all.length - ENTRIES_SHOWN_MAX
  const shown = all.slice(0, ENTRIES_SHOWN_MAX).join(', ')
  return left > 0 ? `${shown} and ${left} more` : shown
}

const SECOND_KEY_HINT = empty({
  icon: 'key-round',
  title: 'Use one key per application',
  text: 'Give each application, script and colleague a separate key with only the scopes it needs. You can then see which key makes requests, and revoke one without affecting the others.',
  action: html`<a class="button" href="/keys/new">New key</a>`,
})

/**
 * Shows the secret of a key once, in the response to its form; never in a URL, cookie or log line.
 */
export function secretPage(
  c: Context<Env>,
  baseUrl: string,
  { key, title, note }: { key: CreatedKey['data']; title: string; note: Html | string },
): Promise<Response> {
  const use = key.publishable
    ? html`<p>Add the script to the page of the form, and <code>data-ev</code> to its field:</p>${codeBlock(formOf(baseUrl, key.key))}`
    : html`<p>Store it in the variable <code>EV_KEY</code> and send it with each request:</p>${codeBlock(exampleOf(baseUrl))}`
  const body = html`
    <section class="card">
      <p>Copy ${key.publishable ? 'the key' : 'the secret of the key'} "${key.name}" now. It is not shown again: ev stores only its hash.</p>
      <p>${copyable(key.key)}</p>
      <p>${note}</p>
    </section>
    ${card({ title: 'Use the key', body: use })}
    <p><a class="button primary" href="/keys">I have saved it</a></p>`
  return page(c, { title, body, hasAlerts: false })
}

const formOf = (baseUrl: string, key: string) =>
  `<script src="${baseUrl}${FORM_SCRIPT}" data-key="${key}" defer></script>
<input type="email" name="email" data-ev>`

/** Reads the key from a variable, which keeps it out of the shell history. */
const exampleOf = (baseUrl: string) => `curl ${baseUrl}/v1/verify/single \\
  -H "Authorization: Bearer $EV_KEY" \\
  -H 'Content-Type: application/json' \\
  -d '{"email": "bob@example.com"}'`
