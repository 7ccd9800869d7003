import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { HistoryPage } from '../../client/types.ts'
import { ApiProblem } from '../api.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { page, part } from '../page/layout.ts'
import { notice, reasonCell } from '../page/notice.ts'
import { table } from '../page/table.ts'
import { ACTION_NAMES, ago, badge, NO_ADDRESS } from '../page/text.ts'
import { explainMissingScope, may } from '../session/signed-in.ts'
import { classOf } from '../usage.ts'
import { outcome, parts } from './rows.ts'
import { optionsForm, spokenVerdict, verifyForm } from './verdict.ts'
import {
  after,
  EMPTY_FORM,
  IDLE,
  isDone,
  type Progress,
  readVerifyForm,
  started,
  type VerifyForm,
  verifyWithEvents,
} from './verify-events.ts'

/**
 * The Verify page: streams the steps of a verification, or renders the result without JavaScript.
 */
export function verifyRoutes(_deps: DashboardDeps): Hono<Env> {
  return new Hono<Env>()
    .get('/verify', c => verifyPage(c, IDLE, c.req.query('email')))
    .get('/verify/recent', async c => part(c, await recent(c)))
    .post('/verify', async c => {
      const form = await readVerifyForm(c)
      let progress = started(form)
      for await (const event of verifyWithEvents(c.get('api'), form))
        progress = after(progress, event)
      return verifyPage(c, progress)
    })
    .post('/verify/steps', async c => {
      const form = await readVerifyForm(c)
      return c.body(
        changesBody(gone => liveChanges(c, form, gone)),
        200,
        {
          'Content-Type': 'application/x-ndjson; charset=utf-8',
          // Disables the response buffering of nginx.
          'X-Accel-Buffering': 'no',
        },
      )
    })
}

async function verifyPage(c: Context<Env>, progress: Progress, email = ''): Promise<Response> {
  const { form, error } = progress
  if (!may(c.get('user'), 'verify:single'))
    return page(c, { title: 'Verify an address', body: notAllowed(c) })
  const body = html`
    ${optionsForm(c, form ?? { ...EMPTY_FORM, email })}
    <p id="said" class="unseen" role="status"></p>
    ${outcome(c, progress)}
    ${await recent(c)}`
  const status = (error?.status ?? 200) as ContentfulStatusCode
  const intro = 'ev asks the mail server whether it accepts the address. No email is sent.'
  return page(c, { title: 'Verify an address', intro, body, scripts: ['verify.js'], status })
}

const notAllowed = (c: Context<Env>) =>
  notice(
    'info',
    explainMissingScope(c.get('user'), 'verify:single', 'verifying an address requires'),
  )

const SHOWN = 10
/** Delay before the refresh: the usage ledger writes in batches. */
const LEDGER_DELAY_MS = 400

/** Renders the recent single verifications; htmx refreshes them after each verification. */
async function recent(c: Context<Env>): Promise<Html> {
  if (!may(c.get('user'), 'account:read')) return NOTHING
  return html`
    <section id="recent" hx-get="/verify/recent" hx-trigger="verified from:body delay:${LEDGER_DELAY_MS}ms" hx-swap="outerHTML settle:0ms">
      <h2>Recent verifications</h2>
      ${await checks(c)}
    </section>`
}

async function checks(c: Context<Env>): Promise<Html> {
  const found = await latest(c)
  if (found instanceof ApiProblem) return notice('warn', found.message)
  if (found.length === 0) {
    return html`<p>No verifications yet. Addresses that you verify here or through the API are listed here.</p>`
  }
  return table({
    caption: 'Recent single verifications, newest first',
    columns: [
      { label: 'Address', kind: 'name', cell: ({ email }) => email || NO_ADDRESS },
      { label: 'Class', cell: one => badge(classOf(one)) },
      { label: 'Reason', cell: ({ reason }) => reasonCell(reason) },
      { label: 'Action', cell: ({ action }) => ACTION_NAMES[action] },
      { label: 'Time', cell: one => ago(one.created_at) },
      { label: 'Re-verify', kind: 'action', cell: one => again(c, one) },
    ],
    rows: found,
  })
}

type Item = HistoryPage['data']['items'][number]

/** Returns an API error, such as a rate limit, instead of failing the whole page. */
async function latest(c: Context<Env>): Promise<readonly Item[] | ApiProblem> {
  try {
    const query = { source: 'single', limit: SHOWN }
    return (await c.get('api').ask<HistoryPage>('/v1/history', { query })).data.items
  } catch (error) {
    if (error instanceof ApiProblem) return error
    throw error
  }
}

const again = (c: Context<Env>, { email }: Item): Html =>
  verifyForm(
    c,
    { email, sandbox: false, again: false },
    html`<span>Re-verify<span class="unseen"> ${email}</span></span>`,
  )

/** An update of the page. */
type Change =
  /** Replaces the element with the same ID. */
  | { readonly html: string }
  /** Appends a line to the dialogue. */
  | { readonly line: string }
  /** Ends the stream with the text for screen readers. */
  | { readonly over: string }

/** Verifies an address and yields updates of the page, rendered on the server. */
async function* liveChanges(
  c: Context<Env>,
  form: VerifyForm,
  gone: AbortSignal,
): AsyncGenerator<Change> {
  let progress = started(form)
  let shown = await rendered(c, progress)
  yield* shown.map(one => ({ html: one }))
  for await (const event of verifyWithEvents(c.get('api'), form, gone)) {
    progress = after(progress, event)
    const isLine = event.event === 'step' && event.data.step === 'line'
    if (isLine) yield { line: event.data.text }
    const next = await rendered(c, progress)
    // A line is appended: the whole dialogue is not sent again for each.
    yield* next
      .filter((one, n) => one !== shown[n] && !(isLine && one.includes(DIALOGUE)))
      .map(one => ({ html: one }))
    shown = next
    if (isDone(progress)) yield { over: spoken(progress) }
  }
}

const DIALOGUE = 'id="step-dialogue"'

const rendered = (c: Context<Env>, progress: Progress): Promise<string[]> =>
  Promise.all(parts(c, progress).map(async part => String(await part)))

function spoken({ result, error }: Progress): string {
  if (result === null) return error?.error ?? ''
  return spokenVerdict(result)
}

/** Encodes updates as NDJSON. The signal passed to `changes` aborts when the client disconnects. */
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
