import { html } from 'hono/html'
import type { Job } from '../../client/types.ts'
import { ACTIONS } from '../../engine/verdict/action.ts'
import { REASONS } from '../../engine/verdict/reason.ts'
import type { SortField } from '../../jobs/results/sorted-results.ts'
import { formatNumber } from '../../platform/format.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { icon } from '../page/icon.ts'
import { reasonWord } from '../page/notice.ts'
import { ACTION_NAMES, CLASS_NAMES, CLASSES } from '../page/text.ts'
import {
  fromStart,
  isListOrder,
  NO_FILTER,
  parametersOf,
  pathTo,
  type RowFilter,
} from './filters.ts'

/** The form of the filter stays while the rows below it change, so that typing is not disturbed. */
export const ROWS = 'rows'
export const FOUND = 'found'

/** Attributes that replace only the rows; `show` is the scroll modifier of htmx. */
const intoRows = (path: string, show = ''): Html =>
  html`hx-get="${path}" hx-target="#${ROWS}" hx-swap="outerHTML settle:0s${show}" hx-push-url="true"`

/** Scrolls to the first row of the new page. */
const FROM_THE_TOP = ` show:#${ROWS}:top`

/** Renders a link that shows only the rows of this filter. */
export function rowsLink(jobId: string, only: Partial<RowFilter>, label: Html | string): Html {
  const path = pathTo(jobId, { ...NO_FILTER, ...only })
  return html`<a class="rows-link" href="${path}#rows" ${intoRows(path, FROM_THE_TOP)}>${label}</a>`
}

/** Longer than between two keys of a fast typist, shorter than anyone waits for. */
const TYPING_MS = 300

/**
 * Renders the form of the filter: a search as you type, the reason, the action, and on a phone the
 * order. Without JavaScript it has a button.
 */
export function filterForm(jobId: string, rowFilter: RowFilter): Html {
  const { search, reason, action } = rowFilter
  const others = parametersOf(fromStart(rowFilter)).filter(([name]) => name === 'class')
  return html`
    <form method="get" action="/lists/${jobId}#rows" class="row is-level filters" role="search"
      hx-get="/lists/${jobId}" hx-target="#${FOUND}" hx-swap="outerHTML settle:0s"
      hx-trigger="submit, change, input changed delay:${TYPING_MS}ms from:#search">
      <div class="search">
        ${icon('search')}
        <input id="search" name="search" type="search" value="${search}" placeholder="Search addresses"
          aria-label="Search addresses" autocomplete="off" />
      </div>
      <select id="reason" name="reason" aria-label="Reason">
        <option value="">All reasons</option>
        ${REASON_CHOICES.map(
          one =>
            html`<option value="${one}" ${one === reason ? html`selected` : NOTHING}>${reasonWord(one)}</option>`,
        )}
      </select>
      <select id="action" name="action" aria-label="Action">
        <option value="">All actions</option>
        ${ACTIONS.map(
          one =>
            html`<option value="${one}" ${one === action ? html`selected` : NOTHING}>${ACTION_NAMES[one]}</option>`,
        )}
      </select>
      <select id="sort" name="sort" aria-label="Sort by" class="on-phone">
        ${SORT_CHOICES.map(
          ([field, label]) =>
            html`<option value="${field}" ${field === rowFilter.sort ? html`selected` : NOTHING}>Sort by ${label.toLowerCase()}</option>`,
        )}
      </select>
      <span id="filter-hidden">${hiddenFields(others)}${rowFilter.isDescending ? hiddenField('order', 'desc') : NOTHING}</span>
      <button class="unscripted">Apply</button>
    </form>`
}

/** The reasons by name. */
const REASON_CHOICES = REASONS.toSorted((a, b) => (reasonWord(a) < reasonWord(b) ? -1 : 1))

const SORT_LABELS: Readonly<Record<SortField, string>> = {
  row: 'Row',
  email: 'Address',
  class: 'Class',
  reason: 'Reason',
  operator: 'Provider',
}
const SORT_CHOICES = Object.entries(SORT_LABELS)

