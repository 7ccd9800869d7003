import type { Context } from 'hono'
import { html } from 'hono/html'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { HistoryPage, Verification } from '../../client/types.ts'
import { REASONS, VERDICT_BY_REASON } from '../../engine/verdict/reason.ts'
import { toClass } from '../../engine/verdict/verdict.ts'
import { DAY } from '../../platform/clock.ts'
import { queryOf } from '../api.ts'
import type { Env } from '../deps.ts'
import { field, problemWith, select } from '../page/form.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { meanings, notice, reasonCell, reasonWord } from '../page/notice.ts'
import { badge, time } from '../page/text.ts'

type Shown = { readonly body: Html; readonly status: ContentfulStatusCode }

/** What was verified, with what it can be searched by. */
export async function historySection(c: Context<Env>, period: string): Promise<Shown> {
  const filter = filterOf(c)
  const { body, status } = await historyPart(c, filter)
  return {
    status,
    body: html`
      <section>
        <h2>History</h2>
        <form method="get" action="/usage" class="filters" role="search" hx-get="/usage" hx-target="#${HISTORY_PART}"
          hx-swap="outerHTML settle:0ms" hx-trigger="submit, change" hx-push-url="true" hx-sync="this:queue last">
          <input type="hidden" name="period" value="${period}" />
          ${fields(filter)}
        </form>
        ${body}
      </section>`,
  }
}

/** What htmx asks for alone. */
export const HISTORY_PART = 'history'

const NAMES = ['search', 'class', 'reason', 'source', 'from', 'to', 'sandbox', 'cursor'] as const

type Filter = Readonly<Partial<Record<(typeof NAMES)[number], string>>>

export function filterOf({ req }: Context<Env>): Filter {
  const given = NAMES.map(name => [name, req.query(name)?.trim() ?? ''] as const)
  return Object.fromEntries(given.filter(([, value]) => value !== ''))
}

/** The rows alone. A search that the API refuses says why in their place. */
export async function historyPart(c: Context<Env>, filter: Filter): Promise<Shown> {
  const { from, to, sandbox, ...rest } = filter
  const query = { ...rest, since: from, until: to === undefined ? to : dayAfter(to) }
  const period = c.req.query('period')
  const wrap = (inner: Html) => html`<div id="${HISTORY_PART}">${inner}</div>`
  try {
    const options = { query, sandbox: sandbox === 'true' }
    const { data } = await c.get('api').ask<HistoryPage>('/v1/history', options)
    return { body: wrap(rows(data, { filter, period })), status: 200 }
  } catch (error) {
    const { message, status } = problemWith(error)
    return { body: wrap(notice('bad', message)), status: status as ContentfulStatusCode }
  }
}

/** People mean a day with its end. What is no day the API refuses. */
function dayAfter(day: string): string {
  const at = Date.parse(day)
  return Number.isNaN(at) ? day : new Date(at + DAY).toISOString().slice(0, DAY_LENGTH)
}

const DAY_LENGTH = 'YYYY-MM-DD'.length

const fields = (filter: Filter): Html => html`
  <div class="row">
    ${field({ label: 'Part of the address', name: 'search', type: 'search', value: filter.search ?? '' })}
    ${choose('Class', 'class', namesOf('deliverable', 'risky', 'undeliverable', 'unknown'), filter.class)}
    ${choose(
      'Reason',
      'reason',
      REASONS.map(reason => [reason, reasonWord(reason)]),
      filter.reason,
    )}
    ${choose('Asked by', 'source', namesOf('single', 'bulk', 'batch', 'file'), filter.source)}
    ${field({ label: 'From the day (UTC)', name: 'from', type: 'date', value: filter.from ?? '' })}
    ${field({ label: 'To the day (UTC)', name: 'to', type: 'date', value: filter.to ?? '' })}
  </div>
  <p><label class="tick"><input type="checkbox" name="sandbox" value="true"
    ${filter.sandbox === 'true' ? html`checked` : NOTHING} /> Those of the sandbox instead</label>
    <button>Search</button></p>`

type Named = readonly [value: string, label: string]

const namesOf = (...values: string[]) => values.map((value): Named => [value, value])

const choose = (label: string, name: string, values: readonly Named[], chosen = '') =>
  select({
    ...{ label, name },
    choices: ([['', 'All'], ...values] as const).map(([value, text]) => ({
      ...{ value, label: text, checked: value === chosen },
    })),
  })

type Place = { readonly filter: Filter; readonly period: string | undefined }

function rows({ items, next_cursor: next }: HistoryPage['data'], { filter, period }: Place): Html {
  const at = (cursor: string | null) =>
    `/usage${queryOf({ period, ...filter, cursor })}#${HISTORY_PART}`
  return html`
    ${items.length === 0 ? nothing(filter, next !== null) : table(items)}
    <p class="actions">
      ${filter.cursor === undefined ? NOTHING : html`<a class="button" href="${at(null)}">The newest</a>`}
      ${next === null ? NOTHING : html`<a class="button" href="${at(next)}">${items.length === 0 ? 'Search further back' : 'Older ones'}</a>`}
    </p>`
}

function nothing(filter: Filter, isMore: boolean): Html {
  if (isMore)
    return html`<p role="status">Nothing was found so far; the history goes back further.</p>`
  const { cursor: _, ...sought } = filter
  return Object.keys(sought).length > 0
    ? html`<p role="status">Nothing is so.</p>`
    : html`<p>Nothing was verified yet. Each address that is stands here, with what came of it, for as long as whoever runs
        this service keeps it.</p>`
}

const table = (items: readonly Verification[]): Html => html`
  <div class="scroll"><table>
    <caption class="unseen">Verifications, the newest first</caption>
    <thead><tr>
      <th scope="col">Address</th><th scope="col">Class</th><th scope="col">Reason</th>
      <th scope="col">Asked by</th><th scope="col">When</th>
    </tr></thead>
    <tbody>${items.map(
      one => html`
        <tr>
          <th scope="row">${one.email}</th>
          <td>${badge(toClass({ ...VERDICT_BY_REASON[one.reason], valid: one.valid, risk: one.risk_level }))}</td>
          <td>${reasonCell(one.reason)}</td>
          <td>${askedBy(one)}${one.cached ? html` <small>known from before</small>` : NOTHING}</td>
          <td>${time(one.created_at)}</td>
        </tr>`,
    )}</tbody>
  </table></div>
  ${meanings(items.map(({ reason }) => reason))}`

const askedBy = ({ source, job_id: jobId }: Verification): Html | string =>
  jobId === null || source === 'single' ? source : html`<a href="/lists/${jobId}">${source}</a>`
