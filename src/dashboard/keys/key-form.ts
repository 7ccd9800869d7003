import type { Context } from 'hono'
import { html } from 'hono/html'
import { SCOPES, type SecretScope } from '../../accounts/key-rights.ts'
import { PUBLISHABLE_KEY_RATE } from '../../accounts/keys.ts'
import type { Key } from '../../client/types.ts'
import type { ApiProblem } from '../api.ts'
import type { Env } from '../deps.ts'
import { boxes, field, type SubmittedForm } from '../page/form.ts'
import type { Html } from '../page/html.ts'
import { may } from '../session/signed-in.ts'

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
  ...{ name: '', scopes: ['verify:single', 'verify:bulk', 'jobs:read'] },
})

/** Returns the defaults of a new publishable key. */
export const newPublishableKey = (creator: Key): Typed => ({
  ...typedOf(creator),
  ...{ name: '', scopes: [] },
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
const LABELS = {
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
    ...{ label: LABELS.allowed_ips, name: 'allowed_ips', value: typed.allowedIps },
    ...{ placeholder: '203.0.113.0/24, 2001:db8::1' },
    hint: 'IP addresses and CIDR ranges, separated by commas. Empty: no restriction.',
  })}
  ${field({
    ...{ label: LABELS.allowed_domains, name: 'allowed_domains', value: typed.allowedDomains },
    ...{ placeholder: 'app.example.com' },
    hint: 'Domains whose pages may use the key in a browser, subdomains included. Empty: any. Programs outside a browser can forge the origin.',
  })}
  ${limitFields(typed)}`

/** Renders the fields of a publishable key. */
export const publishableFields = (typed: Typed): Html => html`
  ${nameField(typed)}
  ${field({
    ...{ label: LABELS.allowed_domains, name: 'allowed_domains', value: typed.allowedDomains },
    ...{ placeholder: 'shop.example.com', required: true },
    hint: 'Domains of the websites with the form, subdomains included, separated by commas.',
  })}
  ${limitFields(typed)}`

const nameField = (typed: Typed) =>
  field({
    ...{ label: LABELS.name, name: 'name', value: typed.name, required: true },
    hint: 'Describes where the key is used, such as “Shop, sign-up form”.',
  })

const limitFields = (typed: Typed) => html`
  ${field({
    ...{ label: LABELS.rate_limit_per_minute, name: 'rate_limit_per_minute', type: 'number' },
    value: typed.rateLimit,
    hint: 'Applies in addition to the limit of the plan. Empty: no extra limit.',
  })}
  ${field({
    ...{ label: LABELS.expires_at, name: 'expires_at', type: 'datetime-local' },
    value: typed.expires,
    hint: 'The key stops working at this time. Empty: never expires.',
  })}`

/** Offers the scopes of the user, which it may grant, and those that the key already has. */
const choices = (c: Context<Env>, current: readonly string[]) =>
  SCOPES.filter(scope => may(c.get('user'), scope) || current.includes(scope)).map(scope => ({
    ...{ value: scope, label: scope, hint: SCOPE_TEXTS[scope] },
    checked: current.includes(scope),
  }))

/** Replaces the field name in an API error with the label of the form. */
export const sentenceOf = ({ message }: ApiProblem): string =>
  message.replace(/^"(\w+)(?:\[\d+\])?"/, (match, name) =>
    name in LABELS ? `“${LABELS[name as keyof typeof LABELS]}”` : match,
  )

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
  'account:read': 'View credits, usage, limits and the history.',
  'audit:read': 'View the audit log.',
  'keys:write': 'Create, change and revoke keys with at most its own scopes.',
  'accounts:write': 'Create and change accounts; only for keys of an admin account.',
  dashboard: 'Sign in to the dashboard, limited to the other scopes of the key.',
  '*': 'All scopes, including future ones.',
}
