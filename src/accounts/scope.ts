/** The permissions that a secret key can have, as `resource:verb`; `*` grants all. */
export const SCOPES = [
  'verify:single',
  'verify:bulk',
  'jobs:read',
  'jobs:write',
  'webhooks:read',
  'webhooks:write',
  'feedback:read',
  'feedback:write',
  'account:read',
  'audit:read',
  'keys:write',
  'accounts:write',
  'dashboard',
  '*',
] as const

/** The only permission of a publishable key. */
export const FORM_SCOPE = 'verify:form'

export type SecretScope = (typeof SCOPES)[number]

export type Scope = SecretScope | typeof FORM_SCOPE

export const isSecretScope = (text: string): text is SecretScope =>
  (SCOPES as readonly string[]).includes(text)

/** Scopes of operations that change more than the sandbox: a test key cannot have them. */
const LIVE_SCOPES: readonly Scope[] = ['feedback:write', 'accounts:write']

/** Whether a test key may be used for operations with this scope. */
export const isForTestKeys = (scope: Scope): boolean => !LIVE_SCOPES.includes(scope)

/** Whether a key with the scopes `held` has the permission `needed`. */
export const permits = (held: readonly Scope[], needed: Scope): boolean =>
  held.includes('*') ||
  held.includes(needed) ||
  // The answer for a form is a part of that of a single verification.
  (needed === FORM_SCOPE && held.includes('verify:single'))
