import { DAY } from '../platform/clock.ts'

/** The actions of the audit log. */
export const AUDIT_ACTIONS = [
  ...(['account.created', 'account.updated'] as const),
  ...(['key.created', 'key.updated', 'key.rotated', 'key.revoked'] as const),
  ...(['webhook.created', 'webhook.updated', 'webhook.rotated', 'webhook.deleted'] as const),
  ...(['feedback_source.created', 'feedback_source.deleted'] as const),
  ...(['session.started', 'session.refused', 'session.ended'] as const),
  ...(['results.downloaded', 'results.shared'] as const),
] as const

export type AuditAction = (typeof AUDIT_ACTIONS)[number]

export const isAuditAction = (text: string): text is AuditAction =>
  (AUDIT_ACTIONS as readonly string[]).includes(text)

/** A request with an API key, a signed link, a dashboard session, a command, or the service itself. */
export const AUDIT_ACTORS = ['key', 'link', 'session', 'command_line', 'service'] as const

export type AuditActor = (typeof AUDIT_ACTORS)[number]

/** The actor of an action and the address of its client. */
export type Origin = {
  readonly actor: AuditActor
  readonly keyId: string | null
  readonly sessionId: string | null
  readonly ip: string | null
}

/** The origin of what a command of this machine does. */
export const COMMAND_LINE: Origin = local('command_line')

/** The origin of what the service does without a request. */
export const SERVICE: Origin = local('service')

function local(actor: AuditActor): Origin {
  return { actor, keyId: null, sessionId: null, ip: null }
}

/** A year: an incident may be noticed months later. */
export const AUDIT_RETENTION_MS = 365 * DAY
