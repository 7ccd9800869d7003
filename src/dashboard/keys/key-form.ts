import type { Context } from 'hono'
import { html } from 'hono/html'
import { SCOPES, type Scope } from '../../accounts/scope.ts'
import type { Key } from '../../client/types.ts'
import type { ApiProblem } from '../api.ts'
import type { Env } from '../deps.ts'
import { boxes, field, type SubmittedForm } from '../page/form.ts'
import type { Html } from '../page/html.ts'
import { may } from '../session/signed-in.ts'

/** What stands in the form of a key, as it was typed. */
export type Typed = {
  readonly name: string
  readonly scopes: readonly string[]
  /** Several with commas or spaces between. */
  readonly allowedIps: string
  readonly allowedDomains: string
  readonly rateLimit: string
  /** `2026-03-21T10:30`, UTC. */
  readonly expires: string
}

/** A new key for a program that verifies addresses and lists, with the restrictions of the key that creates it. */
export const newKey = (creator: Key): Typed => ({
  ...typedOf(creator),
  ...{ name: '', scopes: ['verify:single', 'verify:bulk', 'jobs:read'] },
})

/** A key as it stands. */
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

/** As the API takes it: what is no number or no time goes there as it was typed, and its sentence comes back. */
export const bodyOf = (typed: Typed) => ({
  name: typed.name,
  scopes: typed.scopes,
  allowed_ips: entriesOf(typed.allowedIps),
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
  // Browsers leave out the seconds, where they are none.
  const [, minute, seconds = ':00'] = /^(\d{4}-\d\d-\d\dT\d\d:\d\d)(:\d\d)?$/.exec(text) ?? []
  return minute === undefined ? text : `${minute}${seconds}Z`
}

/** Its names in the API, and how they are labelled here. */
const LABELS = {
  name: 'Name',
  scopes: 'What it may do',
  allowed_ips: 'From which IP addresses',
  allowed_domains: 'From which web sites',
  rate_limit_per_minute: 'Requests a minute',
  expires_at: 'Expires (UTC)',
} as const

export const fields = (c: Context<Env>, typed: Typed): Html => html`
  ${field({
    ...{ label: LABELS.name, name: 'name', value: typed.name, required: true },
    hint: 'For people: what asks with it, such as “Shop, sign-up form”.',
  })}
  ${boxes(LABELS.scopes, 'scopes', choices(c, typed.scopes))}
  ${field({
    ...{ label: LABELS.allowed_ips, name: 'allowed_ips', value: typed.allowedIps },
    ...{ placeholder: '203.0.113.0/24, 2001:db8::1' },
    hint: 'Addresses and ranges, with commas between. Empty: from anywhere.',
  })}
  ${field({
    ...{ label: LABELS.allowed_domains, name: 'allowed_domains', value: typed.allowedDomains },
    ...{ placeholder: 'app.example.com' },
    hint: 'Sites whose pages may use it in a browser, with those below them. Empty: any. It stops no program that says to be such a site.',
  })}
  ${field({
    ...{ label: LABELS.rate_limit_per_minute, name: 'rate_limit_per_minute', type: 'number' },
    value: typed.rateLimit,
    hint: 'A limit of its own, beside that of the plan. Empty: none.',
  })}
  ${field({
    ...{ label: LABELS.expires_at, name: 'expires_at', type: 'datetime-local' },
    value: typed.expires,
    hint: 'From then on it opens nothing. Empty: it does not expire.',
  })}`

/** A key gives only what it has; what a key has already stays in sight. */
const choices = (c: Context<Env>, held: readonly string[]) =>
  SCOPES.filter(scope => may(c.get('user'), scope) || held.includes(scope)).map(scope => ({
    ...{ value: scope, label: scope, hint: SCOPE_TEXTS[scope] },
    checked: held.includes(scope),
  }))

/** What the API has against a key, by the labels of its form. */
export const sentenceOf = ({ message }: ApiProblem): string =>
  message.replace(/^"(\w+)(?:\[\d+\])?"/, (whole, name) =>
    name in LABELS ? `“${LABELS[name as keyof typeof LABELS]}”` : whole,
  )

/** What each scope lets a key do, for people. */
const SCOPE_TEXTS: Readonly<Record<Scope, string>> = {
  'verify:single': 'Verifies one address at a time.',
  'verify:bulk': 'Submits lists of addresses, and files.',
  'jobs:read': 'Sees how lists stand, and downloads their results.',
  'jobs:write': 'Cancels lists, goes on with them, and deletes them.',
  'webhooks:read': 'Sees webhooks and what was sent to them.',
  'webhooks:write': 'Makes, changes and tests webhooks, and sends events again.',
  'account:read': 'Sees credits, use, limits and the history.',
  'keys:write': 'Makes, changes and revokes keys that may do no more than itself.',
  dashboard: 'Signs in to these pages, which show and do what its other scopes allow.',
  '*': 'Everything, also what is added later.',
}
