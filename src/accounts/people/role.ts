import type { KeyRights, SecretScope } from '../key-rights.ts'

/** The roles of people, most rights first. */
export const ROLES = ['admin', 'member', 'viewer'] as const

export type Role = (typeof ROLES)[number]

export const isRole = (text: string): text is Role => (ROLES as readonly string[]).includes(text)

const VIEWER_SCOPES = [
  'jobs:read',
  'webhooks:read',
  'feedback:read',
  'account:read',
  'dashboard',
] as const satisfies readonly SecretScope[]

/** Keys, people, the account and the audit log are left to admins. */
const ROLE_SCOPES: Readonly<Record<Role, readonly SecretScope[]>> = {
  admin: ['*'],
  member: [
    ...VIEWER_SCOPES,
    ...([
      'verify:single',
      'verify:bulk',
      'jobs:write',
      'webhooks:write',
      'feedback:write',
    ] as const),
  ],
  viewer: VIEWER_SCOPES,
}

/** Returns the rights of a role, in the form of those of a key. */
export const roleRights = (role: Role): KeyRights => ({
  scopes: ROLE_SCOPES[role],
  allowedIps: [],
  allowedDomains: [],
  rateLimitPerMinute: null,
  expiresAt: null,
})
