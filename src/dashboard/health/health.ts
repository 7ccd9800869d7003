import { type Context, Hono, type MiddlewareHandler } from 'hono'
import { html } from 'hono/html'
import type { Member } from '../../cluster/members.ts'
import { formatBytes, formatDuration, pluralize } from '../../platform/format.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { form } from '../page/form.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { page, part } from '../page/layout.ts'
import { Refusal } from '../page/notice.ts'
import { time } from '../page/text.ts'
import { leaveNote } from '../session/cookie.ts'
import { findings } from './findings.ts'
import { operatorsTable, replyOf } from './operator-table.ts'
import type { HealthSource, PeerBlock } from './source.ts'

/** How the service is, for whoever runs it: who would not have us, what is under way, what the doctor found. */
export function healthRoutes({ health, clock }: DashboardDeps): Hono<Env> {
  return new Hono<Env>()
    .use('/doctor/*', adminsOnly())
    .get('/doctor', async c => {
      const body = html`${await status(health, clock.now())} ${findings(health.examine())}`
      return page(c, { title: 'Health', actions: examineButton(c), body })
    })
    .get('/doctor/standing', async c => part(c, await status(health, clock.now())))
    .get('/doctor/findings', c => part(c, findings(health.examine())))
    .post('/doctor/examine', c => {
      health.rerunChecks()
      leaveNote(c, health.examine().isRunning ? STARTED : TOO_SOON)
      return c.redirect('/doctor', 303)
    })
}

const STARTED = 'The machine is being examined.'
const TOO_SOON =
  'The machine was examined less than a minute ago, so what is shown is still new. Mail servers and blocklists are asked each time; try again in a minute.'

function adminsOnly(): MiddlewareHandler<Env> {
  return (c, next) => {
    const { isAdmin, accountName } = c.get('user')
    if (isAdmin) return next()
    throw new Refusal(
      403,
      `Health is for whoever runs this service, and the account “${accountName}” is not marked as theirs. On the machine of the service: ev accounts set-admin`,
    )
  }
}

const examineButton = (c: Context<Env>): Html =>
  form(c, '/doctor/examine', html`<button>Examine again</button>`)

/** What changes while one looks. */
const status = async (health: HealthSource, now: number): Promise<Html> => html`
  <div id="standing" hx-get="/doctor/standing" hx-trigger="every 5s" hx-swap="outerHTML">
    ${operatorsTable(health.operators(), now)}
    ${await figures(health)}
    ${membersTable(await health.members(), await health.elsewhere())}
  </div>`

/** The processes that share the database; nothing where it is one that cannot be shared. */
function membersTable(members: readonly Member[], refusals: readonly PeerBlock[]): Html {
  if (members.length === 0) return NOTHING
  return html`
    <section>
      <h2>Members</h2>
      <div class="scroll"><table>
        <thead><tr>
          <th scope="col">Member</th><th scope="col">Does</th><th scope="col">Egresses</th>
          <th scope="col">Version</th><th scope="col">Since</th><th scope="col">Last heard of</th>
        </tr></thead>
        <tbody>${members.map(
          one => html`
            <tr>
              <th scope="row">${one.name}</th><td>${doneBy(one)}</td>
              <td>${one.egresses.join(', ')}</td><td>${one.version}</td>
              <td>${time(one.joinedAt)}</td><td>${formatDuration(Math.max(0, one.quietMs))} ago</td>
            </tr>`,
        )}</tbody>
      </table></div>
      <p><small>All processes that work on this database. What one of them had in hand is given to the others when it
      has not been heard of for ten seconds, and it stands here no longer then.</small></p>
      ${refusals.length === 0 ? NOTHING : blockedOnPeers(refusals)}
    </section>`
}

/** A server that has no egress for lists was told `--work off`. */
function doneBy({ role, egresses }: Member): string {
  if (role === 'worker') return 'works'
  return egresses.length === 0 ? 'answers' : 'answers and works'
}

/** What is asked by other processes stands on no other page. */
const blockedOnPeers = (refusals: readonly PeerBlock[]): Html => html`
  <h3>Refusals of other egresses</h3>
  <ul>${refusals.slice(0, REFUSALS_SHOWN).map(
    ({ title, egress, since, until, answer }) => html`
      <li>${title} refuses the egress “${egress}” since ${time(since)}, and is not asked by it until
        ${time(until)}: “${replyOf(answer)}”.</li>`,
  )}</ul>
  ${refusals.length <= REFUSALS_SHOWN ? NOTHING : html`<p><small>And ${pluralize(refusals.length - REFUSALS_SHOWN, 'more refusal')}.</small></p>`}
  <p><small>Other egresses ask meanwhile, where they are not refused as well. Run “ev doctor” on the machine of that
  egress.</small></p>`

const REFUSALS_SHOWN = 20

/** What is under way, and how the process is. */
async function figures(health: HealthSource): Promise<Html> {
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
