import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import type { Job } from '../../client/types.ts'
import { SOURCE_TITLES } from '../../engine/verdict/external.ts'
import { VOCABULARIES } from '../../formats/vocabulary/names.ts'
import { formatNumber } from '../../platform/format.ts'
import { proxy, queryOf } from '../api.ts'
import type { Env } from '../deps.ts'
import { boxes, form, select } from '../page/form.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { icon } from '../page/icon.ts'
import { CLASS_NAMES, CLASSES } from '../page/text.ts'
import { isActive, isResumable } from './charts.ts'
import { jobPath } from './find-job.ts'

/** Route that streams the results as a file. */
export const downloadRoutes = () =>
  new Hono<Env>().get('/lists/:id/download', async c => {
    const format = c.req.query('format') || 'csv'
    const query = queryOf({
      format,
      filter: c.req.queries('class')?.join(',') || null,
      // JSON has no columns.
      vocabulary: (['csv', 'xlsx'].includes(format) && c.req.query('vocabulary')) || null,
      deduplicate: c.req.query('deduplicate') === 'on' || null,
      // An incomplete list returns the results so far.
      partial: true,
    })
    return proxy(c, await c.get('api').fetch(`${jobPath(c.req.param('id'))}/download${query}`))
  })

/** Renders the buttons that download the deliverable rows, or a selection. */
export function downloads(c: Context<Env>, job: Job): Html {
  const { job_id, processed_emails: done, data } = job
  // The page of a running list is not loaded again when it has results.
  if (done === 0 && !isActive(job)) return NOTHING
  const path = `/lists/${job_id}/download`
  const hasDeliverable = isActive(job) || data.classes.deliverable > 0
  const href = hasDeliverable ? `${path}?class=deliverable` : path
  // The count of a running list would change the width of the button.
  const count = isActive(job)
    ? ''
    : ` (${formatNumber(hasDeliverable ? data.classes.deliverable : done)})`
  const label = `Download ${hasDeliverable ? 'deliverable' : 'all'}${count}`
  return html`
    <a class="button ${isResumable(job) ? '' : 'primary'}" href="${href}">${icon('download')}<span>${label}</span></a>
    <details class="confirm">
      <summary class="button">More downloads</summary>
      <div class="menu">${selection(path)}</div>
    </details>
    ${job.status === 'completed' ? linkMenu(c, job) : NOTHING}`
}

/** The form that creates a URL of the results which needs no key. */
const linkMenu = (c: Context<Env>, { job_id, data }: Job): Html => html`
  <details class="confirm">
    <summary class="button">Share</summary>
    <div class="menu">
      <p>Creates a link that works for 24 hours. Anyone with the link can download the results without a key.</p>
      ${form(
        c,
        `/lists/${job_id}/link`,
        html`${select({
          label: 'Format',
          name: 'link_format',
          choices: [
            { value: 'csv', label: 'CSV' },
            { value: 'xlsx', label: 'Excel workbook (XLSX)' },
          ],
        })}
        ${data.classes.deliverable === 0 ? NOTHING : html`<p><label class="tick"><input type="checkbox" name="deliverable" /> Only deliverable addresses</label></p>`}
        <button>Create link</button>`,
      )}
    </div>
  </details>`

const selection = (path: string): Html => html`
  <form method="get" action="${path}" aria-label="Download a selection">
    ${boxes(
      'Classes',
      'class',
      CLASSES.map(kind => ({ value: kind, label: CLASS_NAMES[kind], checked: true })),
    )}
    ${select({
      label: 'Format',
      name: 'format',
      choices: [
        { value: 'csv', label: 'CSV' },
        { value: 'xlsx', label: 'Excel workbook (XLSX)' },
        { value: 'json', label: 'JSON' },
        { value: 'ndjson', label: 'NDJSON, one row per line' },
      ],
    })}
    ${select({
      label: 'Columns of CSV and XLSX',
      name: 'vocabulary',
      choices: [
        { value: '', label: 'ev' },
        ...VOCABULARIES.map(value => ({ value, label: `As ${SOURCE_TITLES[value]}` })),
      ],
    })}
    <p><label class="tick"><input type="checkbox" name="deduplicate" /> One row for each address</label></p>
    <p><small>CSV and XLSX contain the columns of your list with the result of each row, as ev or another service writes it.</small></p>
    <button>Download</button>
  </form>`
