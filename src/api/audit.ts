import { z } from '@hono/zod-openapi'
import { AUDIT_ACTIONS, AUDIT_ACTORS, getAuditPage, presentEntry } from '../audit.ts'
import type { ApiDeps } from './api-deps.ts'
import { pageQuery, parseCursor, timeFilter, toPage, toPageBody } from './query.ts'
import { newRouter, route } from './route.ts'
import { json, pageBody } from './schemas/answers.ts'
import { time } from './schemas/fields.ts'

type AuditDeps = Pick<ApiDeps, 'database' | 'guard'>

// Schemas of the audit log.

const action = z.enum(AUDIT_ACTIONS)

const AuditEntry = z
  .object({
    id: z.string().openapi({ example: 'aud_01' }),
    action: action.openapi({ example: 'key.updated' }),
    actor: z.enum(AUDIT_ACTORS).openapi({
      example: 'session',
      description:
        '`key`: a request with an API key. `link`: a signed URL that was created with the key. `session`: a dashboard session. `command_line`: a command on a machine of the service. `service`: the service itself.',
    }),
    key_id: z.string().nullable().openapi({
      description: 'ID of the API key that sent the request or signed in.',
      example: null,
    }),
    person_id: z.string().nullable().openapi({
      description: 'ID of the person whose dashboard session it was. Null for a key.',
      example: 'per_01',
    }),
    person_name: z.string().nullable().openapi({
      description: 'Name of that person at the time.',
      example: 'Ann Lee',
    }),
    session_id: z.string().nullable().openapi({ example: 'ses_01' }),
    ip: z.string().nullable().openapi({
      description: 'IP address that sent the request.',
      example: '203.0.113.9',
    }),
    target_id: z.string().nullable().openapi({
      example: 'key_02',
      description:
        'ID of the key, person, webhook, account, session or job. For `request.refused`, the ID of another account that was asked for.',
    }),
    target_name: z.string().nullable().openapi({
      example: 'CI',
      description:
        'Name of the target at the time. For a webhook, the host of its URL; for a session, the name of its key or person; for `request.refused`, the path and the error code.',
    }),
    changed: z
      .array(z.string())
      .nullable()
      .openapi({
        example: ['scopes'],
        description: 'Names of the changed fields. Null if the action is not an update.',
      }),
    created_at: time,
  })
  .openapi('AuditEntry')

const AuditPage = pageBody(AuditEntry).openapi('AuditPage')

const auditFilters = {
  action: action.optional().openapi({ description: 'Only entries with this action.' }),
  since: timeFilter('Start of the time range, inclusive.'),
  until: timeFilter('End of the time range, exclusive.'),
}

/** Route that lists the audit log of the account. */
export function auditRoutes(service: AuditDeps) {
  const list = route(service, 'GET /v1/audit', {
    id: 'listAuditEntries',
    summary: 'List the audit log, newest first',
    description:
      'Returns changes to keys, people, webhooks and the account, sign-ins to the dashboard, downloads of results, and requests that were refused for lack of rights (at most 20 in an hour for each process), each with the actor and the IP address. Entries are kept for a year.',
    scope: 'audit:read',
    query: z.object({ ...pageQuery, ...auditFilters }),
    answer: json(AuditPage, 'One page of the audit log'),
  })
  return newRouter().handle(list, async c => {
    const { limit, cursor, ...filters } = c.req.valid('query')
    const found = await getAuditPage(service.database, {
      ...filters,
      accountId: c.get('caller').account.id,
      before: parseCursor(cursor),
      max: limit + 1,
    })
    const { rows, next } = toPage(found, limit)
    return c.json(toPageBody(rows.map(presentEntry), next), 200)
  })
}
