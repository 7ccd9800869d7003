import { type Context, Hono, type MiddlewareHandler } from 'hono'
import { except } from 'hono/combine'
import { html } from 'hono/html'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { isStorageError } from '../db/database.ts'
import { errorMessage } from '../platform/error.ts'
import { ApiProblem } from './api.ts'
import { assetRoutes } from './asset.ts'
import type { DashboardDeps, Env } from './deps.ts'
import { healthRoutes } from './health/health.ts'
import { keyRoutes } from './keys/keys.ts'
import { listRoutes } from './lists/lists.ts'
import { INTAKE } from './lists/upload.ts'
import { banners } from './page/banner.ts'
import type { Html } from './page/html.ts'
import { backLink, barePage, page, part } from './page/layout.ts'
import { notice, Refusal } from './page/notice.ts'
import { checkCsrf, shortForms } from './session/csrf.ts'
import { sessionRoutes } from './session/sessions.ts'
import { signInRoutes } from './session/sign-in.ts'
import { signedIn } from './session/signed-in.ts'
import { themeRoutes } from './session/theme.ts'
import { usageRoutes } from './usage.ts'
import { verifyRoutes } from './verify/verify.ts'
import { webhooksRoutes } from './webhooks/webhooks.ts'

/** The pages of `ev serve`, for people. Each room is a folder; what it asks of the service it asks by the API. */
export function createDashboard(deps: DashboardDeps): Hono<Env> {
  const router = new Hono<Env>({ strict: false })
  router.onError((error, c) => answerError(c, deps, error))
  for (const path of OPEN) router.use(path, pageHeaders(deps))
  for (const path of CLOSED) {
    router.use(path, pageHeaders(deps), signedIn(deps), banners(deps))
    router.use(path, except(isIntake, shortForms(), checkCsrf()))
  }
  router.get('/', c => c.redirect('/verify', 303))
  router.route('/', assetRoutes())
  router.route('/', signInRoutes(deps))
  router.route('/', sessionRoutes(deps))
  router.route('/', themeRoutes())
  router.route('/', webhooksRoutes(deps))
  router.route('/', usageRoutes(deps))
  router.route('/', healthRoutes(deps))
  router.route('/', verifyRoutes(deps))
  router.route('/', keyRoutes(deps))
  router.route('/', listRoutes(deps))
  return router
}

/** Pages for everybody. */
const OPEN = ['/', '/sign-in', '/welcome/*']
/** Pages for who is signed in; `/lists/*` is `/lists` too. */
const CLOSED = [
  ...['/verify/*', '/lists/*', '/keys/*', '/webhooks/*', '/usage/*', '/doctor/*'],
  ...['/sessions/*', '/sign-out', '/theme'],
]

/** Files come there, and are read by whoever takes them, who looks for the token too. */
const isIntake = ({ req }: Context) => req.method === 'POST' && req.path === INTAKE

/** Nothing from elsewhere, no script or style in the page, and in no frame: whatever foreign text should get into one. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

function pageHeaders({ settings }: DashboardDeps): MiddlewareHandler<Env> {
  const isSecure = settings.baseUrl.startsWith('https:')
  return async (c, next) => {
    // The API may be asked by any site; pages may not.
    const outgoing = c.env?.outgoing
    for (const name of ['Access-Control-Allow-Origin', 'Access-Control-Expose-Headers']) {
      if (outgoing?.headersSent === false) outgoing.removeHeader(name)
    }
    c.header('Content-Security-Policy', isSecure ? `${POLICY}; upgrade-insecure-requests` : POLICY)
    c.header('Cache-Control', 'no-store')
    c.header('Referrer-Policy', 'same-origin')
    c.header('X-Frame-Options', 'DENY')
    c.header('Cross-Origin-Opener-Policy', 'same-origin')
    c.header('Cross-Origin-Resource-Policy', 'same-origin')
    return next()
  }
}

/** Every fault is a sentence: as a page, or where htmx asks, as a part of one. */
async function answerError(
  c: Context<Env>,
  { log }: DashboardDeps,
  thrown: Error,
): Promise<Response> {
  const isAway = isStorageError(thrown)
  const error = isAway ? new Refusal(503, AWAY) : thrown
  const isKnown = error instanceof Refusal || error instanceof ApiProblem
  if (!isKnown || isAway) {
    log.error('a page failed', { requestId: c.get('requestId'), why: errorMessage(thrown) })
  }
  const status = (isKnown ? error.status : 500) as ContentfulStatusCode
  const sentence = isKnown ? remedied(error) : failure(c.get('requestId'))
  const body = notice('bad', sentence)
  if (c.req.header('HX-Request') === 'true') return aboveAll(c, body, status)
  const title = TITLES[status] ?? 'That did not work'
  if (status === 503) {
    c.header('Retry-After', RETRY_S)
    // What every page has would fail as well, and take its time.
    return barePage(c, { title, body: html`${body} ${retryNow(c)}`, status })
  }
  // What failed may be what every page has.
  if (!isKnown || c.get('user') === undefined) return barePage(c, { title, body, status })
  return page(c, { title, body: html`${body} ${backLink(c)}`, status })
}

const TITLES: Readonly<Record<number, string>> = {
  ...{ 403: 'Not allowed', 404: 'Not found', 503: 'Not now' },
}

const AWAY =
  'ev cannot reach its database now, or store anything in it. Nothing of yours is lost, and you stay signed in: try again in a moment.'
const RETRY_S = '5'

/** What was sent is still in the form of the page before. */
const retryNow = ({ req }: Context) =>
  req.method === 'GET'
    ? html`<p><a class="button" href="${req.path}">Try again</a></p>`
    : html`<p>What you sent was not taken: go back and send it again.</p>`

/** As a note above the page: what was to be changed stays as it was, and can be tried again. */
function aboveAll(c: Context<Env>, body: Html, status: ContentfulStatusCode) {
  c.header('HX-Retarget', '#notes')
  c.header('HX-Reswap', 'innerHTML')
  c.header('HX-Reselect', '.notice')
  return part(c, body, status)
}

/** Of a key that may not do something its owner should know how to get one that may. */
function remedied(error: Refusal | ApiProblem): string {
  if (!(error instanceof ApiProblem) || error.code !== 'insufficient_scope') return error.message
  return `${error.message.replace(/\.$/, '')}, so this cannot be shown or done here. Sign in with a key that has it, or give it to this one under Keys.`
}

const failure = (requestId: string) =>
  html`Something inside ev failed. Nothing of yours is lost; try again, and if it stays so, tell whoever runs the
    service this id: ${requestId}`
