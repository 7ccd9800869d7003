import type { Context } from 'hono'
import { html } from 'hono/html'
import type { Job, ResultPage, ResultRow } from '../../client/types.ts'
import { formatNumber } from '../../platform/format.ts'
import { ApiProblem } from '../api.ts'
import type { Env } from '../deps.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { meanings, notice, reasonCell } from '../page/notice.ts'
import { table } from '../page/table.ts'
import { badge, NO_ADDRESS } from '../page/text.ts'
import { chips, FOUND, filterForm, pages, ROWS, rowsLink, sortLink } from './filter.ts'
import { filterError, isFiltered, pathTo, queryFor, type RowFilter } from './filters.ts'
import { jobPath } from './find-job.ts'
import { formatAddress, PANEL } from './row-panel.ts'

// The table of rows: the same for a list that runs and for one that has ended.

/** Renders the filter and a page of rows with its pagination. */
export const rows = async (c: Context<Env>, job: Job, rowFilter: RowFilter): Promise<Html> =>
  html`<div id="${ROWS}">${filterForm(job.job_id, rowFilter)} ${await found(c, job, rowFilter)}</div>`

/** Renders what changes while a text is typed in the filter. */
export const found = async (c: Context<Env>, job: Job, rowFilter: RowFilter): Promise<Html> =>
  html`<div id="${FOUND}">${chips(job, rowFilter)} ${await pageOrError(c, job.job_id, rowFilter)}</div>`

async function pageOrError(c: Context<Env>, jobId: string, rowFilter: RowFilter): Promise<Html> {
  const error = filterError(rowFilter)
  if (error !== null) return html`${notice('bad', error)} ${pages(jobId, rowFilter, NO_ROWS)}`
  try {
    const { items, next_cursor: next, offset = 0, total = 0 } = await findRows(c, jobId, rowFilter)
    const range = { offset, count: items.length, total, next }
    return html`
      ${items.length === 0 ? noRows(rowFilter) : resultTable(jobId, rowFilter, items)}
      ${pages(jobId, rowFilter, range)}`
  } catch (error) {
    if (!(error instanceof ApiProblem)) throw error
    return notice('bad', error.message)
  }
}

const NO_ROWS = { offset: 0, count: 0, total: 0, next: null }

/** Short enough that the browser paints the whole page at once. */
const PAGE_ROWS = 25

async function findRows(
  c: Context<Env>,
  jobId: string,
  rowFilter: RowFilter,
): Promise<ResultPage['data']> {
  const path = `${jobPath(jobId)}/results`
  const query = { ...queryFor(rowFilter), limit: PAGE_ROWS, count: true }
  return (await c.get('api').ask<ResultPage>(path, { query })).data
}

function noRows(rowFilter: RowFilter): Html {
  const { row, cursor } = rowFilter
  const what = isFiltered(rowFilter) ? 'matching rows' : 'rows'
  if (row === '' || cursor !== '') return html`<p>No ${what}.</p>`
  return html`<p>No ${what} at or after row ${row}.</p>`
}

const resultTable = (
  jobId: string,
  rowFilter: RowFilter,
  items: readonly ResultRow[],
): Html => html`
  ${table({
    caption: 'Rows',
    onPhone: 'lines',
    columns: [
      {
        label: 'Row',
        kind: 'number',
        sort: sortLink(jobId, rowFilter, 'row'),
        cell: one => formatNumber(one.row),
      },
      {
        label: 'Address',
        kind: 'name',
        sort: sortLink(jobId, rowFilter, 'email'),
        cell: one => addressCell(jobId, rowFilter, one),
      },
      {
        label: 'Class',
        sort: sortLink(jobId, rowFilter, 'class'),
        cell: one =>
          one.class === null ? html`<span class="badge">Pending</span>` : badge(one.class),
      },
      {
        label: 'Reason',
        sort: sortLink(jobId, rowFilter, 'reason'),
        cell: one => formatReason(jobId, one),
      },
      {
        label: 'Provider',
        kind: 'long',
        sort: sortLink(jobId, rowFilter, 'operator'),
        cell: ({ operator }) => operator ?? '–',
      },
      { label: 'Mail server reply', kind: 'long', cell: formatReply },
    ],
    rows: items,
    // `live.js` replaces pending rows.
    row: one => html`id="row-${one.row}"${one.class === null ? html` data-pending` : NOTHING}`,
  })}
  ${meanings(items.map(({ reason }) => reason))}`

/** Renders the address as a link to the details of its row, with the suggestion. */
function addressCell(jobId: string, rowFilter: RowFilter, one: ResultRow): Html {
  const path = pathTo(jobId, { ...rowFilter, open: String(one.row) })
  const text = one.email === '' ? NO_ADDRESS : breakableAddress(one.email)
  const suggestion = one.did_you_mean
  return html`<a id="open-${one.row}" href="${path}#${PANEL}" hx-get="${path}" hx-target="#${PANEL}"
    hx-swap="outerHTML settle:0s" hx-push-url="true">${text}</a>${suggestion === null ? NOTHING : html` <small class="line">Did you mean ${formatAddress(suggestion)}?</small>`}`
}

/** A long address breaks after its last @, if it has to break at all. */
function breakableAddress(email: string): Html {
  const text = formatAddress(email)
  const domainAt = text.lastIndexOf('@') + 1
  return html`${text.slice(0, domainAt)}<wbr>${text.slice(domainAt)}`
}

function formatReason(jobId: string, { reason, erased }: ResultRow): Html {
  if (erased) return html`Erased <small class="line">Only the class of the result is kept.</small>`
  if (reason === null) return html`–`
  return rowsLink(jobId, { reason }, reasonCell(reason))
}

/** Renders the reply in full. On a phone, CSS reduces a long one to its codes: the details have it. */
function formatReply({ smtp_code: code, smtp_text: text }: ResultRow): Html {
  if (code === null && !text) return html`<span class="no-reply">–</span>`
  const [enhanced = ''] = ENHANCED.exec(text ?? '') ?? []
  const rest = (text ?? '').slice(enhanced.length).trimStart()
  const codes = [code, enhanced].filter(part => part !== null && part !== '').join(' ')
  const isLong = rest.length > PHONE_REPLY_LENGTH
  const classes = ['reply', ...(isLong ? ['is-long'] : []), ...(codes === '' ? [] : ['has-code'])]
  return html`<span class="${classes.join(' ')}">${codes}<span> ${rest}</span></span>`
}

/** The enhanced status code at the start of a reply (RFC 3463 §2). */
const ENHANCED = /^[245]\.\d{1,3}\.\d{1,3}(?=\s|$)/

/** On a phone this fits in a line with the class, the reason and the codes. */
const PHONE_REPLY_LENGTH = 12
