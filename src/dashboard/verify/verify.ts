import type { Context } from 'hono'
import { Hono } from 'hono'
import { html } from 'hono/html'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { DashboardDeps, Env } from '../deps.ts'
import { page, part } from '../page/layout.ts'
import { notice } from '../page/notice.ts'
import { may } from '../session/signed-in.ts'
import { optionsForm } from './ask-form.ts'
import { changesBody, liveChanges } from './live.ts'
import { after, IDLE, type Progress, started } from './progress.ts'
import { recent } from './recent.ts'
import { steps } from './rows.ts'
import { verifyWithEvents } from './verify-events.ts'
import { EMPTY_FORM, readVerifyForm } from './verify-options.ts'

/** One address, answered step by step as it happens; without scripts the whole answer as a page. */
export function verifyRoutes(_parts: DashboardDeps): Hono<Env> {
  return new Hono<Env>()
    .get('/verify', c => verifyPage(c, IDLE, c.req.query('email')))
    .get('/verify/recent', async c => part(c, await recent(c)))
    .post('/verify', async c => {
      const form = await readVerifyForm(c)
      let progress = started(form)
      for await (const events of verifyWithEvents(c.get('api'), form))
        progress = after(progress, events)
      return verifyPage(c, progress)
    })
    .post('/verify/steps', async c => {
      const form = await readVerifyForm(c)
      return c.body(
        changesBody(gone => liveChanges(c, form, gone)),
        200,
        {
          'Content-Type': 'application/x-ndjson; charset=utf-8',
          // nginx would else keep what is small until there is more.
          'X-Accel-Buffering': 'no',
        },
      )
    })
}

async function verifyPage(c: Context<Env>, progress: Progress, email = ''): Promise<Response> {
  const { form, error } = progress
  if (!may(c.get('user'), 'verify:single')) return page(c, { title: 'Verify', body: notAllowed(c) })
  const body = html`
    <p>Can this address receive mail? Its mail server is asked, and no mail is sent.</p>
    ${optionsForm(c, form ?? { ...EMPTY_FORM, email })}
    <p id="said" class="unseen" role="status"></p>
    <section aria-labelledby="steps-title">
      <h2 id="steps-title">Step by step</h2>
      ${steps(c, progress)}
    </section>
    ${await recent(c)}`
  const status = (error?.status ?? 200) as ContentfulStatusCode
  return page(c, { title: 'Verify', body, scripts: ['verify.js'], status })
}

const notAllowed = (c: Context<Env>) =>
  notice(
    'info',
    `The key “${c.get('user').keyName}” lacks the scope verify:single, so nothing can be verified with it here. Sign in with a key that has it, or give it to this one under Keys.`,
  )
