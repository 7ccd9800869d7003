import { html } from 'hono/html'
import { REASONS } from '../../engine/verdict/reason.ts'
import { boxes, field, select } from '../page/form.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { reasonWord } from '../page/notice.ts'
import { CLASS_NAMES, CLASSES } from '../page/text.ts'
import { pathTo, type RowFilter } from './filters.ts'

/**
 * Attributes that replace only the rows and keep the form; `show` is the scroll modifier of htmx.
 */
const intoRows = (path: string, show = ''): Html =>
  html`hx-get="${path}" hx-target="#rows" hx-swap="outerHTML settle:0s${show}" hx-push-url="true"`

/** Scrolls to the first row of the new page. */
const FROM_THE_TOP = ' show:#rows:top'

/** Renders the filter form. A selection applies at once, typed text on submit. */
export const filter = (jobId: string, { search, classes, reason }: RowFilter): Html => html`
  <form method="get" action="/lists/${jobId}#rows" class="card" role="search" ${intoRows(`/lists/${jobId}`)} hx-trigger="submit, change from:find select, change from:find fieldset">
    <div class="row">
      ${field({ label: 'Part of the address', name: 'search', type: 'search', value: search })}
      ${select({
        ...{ label: 'Reason', name: 'reason' },
        choices: [
          { value: '', label: 'Any' },
          ...REASONS.map(one => ({ value: one, label: reasonWord(one), checked: one === reason })),
        ],
      })}
      ${boxes(
        'Classes',
        'class',
        CLASSES.map(kind => ({
          value: kind,
          label: CLASS_NAMES[kind],
          checked: classes.includes(kind),
        })),
      )}
      <button>Show</button>
    </div>
  </form>`

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
