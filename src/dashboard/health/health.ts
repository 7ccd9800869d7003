import type { Context, MiddlewareHandler } from 'hono'
import { Hono } from 'hono'
import { html } from 'hono/html'
import type { DashboardDeps, Env } from '../deps.ts'
import { form } from '../page/form.ts'
import type { Html } from '../page/html.ts'
import { page, part } from '../page/layout.ts'
import { Refusal } from '../page/refusal.ts'
import { leaveNote } from '../session/cookie.ts'
import { findings } from './findings.ts'
import { membersTable } from './members.ts'
import { operatorsTable } from './operator-table.ts'
import type { HealthSource } from './source.ts'
import { figures } from './status.ts'

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
