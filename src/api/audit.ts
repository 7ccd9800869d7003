import { z } from '@hono/zod-openapi'
import { getAuditPage } from '../audit/audit-store.ts'
import { presentEntry } from '../audit/present-entry.ts'
import { pageQuery, parseCursor, toPage } from './cursor.ts'
import { route } from './route.ts'
import { newRouter } from './router.ts'
import { json } from './schemas/answers.ts'
import { AUDIT_EXAMPLE, AuditPage, auditFilters } from './schemas/audit.ts'
import type { Service } from './service.ts'

/** Route that lists the audit log of the account. */
export function auditRoutes(service: Service) {
  const list = route(service, 'GET /v1/audit', {
    id: 'listAuditEntries',
    summary: 'List the audit log, newest first',
    description:
      'Changes of keys, webhooks and the account, dashboard sign-ins and refused ones, and downloads of results, each with its actor and client address. Entries are kept for a year.',
    scope: 'audit:read',
    query: z.object({ ...pageQuery, ...auditFilters }),
    answer: json(AuditPage, 'One page of the audit log', AUDIT_EXAMPLE),
  })
  return newRouter().openapi(list, async c => {
    const { limit, cursor, ...filters } = c.req.valid('query')
    const found = await getAuditPage(service.database, {
      ...{ ...filters, accountId: c.get('caller').account.id },
      ...{ before: parseCursor(cursor), max: limit + 1 },
    })
    const { rows, next } = toPage(found, limit)
    const data = { items: rows.map(presentEntry), next_cursor: next, has_more: next !== null }
    return c.json({ success: true as const, data }, 200)
  })
}
