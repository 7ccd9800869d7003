import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import type { Job, ResultRowAnswer, SingleResult } from '../../client/types.ts'
import { formatNumber } from '../../platform/format.ts'
import { sanitizeText } from '../../platform/text.ts'
import { ApiProblem } from '../api.ts'
import type { Env } from '../deps.ts'
import { sentForm } from '../page/form.ts'
import { type Html, isHtmx, NOTHING } from '../page/html.ts'
import { icon } from '../page/icon.ts'
import { part } from '../page/layout.ts'
import { notice } from '../page/notice.ts'
import { facts } from '../page/parts.ts'
import { badge, time } from '../page/text.ts'
import { csrfField } from '../session/csrf.ts'
import { may } from '../session/signed-in.ts'
import { findings } from '../verify/verdict.ts'
import { after, type Progress, started, verifyWithEvents } from '../verify/verify-events.ts'
import { pathTo, type RowFilter } from './filters.ts'
import { findJob, jobPath } from './find-job.ts'

// The details of a row. The URL of the page says which row is open, so that it can be shared and
// works without JavaScript; `rows.js` makes the panel a dialog and keeps the page.

export const PANEL = 'panel'
const CHECK = 'panel-check'

/** Renders the panel of the row that is open; without one, what htmx replaces by a panel. */
export async function rowPanel(
  c: Context<Env>,
  job: Job,
  rowFilter: RowFilter,
  check: Html = NOTHING,
): Promise<Html> {
  const { open } = rowFilter
  if (open === '') return html`<dialog id="${PANEL}" class="panel" aria-label="Row"></dialog>`
  const row = await findRow(c, job.job_id, open)
  const closed = pathTo(job.job_id, { ...rowFilter, open: '' })
  const title =
    row instanceof ApiProblem
      ? `Row ${sanitizeText(open, ROW_SHOWN)}`
      : formatAddress(row.email) || '(empty)'
  return html`
    <dialog id="${PANEL}" class="panel" aria-labelledby="panel-title" open data-opener="open-${open}">
      <header class="row is-level">
        <div>
          ${row instanceof ApiProblem ? NOTHING : html`<small>Row ${formatNumber(row.row)}</small>`}
          <h2 id="panel-title" tabindex="-1" autofocus>${title}</h2>
        </div>
        <a class="button quiet is-icon" href="${closed}#rows" data-close>${icon('x')}<span class="unseen">Close</span></a>
      </header>
      ${row instanceof ApiProblem ? notice('bad', row.message) : details(c, job, row, check)}
    </dialog>`
}

const ROW_SHOWN = 40

/** Returns an address as it can be shown: a cell of a list can have any characters. */
export const formatAddress = (email: string): string => sanitizeText(email, ADDRESS_LENGTH_MAX)

/** Four times the longest address. */
const ADDRESS_LENGTH_MAX = 1_024

type Row = ResultRowAnswer['data']

/** Returns an API error, such as for a row that does not exist, instead of failing the whole page. */
async function findRow(c: Context<Env>, jobId: string, row: string): Promise<Row | ApiProblem> {
  const path = `${jobPath(jobId)}/results/${encodeURIComponent(row)}`
  try {
    return (await c.get('api').ask<ResultRowAnswer>(path)).data
  } catch (error) {
    if (error instanceof ApiProblem && error.status < 500) return error
    throw error
  }
}

function details(c: Context<Env>, job: Job, row: Row, check: Html): Html {
  const { result } = row
  if (row.erased) return html`<p>The address was erased. Only the class of its result is kept.</p>`
  if (result === null) return html`<p>This row has no result yet.</p>`
  return html`
    <section aria-label="Result">
      <div class="row is-level">${badge(result.class)} ${verifyForm(c, job, row, ADDRESS)}</div>
      ${findings(result, () => verifyForm(c, job, row, SUGGESTION))}
    </section>
    <div id="${CHECK}">${check}</div>
    <section>
      <h3>Evidence</h3>
      ${evidence(result)}
    </section>
    <section>
      <h3>SMTP dialogue</h3>
      ${dialogue(result.evidence?.dialogue ?? []) ?? html`<p class="muted">Lists store only the final reply. Re-verify the address to see the SMTP dialogue.</p>`}
    </section>`
}

