import { type Context, Hono, type MiddlewareHandler } from 'hono'
import { html } from 'hono/html'
import type { Member } from '../../cluster/members.ts'
import type { MachineStatus } from '../../engine/machine-status.ts'
import { formatBytes, formatDuration, pluralize } from '../../platform/format.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { form } from '../page/form.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { page, part } from '../page/layout.ts'
import { Refusal } from '../page/notice.ts'
import { card, facts } from '../page/parts.ts'
import { table } from '../page/table.ts'
import { ago, time } from '../page/text.ts'
import { redirectWithNote } from '../session/cookie.ts'
import { findings } from './findings.ts'
import { machineNotice } from './machine.ts'
import { operatorsTable, replyOf } from './operator-table.ts'
import type { HealthSource, PeerBlock } from './source.ts'

/** The Health page for admins: operators, queues, cluster members and the doctor checks. */
export function healthRoutes({ health, clock }: DashboardDeps): Hono<Env> {
  return new Hono<Env>()
    .use('/doctor/*', adminsOnly())
    .get('/doctor', async c => {
      const body = html`${await status(health, clock.now())} ${findings(health.doctorChecks())}`
      return page(c, { title: 'Health', actions: rerunButton(c), body })
    })
    .get('/doctor/status', async c => part(c, await status(health, clock.now())))
    .get('/doctor/findings', c => part(c, findings(health.doctorChecks())))
    .post('/doctor/examine', c => {
      health.rerunChecks()
      return redirectWithNote(c, '/doctor', health.doctorChecks().isRunning ? STARTED : TOO_SOON)
    })
}

const STARTED = 'Running the checks.'
const TOO_SOON =
  'The checks ran less than a minute ago. Each run queries mail servers and blocklists. Try again in a minute.'

function adminsOnly(): MiddlewareHandler<Env> {
  return (c, next) => {
    const { isAdmin, accountName } = c.get('user')
    if (isAdmin) return next()
    throw new Refusal(
      403,
      `Health is only for administrators, and the account "${accountName}" is not one. To grant access, run on the server: ev accounts set-admin`,
    )
  }
}

const rerunButton = (c: Context<Env>): Html =>
  form(c, '/doctor/examine', html`<button>Run checks</button>`)

/** Renders the part of the page that refreshes itself. */
const status = async (health: HealthSource, now: number): Promise<Html> => html`
  <div id="status" hx-get="/doctor/status" hx-trigger="every 5s" hx-swap="outerHTML">
    ${machineNotice({ problems: newProblems(health.machine()) }, SEE_BELOW)}
    ${operatorsTable(health.operators(), now)}
    ${await figures(health)}
    ${membersTable(await health.members(), await health.peerBlocks())}
  </div>`

/** The table of operators shows the others. */
const newProblems = ({ problems }: MachineStatus) => problems.filter(({ since }) => since === null)

const SEE_BELOW = html`See the checks below for the fix.`

/** Renders the processes that share the database; nothing on SQLite. */
function membersTable(members: readonly Member[], refusals: readonly PeerBlock[]): Html {
  if (members.length === 0) return NOTHING
  return html`
    <section>
      <h2>Members</h2>
      ${table({
        caption: 'Processes that share the database',
        rows: members,
        columns: [
          { label: 'Member', kind: 'name', cell: ({ name }) => name },
          { label: 'Role', cell: roleText },
          { label: 'Egresses', cell: ({ egresses }) => egresses.join(', ') },
          { label: 'Version', cell: ({ version }) => version },
          { label: 'Since', cell: ({ joinedAt }) => ago(joinedAt) },
          {
            label: 'Last heartbeat',
            cell: ({ quietMs }) => `${formatDuration(Math.max(0, quietMs))} ago`,
          },
        ],
      })}
      <p><small>All processes that share this database. A member without a heartbeat for ten seconds expires: it is
      removed from this list and its work is released to the others.</small></p>
      ${refusals.length === 0 ? NOTHING : blockedOnPeers(refusals)}
    </section>`
}

/** A server without egresses runs with `--work off`. */
function roleText({ role, egresses }: Member): string {
  if (role === 'worker') return 'Worker'
  return egresses.length === 0 ? 'Server' : 'Server and worker'
}

/** Renders blocks of the egresses of other processes; workers have no page of their own. */
const blockedOnPeers = (refusals: readonly PeerBlock[]): Html => html`
  <h3>Blocks of other egresses</h3>
  <ul>${refusals.slice(0, REFUSALS_SHOWN).map(
    ({ title, egress, since, until, answer }) => html`
      <li>${title} has been blocking the egress "${egress}" since ${time(since)}; paused until
        ${time(until)}: "${replyOf(answer)}".</li>`,
  )}</ul>
  ${refusals.length <= REFUSALS_SHOWN ? NOTHING : html`<p><small>And ${pluralize(refusals.length - REFUSALS_SHOWN, 'more block')}.</small></p>`}
  <p><small>Egresses that are not blocked take over. To find the cause, run <code>ev doctor</code> on the machine of the
  blocked egress.</small></p>`

const REFUSALS_SHOWN = 20

/** Renders queue, webhook and process metrics. */
async function figures(health: HealthSource): Promise<Html> {
  const { jobs, waiting, running } = health.queue()
  const [workers, process] = await Promise.all([health.workers(), health.process()])
  const { concurrency, requestsInFlight, deliveriesOpen, noticesOpen } = workers
  return html`
    <div class="grid">
      ${card({
        title: 'Lists',
        body: html`${facts([
          ['Active', pluralize(jobs, 'job')],
          ['Running', pluralize(running, 'task')],
          ['Queued', pluralize(waiting, 'task')],
        ])}
        <p><small>A task is one connection to a provider, or one list being imported. Lists use at most
        ${pluralize(concurrency, 'connection')} at the same time.</small></p>`,
      })}
      ${card({
        title: 'Webhooks',
        body: facts([
          ['In flight', pluralize(requestsInFlight, 'request')],
          ['Pending', pluralize(deliveriesOpen, 'delivery')],
          ['Emails to send', pluralize(noticesOpen, 'alert')],
        ]),
      })}
      ${card({
        title: 'Process',
        body: facts([
          ['Version', process.version],
          ['Uptime', formatDuration(process.upMs)],
          ['Memory', formatBytes(process.memoryBytes)],
          ['Database', sizeOr(process.databaseBytes)],
          ['Free on disk', sizeOr(process.freeBytes)],
        ]),
      })}
    </div>`
}

const sizeOr = (bytes: number | null) => (bytes === null ? 'Unknown' : formatBytes(bytes))
