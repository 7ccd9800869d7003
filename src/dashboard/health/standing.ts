import { html } from 'hono/html'
import type { Html } from '../page/html.ts'
import { count, duration, size } from '../page/text.ts'
import type { HealthSource } from './source.ts'

/** What is under way, and how the process is. */
export async function figures(health: HealthSource): Promise<Html> {
  const { jobs, waiting, running } = health.queue()
  const [workers, process] = await Promise.all([health.workers(), health.process()])
  const { concurrency, requestsUnderWay, deliveriesOpen, noticesOpen } = workers
  return html`
    <h2>Under way</h2>
    <div class="grid">
      <section class="card">
        <h3>Lists</h3>
        <dl class="figures">
          ${figure('Worked on', count(jobs, 'job'))}
          ${figure('Under way', count(running, 'queue entry', 'queue entries'))}
          ${figure('Waiting', count(waiting, 'queue entry', 'queue entries'))}
        </dl>
        <p><small>An entry is one connection that an operator allows, or one list that is being read. At most
        ${count(concurrency, 'connection')} of lists are open at the same time.</small></p>
      </section>
      <section class="card">
        <h3>Webhooks</h3>
        <dl class="figures">
          ${figure('Under way', count(requestsUnderWay, 'request'))}
          ${figure('Still to arrive', count(deliveriesOpen, 'delivery', 'deliveries'))}
          ${figure('To be mailed', count(noticesOpen, 'notice'))}
        </dl>
      </section>
      <section class="card">
        <h3>Process</h3>
        <dl class="figures">
          ${figure('Version', process.version)}
          ${figure('Up for', duration(process.upMs))}
          ${figure('Memory', size(process.memoryBytes))}
          ${figure('Database', sizeOr(process.databaseBytes))}
          ${figure('Free on disk', sizeOr(process.freeBytes))}
        </dl>
      </section>
    </div>`
}

const figure = (name: string, value: string): Html =>
  html`<div><dt>${name}</dt><dd>${value}</dd></div>`

const sizeOr = (bytes: number | null) => (bytes === null ? 'not known' : size(bytes))