/** Renders how the result was determined. */
function evidence({ evidence: known, checked_at }: SingleResult): Html {
  const hosts = known?.route?.hosts ?? []
  return facts([
    ['Verified', checked_at === undefined ? null : time(checked_at)],
    [
      'MX',
      hosts.length === 0
        ? null
        : html`${hosts.map(({ preference, host }) => html`<div>${preference} ${host}</div>`)}`,
    ],
    ['IP address', known?.ip ?? null],
    ['TLS', known?.host == null ? null : known.tls ? 'Yes' : 'No'],
    ['Stage', known?.answer?.stage.toUpperCase() ?? null],
    ['Egress', known?.egress ?? null],
  ])
}

/** Renders the lines of a dialogue; null if there are none. */
const dialogue = (lines: readonly string[]): Html | null =>
  lines.length === 0
    ? null
    : html`<pre class="dialogue" tabindex="0" role="region" aria-label="Lines of the dialogue">${lines.join('\n')}</pre>`

const ADDRESS = 'address'
const SUGGESTION = 'suggestion'
type Subject = typeof ADDRESS | typeof SUGGESTION

/** Renders a button that verifies the address of the row, or the one that it suggests. */
function verifyForm(c: Context<Env>, job: Job, { row }: Row, subject: Subject): Html {
  if (!may(c.get('user'), 'verify:single')) return NOTHING
  const path = `/lists/${job.job_id}/rows/${row}/verify`
  return html`
    <form method="post" action="${path}" hx-post="${path}" hx-target="#${CHECK}" hx-disabled-elt="find button">
      ${csrfField(c)}<input type="hidden" name="subject" value="${subject}" />
      <button>${subject === ADDRESS ? 'Re-verify' : 'Verify suggestion'}</button>
      <small>${subject === ADDRESS ? `${job.sandbox ? 'Uses no credits' : 'Uses 1 credit'}. The list keeps its result.` : ''}</small>
      <small class="is-waiting">Verifying …</small>
    </form>`
}

/** Renders the page of a list with the panel of a row and the result of its verification. */
type Show = (c: Context<Env>, open: string, check: Html) => Promise<Response>

/** Route that verifies the address of a row; the list keeps its result. */
export const rowVerifyRoutes = (show: Show): Hono<Env> =>
  new Hono<Env>().post('/lists/:id/rows/:row/verify', async c => {
    const [id, position] = [c.req.param('id'), c.req.param('row')]
    const job = await findJob(c)
    const row = await findRow(c, id, position)
    if (row instanceof ApiProblem) throw row
    const { text } = await sentForm(c)
    const suggested = row.result?.did_you_mean ?? row.email
    const email = text('subject') === SUGGESTION ? suggested : row.email
    const check = verified(await verify(c, email, job.sandbox === true))
    return isHtmx(c) ? part(c, check) : show(c, position, check)
  })

async function verify(c: Context<Env>, email: string, sandbox: boolean): Promise<Progress> {
  const form = { email, sandbox, again: true }
  let progress = started(form)
  for await (const event of verifyWithEvents(c.get('api'), form, c.req.raw.signal)) {
    progress = after(progress, event)
  }
  return progress
}

/** Renders the result of a verification, apart from the result that the list keeps. */
function verified({ form, result, error, lines }: Progress): Html {
  return html`
    <section class="is-new" aria-label="New result">
      <h3 tabindex="-1">New result for ${formatAddress(form?.email ?? '') || '(empty)'}</h3>
      ${
        result === null
          ? notice('bad', error?.error ?? 'The verification was interrupted. Try again.')
          : html`<p>${badge(result.class)}</p> ${findings(result, () => NOTHING)} ${dialogue(lines)}`
      }
    </section>`
}
