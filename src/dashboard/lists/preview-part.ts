import { html } from 'hono/html'
import type { FileDryRun } from '../../client/types.ts'
import { SOURCE_TITLES } from '../../engine/verdict/external.ts'
import { formatBytes, formatNumber, joinWords, pluralize } from '../../platform/format.ts'
import type { Random } from '../../platform/random.ts'
import { field, nonceField, nonceTarget, select } from '../page/form.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { notice } from '../page/notice.ts'

/** A numbered step of the upload form. */
export const step = (title: string, body: Html): Html =>
  html`<section class="card step"><h2>${title}</h2>${body}</section>`

export const PREVIEW_TITLE = 'Columns and preview'

type PreviewInput = {
  readonly dryRun: FileDryRun
  /** Of the upload, in bytes. */
  readonly size: number
  readonly isSandbox: boolean
  /** Whether rows keep results of another service, and the date of the export as it was entered. */
  readonly external: { readonly isKept: boolean; readonly date: string }
}

/** Renders the preview of an upload: a fragment of its form, with the Start button. */
export const previewPart = (
  random: Random,
  { dryRun, size, isSandbox, external }: PreviewInput,
): Html => html`
  ${step(
    PREVIEW_TITLE,
    html`
      ${layoutFields(dryRun, size)} ${externalFields(dryRun, external)} ${figures(isSandbox, dryRun)}
      ${preview(dryRun)} ${start(dryRun)}`,
  )}
  ${nonceTarget(nonceField(random))}`

/** Renders the column and header choices; a change submits the form for a new preview. */
function layoutFields(dryRun: FileDryRun, size: number): Html {
  const { columns, column_number: chosen, header, sheet, sheets } = dryRun
  const none = { value: '', label: 'Choose the column …', checked: true }
  return html`
    ${chosen === null ? notice('warn', 'The column with the addresses was not detected. Choose it below.') : NOTHING}
    ${unverified(dryRun)}
    <div class="row">
      ${sheets.length > 1 ? sheetField(sheets, sheet) : NOTHING}
      ${select({
        label: 'Address column',
        name: 'column',
        choices: [
          ...(chosen === null ? [none] : []),
          ...columns.map(one => ({
            value: String(one.number),
            label: nameOf(one),
            checked: one.number === chosen,
          })),
        ],
      })}
      ${select({
        label: 'First row',
        name: 'header',
        choices: [
          { value: 'true', label: 'Header', checked: header },
          { value: 'false', label: 'Data', checked: !header },
        ],
      })}
      ${addressesField(dryRun)}
    </div>
    <p><small>${formatBytes(size)}, ${pluralize(columns.length, 'column')}, ${layoutText(dryRun)}.</small></p>`
}

/** `shown_sheet` tells whether the chosen columns are those of the chosen sheet. */
const sheetField = (sheets: readonly string[], chosen: string | null): Html => html`
  ${select({
    label: 'Sheet',
    name: 'sheet',
    choices: sheets.map(name => ({ value: name, label: name, checked: name === chosen })),
  })}
  <input type="hidden" name="shown_sheet" value="${chosen ?? ''}" />`

/** Renders the choice between one and all addresses of a row, if there is one. */
function addressesField({ address_columns, has_several, all_addresses }: FileDryRun): Html {
  const [name, value] = ['all_addresses', String(all_addresses)]
  // The request of the form names the column, so it must also tell that all addresses were chosen.
  if (address_columns.length < 2 && !has_several)
    return html`<input type="hidden" name="${name}" value="${value}" />`
  return select({
    label: 'Addresses',
    name,
    choices: [
      { value: 'false', label: 'One per row', checked: !all_addresses },
      { value: 'true', label: 'All, each as a separate row', checked: all_addresses },
    ],
  })
}

/** Renders the choice to keep the results of another service, if the list has them. */
function externalFields(
  { external_source: source }: FileDryRun,
  { isKept, date }: PreviewInput['external'],
): Html {
  if (source === null) return NOTHING
  return html`
    <div class="row">
      ${select({
        label: `Results of ${SOURCE_TITLES[source]}`,
        name: 'keep_external',
        choices: [
          { value: 'false', label: 'Verify all rows', checked: !isKept },
          { value: 'true', label: 'Keep recent results', checked: isKept },
        ],
      })}
      ${isKept ? field({ label: 'Exported on', name: 'external_date', type: 'date', value: date, hint: 'For rows without a date of their own.' }) : NOTHING}
    </div>`
}

