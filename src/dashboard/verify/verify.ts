import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { HistoryPage } from '../../client/types.ts'
import { VERDICT_BY_REASON } from '../../engine/verdict/reason.ts'
import { toClass } from '../../engine/verdict/verdict.ts'
import { ApiProblem } from '../api.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { page, part } from '../page/layout.ts'
import { notice, reasonCell } from '../page/notice.ts'
import { badge, time } from '../page/text.ts'
import { may } from '../session/signed-in.ts'
import { optionsForm, verifyForm } from './ask-form.ts'
import { after, IDLE, isDone, type Progress, started } from './progress.ts'
import { rows, steps } from './rows.ts'
import { spokenVerdict } from './verdict.ts'
import { EMPTY_FORM, readVerifyForm, type VerifyForm, verifyWithEvents } from './verify-events.ts'

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

const SHOWN = 10
/** By then the books, which write in groups, have what was verified. */
const WRITTEN_MS = 400

/** What was verified one by one of late, to be verified again by one click. A script has it brought up to date. */
async function recent(c: Context<Env>): Promise<Html> {
  if (!may(c.get('user'), 'account:read')) return NOTHING
  return html`
    <section id="recent" hx-get="/verify/recent" hx-trigger="verified from:body delay:${WRITTEN_MS}ms" hx-swap="outerHTML">
      <h2>Verified one by one of late</h2>
      ${await table(c)}
    </section>`
}

async function table(c: Context<Env>): Promise<Html> {
  const found = await latest(c)
  if (found instanceof ApiProblem) return notice('warn', found.message)
  if (found.length === 0) {
    return html`<p>Nothing yet: what you verify here, or by the API, is listed here afterwards.</p>`
  }
  return html`
    <div class="scroll"><table>
      <thead><tr>
        <th scope="col">Address</th><th scope="col">Class</th><th scope="col">Reason</th><th scope="col">When</th>
        <th scope="col"><span class="unseen">Again</span></th>
      </tr></thead>
      <tbody>${found.map(one => line(c, one))}</tbody>
    </table></div>`
}

type Item = HistoryPage['data']['items'][number]

/** The page is there without it, so that a limit does not take it away. */
async function latest(c: Context<Env>): Promise<readonly Item[] | ApiProblem> {
  try {
    const query = { source: 'single', limit: SHOWN }
    return (await c.get('api').ask<HistoryPage>('/v1/history', { query })).data.items
  } catch (error) {
    if (error instanceof ApiProblem) return error
    throw error
  }
}

const line = (c: Context<Env>, { email, reason, created_at: at }: Item) => html`
  <tr>
    <td class="long">${email}</td><td>${badge(toClass(VERDICT_BY_REASON[reason]))}</td><td>${reasonCell(reason)}</td><td>${time(at)}</td>
    <td>${verifyForm(c, { email, sandbox: false, again: false }, html`Again<span class="unseen"> for ${email}</span>`)}</td>
  </tr>`

/** What is to be changed in the page. */
type Change =
  /** A row, in the place of the one with its id. */
  | { readonly html: string }
  /** A line more in the dialogue. */
  | { readonly line: string }
  /** It is over, and this is to be read out. */
  | { readonly over: string }

/** Asks about an address; gives the changes of the page as they come, so that its markup is written in one place. */
async function* liveChanges(
  c: Context<Env>,
  form: VerifyForm,
  gone: AbortSignal,
): AsyncGenerator<Change> {
  let progress = started(form)
  let shown = await rendered(c, progress)
  yield* shown.map(one => ({ html: one }))
  for await (const events of verifyWithEvents(c.get('api'), form, gone)) {
    progress = after(progress, events)
    const isLine = events.event === 'step' && events.data.step === 'line'
    if (isLine) yield { line: events.data.text }
    const now = await rendered(c, progress)
    // A dialogue has many lines: it is not sent anew for each.
    yield* now
      .filter((one, n) => one !== shown[n] && !(isLine && one.includes(DIALOGUE)))
      .map(one => ({ html: one }))
    shown = now
    if (isDone(progress)) yield { over: spoken(progress) }
  }
}

const DIALOGUE = 'id="step-dialogue"'

const rendered = (c: Context<Env>, progress: Progress): Promise<string[]> =>
  Promise.all(rows(c, progress).map(async row => String(await row)))

function spoken({ result, error }: Progress): string {
  if (result === null) return error?.error ?? ''
  return spokenVerdict(result, toClass(VERDICT_BY_REASON[result.reason]))
}

/** One JSON on each line. The signal that `changes` is given aborts as soon as nobody reads any more. */
export function changesBody(
  changes: (gone: AbortSignal) => AsyncIterator<Change>,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  const gone = new AbortController()
  const iterator = changes(gone.signal)
  return new ReadableStream(
    {
      async pull(controller) {
        const { value, done } = await iterator.next()
        if (done) controller.close()
        else controller.enqueue(encoder.encode(`${JSON.stringify(value)}\n`))
      },
      cancel: () => gone.abort(),
    },
    { highWaterMark: 0 },
  )
}
