import { html } from 'hono/html'
import type { Job } from '../../client/types.ts'
import { REASONS } from '../../engine/verdict/reason.ts'
import { formatNumber } from '../../platform/format.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { icon } from '../page/icon.ts'
import { reasonWord } from '../page/notice.ts'
import { CLASS_NAMES, CLASSES } from '../page/text.ts'
import { NO_FILTER, pathTo, type RowFilter } from './filters.ts'

/**
 * Attributes that replace only the rows and keep the form; `show` is the scroll modifier of htmx.
 */
const intoRows = (path: string, show = ''): Html =>
  html`hx-get="${path}" hx-target="#rows" hx-swap="outerHTML settle:0s${show}" hx-push-url="true"`

/** Scrolls to the first row of the new page. */
const FROM_THE_TOP = ' show:#rows:top'

/** Renders a link that shows only the rows of this filter. */
export function rowsLink(jobId: string, only: Partial<RowFilter>, label: Html | string): Html {
  const path = pathTo(jobId, { ...NO_FILTER, ...only })
  return html`<a class="rows-link" href="${path}#rows" ${intoRows(path, FROM_THE_TOP)}>${label}</a>`
}

/** Renders the filter: a search, a chip for each class, and the reason if one is chosen. */
export function filter(job: Job, rowFilter: RowFilter): Html {
  const { search, classes, reason } = rowFilter
  const id = job.job_id
  const chip = (name: string, isCurrent: boolean, change: Partial<RowFilter>, label: Html) => {
    const path = pathTo(id, { ...rowFilter, cursor: '', row: '', ...change })
    const current = isCurrent ? html`aria-current="true"` : NOTHING
    return html`<a class="chip" id="chip-${name}" href="${path}#rows" ${intoRows(path)} ${current}>${label}</a>`
  }
  const count = (name: string, value: number) =>
    html` <b data-live="${name}" data-max="${formatNumber(job.total_emails)}">${formatNumber(value)}</b>`
  return html`
    <div class="row is-level filters">
      <form method="get" action="/lists/${id}#rows" class="search" role="search" ${intoRows(`/lists/${id}`)}>
        ${icon('search')}
        <input id="search" name="search" type="search" value="${search}" placeholder="Search addresses"
          aria-label="Search addresses" autocomplete="off" />
        ${hidden('reason', reason)}${classes.map(kind => hidden('class', kind))}
      </form>
      <nav class="chips" aria-label="Classes">
        ${chip('all', classes.length === 0, { classes: [] }, html`All${count('done', job.processed_emails)}`)}
        ${CLASSES.map(kind =>
          chip(
            kind,
            classes.includes(kind),
            { classes: [kind] },
            html`${CLASS_NAMES[kind]}${count(kind, job.data.classes[kind])}`,
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
      </nav>
    </div>`
}

/** Renders the pagination. Rows have fixed numbers, so any row can be opened directly. */
export function pages(jobId: string, rowFilter: RowFilter, next: string | null): Html {
  const isFirst = rowFilter.cursor === '' && rowFilter.row === ''
  const first = pathTo(jobId, { ...rowFilter, cursor: '', row: '' })
  return html`
    <nav class="row pages" aria-label="Pages of rows">
      ${isFirst ? NOTHING : button('first', first, 'First page')}
      ${next === null ? NOTHING : button('next', pathTo(jobId, { ...rowFilter, cursor: next, row: '' }), 'Next page')}
      ${goTo(jobId, rowFilter)}
    </nav>`
}

/** A stable ID keeps the keyboard focus after the swap. */
const button = (id: string, path: string, label: string): Html =>
  html`<a class="button" id="page-${id}" href="${path}#rows" ${intoRows(path, FROM_THE_TOP)}>${label}</a>`

const goTo = (jobId: string, { search, reason, classes, row }: RowFilter): Html => html`
  <form method="get" action="/lists/${jobId}#rows" class="row" ${intoRows(`/lists/${jobId}`, FROM_THE_TOP)}>
    ${hidden('search', search)}${hidden('reason', reason)}${classes.map(kind => hidden('class', kind))}
    <label for="go-to">From row</label>
    <input id="go-to" name="row" value="${row}" inputmode="numeric" size="9" required />
    <button>Go</button>
  </form>`

const hidden = (name: string, value: string): Html =>
  value === '' ? NOTHING : html`<input type="hidden" name="${name}" value="${value}" />`
