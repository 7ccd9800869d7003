import { DAY } from '../platform/clock.ts'
import type { AuditTable } from './tables.ts'

/** The actions of the audit log. */
export const AUDIT_ACTIONS = [
  ...(['account.created', 'account.updated'] as const),
  ...(['key.created', 'key.updated', 'key.rotated', 'key.revoked'] as const),
  ...(['webhook.created', 'webhook.updated', 'webhook.rotated', 'webhook.deleted'] as const),
  ...(['session.started', 'session.refused', 'session.ended'] as const),
  'results.downloaded',
] as const

export type AuditAction = (typeof AUDIT_ACTIONS)[number]

export const isAuditAction = (text: string): text is AuditAction =>
  (AUDIT_ACTIONS as readonly string[]).includes(text)

export const AUDIT_ACTORS = ['key', 'session', 'command_line', 'service'] as const

/** Who does something, and from where. */
export type Origin = {
  readonly actor: AuditTable['actor']
  readonly keyId: string | null
  readonly sessionId: string | null
  readonly ip: string | null
}

/** The origin of what a command of this machine does. */
export const COMMAND_LINE: Origin = local('command_line')

/** The origin of what the service does without a request. */
export const SERVICE: Origin = local('service')

function local(actor: Origin['actor']): Origin {
  return { actor, keyId: null, sessionId: null, ip: null }
}

/** A year: an incident may be noticed months later. */
export const AUDIT_RETENTION_MS = 365 * DAY
