import type { Context } from 'hono'
import { html } from 'hono/html'
import { formatBytes, formatNumber, pluralize } from '../../base/format.ts'
import type { FileDryRun } from '../../client/types.ts'
import type { Draft } from '../../work/upload/drafts.ts'
import type { ApiProblem } from '../api.ts'
import { form, select } from '../page/form.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { notice } from '../page/notice.ts'
import type { Env } from '../parts.ts'
import { preview } from './preview.ts'

type Seen = {
  readonly draft: Draft
  /** Null: the file cannot be read as a list. */
  readonly seen: FileDryRun | null
  readonly problem?: ApiProblem | undefined
}

/** What was found in a file that was sent, and the buttons to start or discard it. */
export const draftView = (c: Context<Env>, { draft, seen, problem }: Seen): Html => html`
  <div id="draft">
    ${problem === undefined ? NOTHING : notice('bad', problem.message)}
    <p>This is what was found in it (${formatBytes(draft.size)}). Nothing is verified, and nothing is charged, before you start it.</p>
    ${seen === null ? NOTHING : [readingForm(draft, seen), figures(draft, seen), preview(seen)]}
    <div class="row">
      ${seen === null ? NOTHING : start(c, draft, seen)}
      ${form(c, `${pathOf(draft)}/discard`, html`<button>Discard</button>`)}
      ${seen === null ? html`<a class="button primary" href="/lists/new">Send another one</a>` : NOTHING}
    </div>
  </div>`

const pathOf = ({ id }: Draft) => `/lists/drafts/${id}`

/** A change is asked about at once where scripts are, and by the button where they are not. */
function readingForm(draft: Draft, seen: FileDryRun): Html {
  const { columns, column_number: chosen, header, delimiter } = seen
  const none = { value: '', label: 'Choose the column …', checked: true }
  return html`
    ${chosen === null ? notice('warn', 'It could not be told which column holds the addresses. Choose it below.') : NOTHING}
    <form method="get" action="${pathOf(draft)}" class="row" hx-get="${pathOf(draft)}" hx-trigger="change, submit"
      hx-target="#draft" hx-select="#draft" hx-swap="outerHTML settle:0s" hx-push-url="true">
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
      <button>Look again</button>
    </form>
    <p><small>${pluralize(columns.length, 'column')}, divided by ${DELIMITERS[delimiter]}.</small></p>`
}

const nameOf = ({ number: place, name }: FileDryRun['columns'][number]) =>
  name === null ? `Column ${place}` : `${place}: ${name}`

const DELIMITERS: Readonly<Record<FileDryRun['delimiter'], string>> = {
  ...{ ',': 'commas', ';': 'semicolons', '\t': 'tabs', '|': 'bars' },
}

function figures({ sandbox }: Draft, seen: FileDryRun): Html {
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

function start(c: Context<Env>, draft: Draft, seen: FileDryRun): Html {
  const { column_number, header, credits_needed, credits_balance } = seen
  if (column_number === null) return NOTHING
  const lacking = credits_balance === null ? 0 : (credits_needed ?? 0) - credits_balance
  if (lacking > 0) return notice('bad', tooFew(seen, lacking))
  return form(
    c,
    `${pathOf(draft)}/start`,
    html`
      <input type="hidden" name="column" value="${column_number}" />
      <input type="hidden" name="header" value="${String(header)}" />
      <button class="primary" data-busy="It is being started …">Start</button>`,
  )
}

const tooFew = ({ credits_needed, credits_balance }: FileDryRun, lacking: number) =>
  `This list needs ${pluralize(credits_needed ?? 0, 'credit')}, and ${formatNumber(credits_balance ?? 0)} are left today: ${formatNumber(lacking)} too few, so it cannot be started. Wait for tomorrow’s credits (00:00 UTC), send a shorter list, or ask whoever runs the service for a larger plan.`
