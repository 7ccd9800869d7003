import { html } from 'hono/html'
import type { FileDryRun } from '../../client/types.ts'
import type { Upload } from '../../jobs/upload/uploads.ts'
import { formatBytes, formatNumber, pluralize } from '../../platform/format.ts'
import type { Random } from '../../platform/random.ts'
import { nonceField, nonceTarget, select } from '../page/form.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { notice } from '../page/notice.ts'

/** What is found in a list: a part of the form that holds it, with the button that starts it. */
export const previewPart = (random: Random, upload: Upload, seen: FileDryRun): Html => html`
  <p>This is what is found in it (${formatBytes(upload.size)}).</p>
  ${[reading(seen), figures(upload.fields.get('sandbox') === 'on', seen), preview(seen)]}
  ${start(seen)}
  ${nonceTarget(nonceField(random))}`

/** Each change is looked at anew by the form that it is in. */
function reading(seen: FileDryRun): Html {
  const { columns, column_number: chosen, header, delimiter } = seen
  const none = { value: '', label: 'Choose the column …', checked: true }
  return html`
    ${chosen === null ? notice('warn', 'It could not be told which column holds the addresses. Choose it below.') : NOTHING}
    <div class="row">
      ${select({
        ...{ label: 'Column of the addresses', name: 'column' },
        choices: [
          ...(chosen === null ? [none] : []),
          ...columns.map(one => ({
            ...{ value: String(one.number), label: nameOf(one) },
            checked: one.number === chosen,
          })),
        ],
      })}
      ${select({
        ...{ label: 'First row', name: 'header' },
        choices: [
          { value: 'true', label: 'names the columns', checked: header },
          { value: 'false', label: 'is a row like the others', checked: !header },
        ],
      })}
    </div>
    <p><small>${pluralize(columns.length, 'column')}, divided by ${DELIMITERS[delimiter]}.</small></p>`
}

const nameOf = ({ number: place, name }: FileDryRun['columns'][number]) =>
  name === null ? `Column ${place}` : `${place}: ${name}`

const DELIMITERS: Readonly<Record<FileDryRun['delimiter'], string>> = {
  ...{ ',': 'commas', ';': 'semicolons', '\t': 'tabs', '|': 'bars' },
}

function figures(sandbox: boolean, seen: FileDryRun): Html {
  if (seen.rows === null) return NOTHING
  const left = seen.credits_balance === null ? 'without limit' : formatNumber(seen.credits_balance)
  return html`
    <dl class="figures card">
      ${figure('Rows', seen.rows)} ${figure('Addresses', seen.valid_emails)}
      ${figure('Malformed', seen.invalid_format_emails)} ${figure('Duplicates', seen.duplicates)}
      <div><dt>Credits needed</dt><dd>${sandbox ? 'none, in the sandbox' : formatNumber(seen.credits_needed ?? 0)}</dd></div>
      <div><dt>Credits left today</dt><dd>${left}</dd></div>
      <div><dt>Takes about</dt><dd>${seen.estimated_time ?? '–'}</dd></div>
    </dl>
    <p><small>An address is asked and charged once, however often it stands in the list. Malformed rows cost nothing.</small></p>`
}

const figure = (name: string, value: number | null) =>
  html`<div><dt>${name}</dt><dd>${formatNumber(value ?? 0)}</dd></div>`

function start(seen: FileDryRun): Html {
  const { column_number, credits_needed, credits_balance } = seen
  if (column_number === null) return NOTHING
  const lacking = credits_balance === null ? 0 : (credits_needed ?? 0) - credits_balance
  if (lacking > 0) return notice('bad', tooFew(seen, lacking))
  return html`<p><button class="primary" hx-post="/lists/new">Start</button></p>`
}

const tooFew = ({ credits_needed, credits_balance }: FileDryRun, lacking: number) =>
  `This list needs ${pluralize(credits_needed ?? 0, 'credit')}, and ${formatNumber(credits_balance ?? 0)} are left today: ${formatNumber(lacking)} too few, so it cannot be started. Wait for tomorrow’s credits (00:00 UTC), send a shorter list, or ask whoever runs the service for a larger plan.`

/** More would make a page of megabytes. */
const COLUMNS_MAX = 20
/** So many stand before that of the addresses, which is then seen at once. */
const COLUMNS_BEFORE = 2

/** The first rows of a list as they were read, the column of the addresses being marked. */
function preview(seen: FileDryRun): Html {
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
