import { html } from 'hono/html'
import type { FileDryRun } from '../../client/types.ts'
import { pluralize } from '../../platform/format.ts'
import { type Html, NOTHING } from '../page/html.ts'

/** More would make a page of megabytes. */
const COLUMNS_MAX = 20
/** So many stand before that of the addresses, which is then seen at once. */
const COLUMNS_BEFORE = 2

/** The first rows of a list as they were read, the column of the addresses being marked. */
export function preview(seen: FileDryRun): Html {
  const { columns, column_number: chosen, preview: rows } = seen
  const most = Math.max(0, columns.length - COLUMNS_MAX)
  const begin = Math.min(most, Math.max(0, (chosen ?? 1) - 1 - COLUMNS_BEFORE))
  const shown = columns.slice(begin, begin + COLUMNS_MAX)
  const left = columns.length - shown.length
  return html`
    <div class="scroll"><table class="preview">
      <caption>The first ${pluralize(rows.length, 'row')}</caption>
      <thead><tr>${shown.map(
        ({ number, name }) =>
          html`<th scope="col" ${mark(number, chosen)}>${name ?? `Column ${number}`}${number === chosen ? html` <small>addresses</small>` : NOTHING}</th>`,
      )}</tr></thead>
      <tbody>${rows.map(
        cells =>
          html`<tr>${shown.map(({ number }) => html`<td ${mark(number, chosen)}>${cells[number - 1] ?? ''}</td>`)}</tr>`,
      )}</tbody>
    </table></div>
    ${left > 0 ? html`<p><small>${pluralize(left, 'more column is', 'more columns are')} not shown; they come back with the results.</small></p>` : NOTHING}`
}

const mark = (number: number, chosen: number | null): Html =>
  number === chosen ? html`class="is-chosen"` : NOTHING
