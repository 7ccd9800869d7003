import { html } from 'hono/html'
import { type Html, NOTHING } from './html.ts'

type Cell = Html | string | number | null

type Column<T> = {
  /** The heading; on a phone it stands before the value. */
  readonly label: string
  readonly cell: (row: T, index: number) => Cell
  /**
   * `name` is the heading of its row. `number` aligns to the right. `long` may break anywhere, as
   * an address. `wide` holds sentences. `action` holds buttons, and its heading is not visible.
   */
  readonly kind?: 'name' | 'number' | 'long' | 'wide' | 'action'
  /** The heading as a link that sorts by this column. */
  readonly sort?: { readonly link: Html; readonly direction: 'ascending' | 'descending' | null }
}

type Table<T> = {
  /** For screen readers. */
  readonly caption: string
  readonly columns: readonly (Column<T> | null)[]
  readonly rows: readonly T[]
  /** On a phone: a card for each row with a line for each column, or two lines for each row. */
  readonly onPhone?: 'cards' | 'lines'
  /** Attributes of `tbody`, as for polling. */
  readonly body?: Html
  /** Attributes of a row, as an ID. */
  readonly row?: (row: T, index: number) => Html
}

/** Renders a table; a null column is omitted. */
export function table<T>(o: Table<T>): Html {
  const columns = o.columns.filter(column => column !== null)
  return html`
    <div class="scroll"><table class="is-${o.onPhone ?? 'cards'}">
      <caption class="unseen">${o.caption}</caption>
      <thead><tr>${columns.map(heading)}</tr></thead>
      <tbody ${o.body ?? NOTHING}>${o.rows.map(
        (row, index) =>
          html`<tr ${o.row?.(row, index) ?? NOTHING}>${columns.map(column => cell(column, column.cell(row, index)))}</tr>`,
      )}</tbody>
    </table></div>`
}

const heading = <T>({ label, kind, sort }: Column<T>): Html =>
  kind === 'action'
    ? html` <th scope="col"><span class="unseen">${label}</span></th>`
    : html` <th scope="col"${classOf(kind)}${directionOf(sort?.direction)}>${sort?.link ?? label}</th>`

const directionOf = (direction: 'ascending' | 'descending' | null | undefined): Html =>
  direction == null ? NOTHING : html` aria-sort="${direction}"`

const cell = <T>({ label, kind }: Column<T>, content: Cell): Html =>
  kind === 'name'
    ? html` <th scope="row">${content}</th>`
    : html` <td${classOf(kind)} data-label="${kind === 'action' ? '' : label}">${content}</td>`

const classOf = (kind: string | undefined): Html =>
  kind === undefined || kind === 'name' ? NOTHING : html` class="${kind}"`
