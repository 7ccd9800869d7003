import { html } from 'hono/html'
import { formatBytes, formatDuration, pluralize } from '../../platform/format.ts'
import type { Html } from '../page/html.ts'
import type { HealthSource } from './source.ts'

/** What is under way, and how the process is. */
export async function figures(health: HealthSource): Promise<Html> {
  const { jobs, waiting, running } = health.queue()
  const [workers, process] = await Promise.all([health.workers(), health.process()])
  const { concurrency, requestsInFlight, deliveriesOpen, noticesOpen } = workers
  return html`
    <h2>Under way</h2>
    <div class="grid">
      <section class="card">
        <h3>Lists</h3>
        <dl class="figures">
          ${figure('Worked on', pluralize(jobs, 'job'))}
          ${figure('Under way', pluralize(running, 'queue entry'))}
          ${figure('Waiting', pluralize(waiting, 'queue entry'))}
        </dl>
        <p><small>An entry is one connection that an operator allows, or one list that is being read. At most
        ${pluralize(concurrency, 'connection')} of lists are open at the same time.</small></p>
      </section>
      <section class="card">
        <h3>Webhooks</h3>
        <dl class="figures">
          ${figure('Under way', pluralize(requestsInFlight, 'request'))}
          ${figure('Still to arrive', pluralize(deliveriesOpen, 'delivery'))}
          ${figure('To be mailed', pluralize(noticesOpen, 'notice'))}
        </dl>
      </section>
      <section class="card">
        <h3>Process</h3>
        <dl class="figures">
          ${figure('Version', process.version)}
          ${figure('Up for', formatDuration(process.upMs))}
          ${figure('Memory', formatBytes(process.memoryBytes))}
          ${figure('Database', sizeOr(process.databaseBytes))}
          ${figure('Free on disk', sizeOr(process.freeBytes))}
        </dl>
      </section>
    </div>`
}

const figure = (name: string, value: string): Html =>
  html`<div><dt>${name}</dt><dd>${value}</dd></div>`

const sizeOr = (bytes: number | null) => (bytes === null ? 'not known' : formatBytes(bytes))
