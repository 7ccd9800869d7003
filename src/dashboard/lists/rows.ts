import type { Context } from 'hono'
import { html } from 'hono/html'
import type { ResultPage, ResultRow } from '../../client/types.ts'
import { formatNumber } from '../../platform/format.ts'
import { ApiProblem } from '../api.ts'
import type { Env } from '../deps.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { meanings, notice, reasonCell } from '../page/notice.ts'
import { badge } from '../page/text.ts'
import { pages } from './filter.ts'
import { filterError, isFiltered, queryFor, type RowFilter } from './filters.ts'

/** The same for a page that is there already: who does not look is told of it too. */
export async function newRows(c: Context<Env>, jobId: string, rowFilter: RowFilter): Promise<Html> {
  return html`${await rows(c, jobId, rowFilter)}<p id="${SAID}" hx-swap-oob="innerHTML">Other rows are shown.</p>`
}

/** Where that is told. */
const SAID = 'rows-said'
export const rowsText: Html = html`<p id="${SAID}" class="unseen" role="status"></p>`

/** A page of rows, with the way to the next one. */
export async function rows(c: Context<Env>, jobId: string, rowFilter: RowFilter): Promise<Html> {
  const fault = filterError(rowFilter)
  if (fault !== null) return refused(jobId, rowFilter, fault)
  try {
    const { items, next } = await look(c, jobId, rowFilter)
    return html`
      <div id="rows">
        ${items.length === 0 ? nothing(rowFilter, next) : table(items)}
        ${pages(jobId, rowFilter, next)}
      </div>`
  } catch (error) {
    if (!(error instanceof ApiProblem)) throw error
    return refused(jobId, rowFilter, error.message)
  }
}

const refused = (jobId: string, rowFilter: RowFilter, sentence: string): Html =>
  html`<div id="rows">${notice('bad', sentence)}${pages(jobId, rowFilter, null)}</div>`

/** More would be seen later: what is painted first is all of a page. */
const PAGE_ROWS = 25
/** Each looks at 100,000 rows in a tenth of a second, at most: a list of a million is looked through whole. */
const LOOKS_MAX = 10

type Found = { readonly items: readonly ResultRow[]; readonly next: string | null }

async function look(c: Context<Env>, jobId: string, rowFilter: RowFilter): Promise<Found> {
  const path = `/v1/jobs/${encodeURIComponent(jobId)}/results`
  const items: ResultRow[] = []
  let from: RowFilter = rowFilter
  for (let filters = 1; ; filters++) {
    const query = { ...queryFor(from), limit: PAGE_ROWS - items.length }
    const { data } = await c.get('api').ask<ResultPage>(path, { query })
    items.push(...data.items)
    const next = data.next_cursor
    if (next === null || items.length >= PAGE_ROWS || filters >= LOOKS_MAX) return { items, next }
    from = { ...rowFilter, cursor: next }
  }
}

function nothing(rowFilter: RowFilter, next: string | null): Html {
  if (next !== null) {
    return html`<p>No such row was found so far, and the list goes on: the next page looks on.</p>`
  }
  if (rowFilter.row !== '' || rowFilter.cursor !== '') {
    return html`<p>There are no ${isFiltered(rowFilter) ? 'such rows' : 'rows'} from there on.</p>`
  }
  return html`<p>No row of this list is like that.</p>`
}

const table = (items: readonly ResultRow[]): Html => html`
  <div class="scroll" tabindex="0" role="region" aria-label="Rows"><table class="results">
    <thead><tr>
      <th scope="col" class="number">Row</th><th scope="col">Address</th><th scope="col">Class</th>
      <th scope="col">Reason</th><th scope="col">What the mail server said</th>
    </tr></thead>
    <tbody>${items.map(row)}</tbody>
  </table></div>
  ${meanings(items.map(({ reason }) => reason))}`

const row = (one: ResultRow): Html => html`
  <tr>
    <td class="number">${formatNumber(one.row)}</td>
    <td class="long">${one.email || html`<small>(empty)</small>`}${one.did_you_mean === null ? NOTHING : html`<br /><small>Did you mean ${one.did_you_mean}?</small>`}</td>
    <td>${one.class === null ? html`<span class="badge">not yet</span>` : badge(one.class)}</td>
    <td>${reasonOf(one)}</td>
    <td>${replyOf(one)}</td>
  </tr>`

function reasonOf({ reason, erased }: ResultRow): Html {
  if (erased) return html`erased<br /><small>Of its result only the class is left.</small>`
  if (reason === null) return html`–`
  return reasonCell(reason)
}

function replyOf({ smtp_code, smtp_text, mx_host }: ResultRow): Html {
  const said = [smtp_code, smtp_text].filter(one => one !== null).join(' ')
  const host = mx_host === null ? NOTHING : html` <small>${mx_host}</small>`
  if (said.length <= LINE_CHARACTERS) return html`${said || '–'}${host}`
  return html`<details class="cut"><summary>${said}</summary>${host}</details>`
}

/** What is longer would make its row tall: it is cut, and opened by who wants it. */
const LINE_CHARACTERS = 48
