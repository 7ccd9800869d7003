import { formatNumber, isoTime, pluralize } from '../platform/format.ts'
import { createErrors, type LabelField, type NoFacts } from '../platform/operation-error.ts'
import { formatPlan, sanitizeText } from '../platform/text.ts'
import type { Right } from './key-rights.ts'

const ERRORS = {
  name_invalid: (
    { name, lengthMax }: { readonly name: string; readonly lengthMax: number },
    label: LabelField,
  ) =>
    `${label('name')} is ${sanitizeText(JSON.stringify(name), 60)}; it must be 1 to ${lengthMax} characters on one line.`,
  email_invalid: ({ email, fault }: EmailFacts, label: LabelField) =>
    `${label('email')} is "${sanitizeText(email, 100)}". ${fault ?? 'Use an address with a domain name and an unquoted ASCII local part, such as ops@example.com.'}`,

  account_not_found: ({ id }: { readonly id: string }) =>
    `Account ${sanitizeText(id)} does not exist.`,
  account_exists: ({ id, name }: { readonly id: string; readonly name: string }) =>
    `There is already an account "${sanitizeText(name)}": ${id}.`,
  account_name_taken: ({ name }: { readonly name: string }) =>
    `Another account has the name "${sanitizeText(name)}". Choose another name.`,
  plan_unknown: (
    { plan, plans }: { readonly plan: string; readonly plans: readonly string[] },
    label: LabelField,
  ) => `${label('plan')} is "${sanitizeText(plan, 60)}"; it must be one of ${plans.join(', ')}.`,
  /** A key changes an account in a way that gives more than the key has. */
  account_rights_exceeded: ({ field }: { readonly field: 'admin' | 'plan' }, label: LabelField) =>
    field === 'admin'
      ? `This API key cannot set ${label('admin')} of an account, since keys of an admin account may have more rights than this key.`
      : 'This API key cannot set a plan that allows more than the plan of its own account.',

  key_not_found: ({ id }: { readonly id: string }) => `Key ${sanitizeText(id)} does not exist.`,
  key_limit_reached: ({ count, max, plan }: LimitFacts) =>
    `The account has ${pluralize(count, 'key')}, and the ${formatPlan(plan)} allows ${formatNumber(max)}.`,
  last_key: ({ id, accountName }: { readonly id: string; readonly accountName: string }) =>
    `${id} is the last active key of account ${sanitizeText(accountName)}, which cannot be used without a key.`,
  rights_exceeded: ({ rights, scopes }: RightsFacts) =>
    `This API key cannot manage a key that has more rights than itself: ${rights
      .map(right => (right === 'scopes' ? `scopes (${scopes.join(', ')})` : RIGHT_FIELDS[right]))
      .join(', ')}.`,
  /** A publishable key has no allowed domains. */
  domains_required: (_: NoFacts, label: LabelField) =>
    `${label('allowed_domains')} is empty; a publishable key needs at least one domain, such as shop.example.com.`,
  scopes_fixed: (_: NoFacts, label: LabelField) =>
    `${label('scopes')} cannot be changed for a publishable key. Omit it, or create another key.`,
  /** `expiresAt` in epoch ms. */
  expiry_past: ({ expiresAt }: { readonly expiresAt: number }, label: LabelField) =>
    `${label('expires_at')} is "${isoTime(expiresAt)}"; it must be a time in the future.`,

  person_not_found: ({ id }: { readonly id: string }) =>
    `Person ${sanitizeText(id)} does not exist.`,
  person_exists: ({ email }: { readonly email: string }, label: LabelField) =>
    `${label('email')} is ${email}, which a person of the account has.`,
  person_limit_reached: ({ count }: { readonly count: number }) =>
    `The account has ${formatNumber(count)} people, which is the maximum. Remove one first.`,
  /** The caller manages or gives a role with more rights than its own. */
  person_rights_exceeded: ({ role }: { readonly role: string }) =>
    `The role "${role}" has more rights than the caller, who cannot give it or manage people who have it.`,
  own_person: (_: NoFacts) =>
    'You cannot change your own role or remove yourself. Another admin of the account can.',

  /** The account has no admin who can sign in, and its keys would lose the dashboard. */
  two_factor_without_admin: (_: NoFacts) =>
    'No admin of the account has accepted an invitation yet. Invite one first: API keys cannot sign in to the dashboard of an account that requires a second factor.',

  credits_used_up: ({ limit }: { readonly limit: number } & Reset) =>
    `All ${formatNumber(limit)} daily verifications are used up. They reset at midnight UTC.`,
  credits_exceeded: ({ plan, creditsPerDay, needed, left, resetAt }: CreditsFacts) =>
    `Of the ${formatNumber(creditsPerDay)} daily verifications of the ${formatPlan(plan)}, ${formatNumber(left)} are left, and this list needs ${needed === null ? 'more' : formatNumber(needed)}. They reset at ${isoTime(resetAt)}.`,
}

type EmailFacts = {
  readonly email: string
  /** The syntax error; null if the syntax is valid, but many mail servers reject it. */
  readonly fault: string | null
}

type LimitFacts = { readonly count: number; readonly max: number; readonly plan: string }

type RightsFacts = {
  /** Rights that the calling key lacks. */
  readonly rights: readonly Right[]
  /** The missing scopes among them. */
  readonly scopes: readonly string[]
}

/** When credits are reset, and the time of the request: both epoch ms. */
type Reset = { readonly resetAt: number; readonly now: number }

type CreditsFacts = Reset & {
  readonly plan: string
  readonly creditsPerDay: number
  /** Null if unknown; it is more than `left`. */
  readonly needed: number | null
  /** Less than `needed`. */
  readonly left: number
}

const RIGHT_FIELDS = {
  allowedIps: 'allowed_ips',
  allowedDomains: 'allowed_domains',
  rateLimitPerMinute: 'rate_limit_per_minute',
  expiresAt: 'expires_at',
  isTest: 'test',
} as const

type Errors = typeof ERRORS

declare module '../platform/operation-error.ts' {
  interface OperationErrors extends Errors {}
}

/** Creates the errors of accounts, their keys, people and credits. */
export const accountError = createErrors(ERRORS)