/** Renders which addresses are not verified. */
function unverified(dryRun: FileDryRun): Html {
  const { address_columns, column_number, has_several, all_addresses } = dryRun
  const others = address_columns.filter(number => number !== column_number)
  if (all_addresses || (others.length === 0 && !has_several)) return NOTHING
  const names = others.map(number => dryRun.columns.find(one => one.number === number)?.name)
  const columns = others.map((number, i) => `${number}${names[i] ? ` (${names[i]})` : ''}`)
  const verb = others.length === 1 ? 'Column' : 'Columns'
  const contain = others.length === 1 ? 'contains' : 'contain'
  return notice(
    'warn',
    [
      ...(has_several
        ? ['Some cells contain several addresses and are reported as malformed.']
        : []),
      ...(others.length > 0
        ? [
            `${verb} ${joinWords(columns, 'and')} also ${contain} addresses, which are not verified.`,
          ]
        : []),
      'To verify all of them, change "Addresses" below.',
    ].join(' '),
  )
}

const layoutText = ({ format, delimiter }: FileDryRun) =>
  format === 'xlsx' ? 'an Excel workbook' : `separated by ${DELIMITERS[delimiter]}`

const nameOf = ({ number, name }: FileDryRun['columns'][number]) =>
  name === null ? `Column ${number}` : `${number}: ${name}`

const DELIMITERS: Readonly<Record<FileDryRun['delimiter'], string>> = {
  ',': 'commas',
  ';': 'semicolons',
  '\t': 'tabs',
  '|': 'pipes',
}

function figures(sandbox: boolean, dryRun: FileDryRun): Html {
  const { rows, credits_balance: balance } = dryRun
  if (rows === null) return NOTHING
  const left = balance === null ? 'Unlimited' : formatNumber(balance)
  return html`
    <dl class="figures">
      ${figure('Rows', rows)} ${figure('Addresses', dryRun.valid_emails)}
      ${figure('Malformed', dryRun.invalid_format_emails)} ${figure('Without address', dryRun.no_address)}
      ${figure('Duplicates', dryRun.duplicates)}
      ${dryRun.kept_external === 0 ? NOTHING : figure('Kept results', dryRun.kept_external)}
      <div><dt>Credits needed</dt><dd>${sandbox ? 'None (sandbox)' : formatNumber(dryRun.credits_needed ?? 0)}</dd></div>
      <div><dt>Credits left today</dt><dd>${left}</dd></div>
      <div><dt>Estimated time</dt><dd>${dryRun.estimated_time ?? '–'}</dd></div>
    </dl>
    <p><small>Duplicates are verified and charged once. Malformed rows are free.</small></p>`
}

const figure = (name: string, value: number | null) =>
  html`<div><dt>${name}</dt><dd>${formatNumber(value ?? 0)}</dd></div>`

function start(dryRun: FileDryRun): Html {
  const { column_number, credits_needed, credits_balance } = dryRun
  if (column_number === null) return NOTHING
  const lacking = credits_balance === null ? 0 : (credits_needed ?? 0) - credits_balance
  if (lacking > 0) return notice('bad', insufficientCredits(dryRun, lacking))
  return html`<button class="primary" hx-post="/lists/new" hx-disabled-elt="this">Start</button>`
}

const insufficientCredits = ({ credits_needed, credits_balance }: FileDryRun, lacking: number) =>
  `This list needs ${pluralize(credits_needed ?? 0, 'credit')}, but only ${formatNumber(credits_balance ?? 0)} are left today, ${formatNumber(lacking)} too few. Wait for the reset at 00:00 UTC, upload a shorter list, or ask the administrator for a larger plan.`

/** Limits the size of the page: a file may have thousands of columns. */
const COLUMNS_MAX = 20
/** Columns shown before the address column, which keeps it visible without scrolling. */
const COLUMNS_BEFORE = 2

/** Renders the first parsed rows and highlights the address column. */
function preview(dryRun: FileDryRun): Html {
  const { columns, column_number: chosen, preview: rows } = dryRun
  const startMax = Math.max(0, columns.length - COLUMNS_MAX)
  const start = Math.min(startMax, Math.max(0, (chosen ?? 1) - 1 - COLUMNS_BEFORE))
  const shown = columns.slice(start, start + COLUMNS_MAX)
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
    ${left > 0 ? html`<p><small>${pluralize(left, 'more column is', 'more columns are')} not shown here but kept in the results.</small></p>` : NOTHING}`
}

const mark = (number: number, chosen: number | null): Html =>
  number === chosen ? html`class="is-chosen"` : NOTHING
