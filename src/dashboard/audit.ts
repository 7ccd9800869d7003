import { Hono } from 'hono'
import { html } from 'hono/html'
import { AUDIT_ACTIONS, type AuditAction } from '../audit.ts'
import type { AuditEntry, AuditPage } from '../client/types.ts'
import { ApiProblem, queryOf } from './api.ts'
import type { Env } from './deps.ts'
import {
  field,
  filterSelect,
  problemWith,
  type QueryFilter,
  readFilter,
  withLabel,
} from './page/form.ts'
import { type Html, NOTHING } from './page/html.ts'
import { page } from './page/layout.ts'
import { notice } from './page/notice.ts'
import { pageLinks } from './page/parts.ts'
import { table } from './page/table.ts'
import { ago } from './page/text.ts'

/** The audit log of the account. */
export const auditRoutes = (): Hono<Env> =>
  new Hono<Env>().get('/audit', async c => {
    const filter = readFilter(c, FILTERS)
    const query = { ...filter, limit: PAGE_ROWS }
    const found = await c.get('api').ask<AuditPage>('/v1/audit', { query }).catch(problemWith)
    // Without the right to read the log, the form is of no use.
    if (found instanceof ApiProblem && found.status !== 400) throw found
    const isFound = !(found instanceof ApiProblem)
    return page(c, {
      status: isFound ? 200 : 400,
      title: 'Audit log',
      intro:
        'Changes to keys, webhooks and the account, sign-ins, downloads of results, and requests without the right. Entries are kept for a year.',
      body: html`${filterForm(filter)} ${isFound ? entries(filter, found.data) : notice('bad', withLabel(found, LABELS))}`,
    })
  })

const PAGE_ROWS = 50

const FILTERS = ['action', 'since', 'until', 'cursor'] as const

type Filter = QueryFilter<(typeof FILTERS)[number]>

/** Form labels by API parameter. */
const LABELS = { since: 'From (UTC)', until: 'Before (UTC)' }

const filterForm = ({ action, since = '', until = '' }: Filter): Html => html`
  <form method="get" action="/audit" class="row">
    ${filterSelect(
      'Action',
      'action',
      AUDIT_ACTIONS.map(name => [name, ACTION_NAMES[name]]),
      action,
    )}
    ${field({ label: LABELS.since, name: 'since', type: 'date', value: since })}
    ${field({ label: LABELS.until, name: 'until', type: 'date', value: until })}
    <button>Show</button>
  </form>`

function entries(filter: Filter, { items, next_cursor: next }: AuditPage['data']): Html {
  const urlAt = (cursor: string | null) => `/audit${queryOf({ ...filter, cursor })}`
  return html`
    ${items.length === 0 ? html`<p role="status">No matching entries.</p>` : entryTable(items)}
    ${pageLinks({ cursor: filter.cursor, next, urlAt })}`
}

const entryTable = (rows: readonly AuditEntry[]): Html =>
  table({
    caption: 'Audit log, newest first',
    rows,
    columns: [
      { label: 'Action', kind: 'name', cell: ({ action }) => ACTION_NAMES[action] },
      { label: 'Target', kind: 'long', cell: targetOf },
      { label: 'By', kind: 'long', cell: actorOf },
      { label: 'IP address', cell: ({ ip }) => ip ?? '–' },
      { label: 'Time', cell: ({ created_at: at }) => ago(at) },
    ],
  })

const targetOf = ({ target_id: id, target_name: name, changed }: AuditEntry): Html => html`
  ${name ?? id ?? '–'} ${name === null || id === null ? NOTHING : html`<small class="line">${id}</small>`}
  ${changed === null ? NOTHING : html`<small class="line">Changed: ${changed.join(', ')}</small>`}`

const actorOf = ({ actor, key_id, person_id, person_name, session_id }: AuditEntry): Html => {
  const id = person_id ?? key_id
  return html`${person_name ?? ACTOR_NAMES[actor]} ${id === null ? NOTHING : html`<small class="line" title="${session_id ?? ''}">${id}</small>`}`
}

const ACTOR_NAMES: Readonly<Record<AuditEntry['actor'], string>> = {
  key: 'API key',
  link: 'Link',
  session: 'Dashboard',
  command_line: 'Command line',
  service: 'Service',
}

const ACTION_NAMES: Readonly<Record<AuditAction, string>> = {
  'account.created': 'Account created',
  'account.updated': 'Account changed',
  'key.created': 'Key created',
  'key.updated': 'Key changed',
  'key.rotated': 'Key rotated',
  'key.revoked': 'Key revoked',
  'person.invited': 'Person invited',
  'person.joined': 'Invitation accepted',
  'person.updated': 'Person changed',
  'person.removed': 'Person removed',
  'person.password_changed': 'Password changed',
  'person.totp_enabled': 'Second factor enabled',
  'person.totp_disabled': 'Second factor removed',
  'person.recovery_codes_created': 'Recovery codes created',
  'person.recovery_code_used': 'Recovery code used',
  'person.identity_linked': 'Identity linked',
  'person.identity_unlinked': 'Identity unlinked',
  'webhook.created': 'Webhook created',
  'webhook.updated': 'Webhook changed',
  'webhook.rotated': 'Webhook secret rotated',
  'webhook.deleted': 'Webhook deleted',
  'feedback_source.created': 'Feedback source created',
  'feedback_source.deleted': 'Feedback source deleted',
  'session.started': 'Signed in',
  'session.refused': 'Sign-in refused',
  'session.ended': 'Signed out',
  'results.downloaded': 'Results downloaded',
  'results.shared': 'Link to results created',
  'job.finished': 'List finished early',
  'request.refused': 'Request refused',
}
