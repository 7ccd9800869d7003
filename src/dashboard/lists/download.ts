import { Hono } from 'hono'
import { html } from 'hono/html'
import type { Job } from '../../client/types.ts'
import { queryOf } from '../api.ts'
import { proxy } from '../api-proxy.ts'
import type { Env } from '../deps.ts'
import { boxes, select } from '../page/form.ts'
import type { Html } from '../page/html.ts'
import { CLASSES } from './labels.ts'

/** Results as a file, passed on as it is made. */
export const downloadRoutes = () =>
  new Hono<Env>().get('/lists/:id/download', async c => {
    const id = encodeURIComponent(c.req.param('id'))
    const query = queryOf({
      format: c.req.query('format') || 'csv',
      filter: c.req.queries('class')?.join(',') || null,
      // A list that ended early, or is under way, gives what it has.
      partial: true,
    })
    return proxy(c, await c.get('api').fetch(`/v1/jobs/${id}/download${query}`))
  })

/** Without a tick a file has all rows. */
export const downloadForm = ({ job_id }: Job): Html => html`
  <form method="get" action="/lists/${job_id}/download" class="card" aria-labelledby="download-title">
    <h2 id="download-title">Download</h2>
    <div class="row">
      ${select({
        ...{ label: 'Format', name: 'format' },
        choices: [
          { value: 'csv', label: 'CSV' },
          { value: 'json', label: 'JSON' },
          { value: 'ndjson', label: 'NDJSON, one row a line' },
        ],
      })}
      ${boxes(
        'Only these classes; without a tick all',
        'class',
        CLASSES.map(kind => ({ value: kind, label: kind })),
      )}
      <button>Download</button>
    </div>
    <p><small>CSV has the columns of your list, and what was found out beside each row.</small></p>
  </form>`