/** Renders a chip for each class with its count, and the reason and the action that are chosen. */
export function chips(job: Job, rowFilter: RowFilter): Html {
  const { classes, reason, action } = rowFilter
  const chip = (name: string, isCurrent: boolean, change: Partial<RowFilter>, label: Html) => {
    const path = pathTo(job.job_id, { ...fromStart(rowFilter), ...change })
    const current = isCurrent ? html`aria-current="true"` : NOTHING
    return html`<a class="chip" id="chip-${name}" href="${path}#rows" ${intoRows(path)} ${current}>${label}</a>`
  }
  return html`
    <nav class="chips" aria-label="Classes">
      ${chip('all', classes.length === 0, { classes: [] }, html`All ${chipCount('all', job.processed_emails, job.total_emails)}`)}
      ${CLASSES.map(kind =>
        chip(
          kind,
          classes.includes(kind),
          { classes: [kind] },
          html`${CLASS_NAMES[kind]} ${chipCount(kind, job.data.classes[kind], job.total_emails)}`,
        ),
      )}
      ${REASONS.filter(one => one === reason).map(one =>
        chip(
          'reason',
          true,
          { reason: '' },
          html`${reasonWord(one)} ${icon('x')}<span class="unseen">Remove</span>`,
        ),
      )}
      ${ACTIONS.filter(one => one === action).map(one =>
        chip(
          'action',
          true,
          { action: '' },
          html`${ACTION_NAMES[one]} ${icon('x')}<span class="unseen">Remove</span>`,
        ),
      )}
    </nav>`
}

/** CSS reserves the width of `data-max`, so that the chips of a running list do not move. */
const chipCount = (name: string, value: number, max: number): Html =>
  html`<b id="count-${name}" data-max="${formatNumber(max)}">${formatNumber(value)}</b>`

/** Renders the counts of the chips, which change while a list runs. */
export const chipCounts = (o: {
  readonly done: number
  readonly total: number
  readonly classes: Job['data']['classes']
}): readonly Html[] => [
  chipCount('all', o.done, o.total),
  ...CLASSES.map(kind => chipCount(kind, o.classes[kind], o.total)),
]

/** Renders the heading of a column as a link that sorts by it, and reverses the order if it does. */
export function sortLink(jobId: string, rowFilter: RowFilter, sort: SortField) {
  const isCurrent = rowFilter.sort === sort
  const isDescending = isCurrent && !rowFilter.isDescending
  const path = pathTo(jobId, { ...fromStart(rowFilter), sort, isDescending })
  const arrow = isCurrent
    ? html`<span aria-hidden="true">${rowFilter.isDescending ? '↓' : '↑'}</span>`
    : NOTHING
  const direction = rowFilter.isDescending ? ('descending' as const) : ('ascending' as const)
  return {
    link: html`<a id="sort-${sort}" href="${path}#rows" ${intoRows(path)}>${SORT_LABELS[sort]}${arrow}</a>`,
    direction: isCurrent ? direction : null,
  }
}

/** Where a page of rows is among the rows that match. */
type PageRange = {
  readonly offset: number
  readonly count: number
  readonly total: number
  readonly next: string | null
}

/** Renders the pagination. */
export function pages(jobId: string, rowFilter: RowFilter, range: PageRange): Html {
  const { offset, count, total, next } = range
  const shown = `${formatNumber(offset + 1)}–${formatNumber(offset + count)}`
  return html`
    <nav class="row pages" aria-label="Pages of rows">
      ${count === 0 ? NOTHING : html`<span class="range">${shown} of ${formatNumber(total)}</span>`}
      ${offset === 0 ? NOTHING : button('first', pathTo(jobId, fromStart(rowFilter)), 'First page')}
      ${next === null ? NOTHING : button('next', pathTo(jobId, { ...fromStart(rowFilter), cursor: next }), 'Next page')}
      ${isListOrder(rowFilter) ? goTo(jobId, rowFilter) : NOTHING}
    </nav>`
}

/** A stable ID keeps the keyboard focus after the swap. */
const button = (id: string, path: string, label: string): Html =>
  html`<a class="button" id="page-${id}" href="${path}#rows" ${intoRows(path, FROM_THE_TOP)}>${label}</a>`

/** Rows have fixed numbers, so in the order of the list any row can be opened directly. */
const goTo = (jobId: string, rowFilter: RowFilter): Html => html`
  <form method="get" action="/lists/${jobId}#rows" class="row" ${intoRows(`/lists/${jobId}`, FROM_THE_TOP)}>
    ${hiddenFields(parametersOf(fromStart(rowFilter)))}
    <label for="go-to">From row</label>
    <input id="go-to" name="row" value="${rowFilter.row}" inputmode="numeric" size="9" required />
    <button>Go</button>
  </form>`

const hiddenFields = (parameters: ReturnType<typeof parametersOf>): readonly Html[] =>
  parameters.map(([name, value]) => hiddenField(name, value))

const hiddenField = (name: string, value: string): Html =>
  html`<input type="hidden" name="${name}" value="${value}" />`
