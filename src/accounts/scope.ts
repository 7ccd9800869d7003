/** The permissions of a key, as `resource:verb`; `*` grants all. */
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
  'dashboard',
  '*',
] as const

export type Scope = (typeof SCOPES)[number]

export const isScope = (text: string): text is Scope => (SCOPES as readonly string[]).includes(text)

/** Whether a key with the scopes `held` has the permission `needed`. */
export const permits = (held: readonly Scope[], needed: Scope): boolean =>
  held.includes('*') || held.includes(needed)
