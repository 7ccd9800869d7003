import { type Context, Hono, type MiddlewareHandler } from 'hono'
import { except } from 'hono/combine'
import { html } from 'hono/html'
import { matchedRoutes } from 'hono/route'
import { METHOD_NAME_ALL } from 'hono/router'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { isStorageError } from '../db/database.ts'
import { errorMessage } from '../platform/error.ts'
import { writeLog } from '../platform/log.ts'
import { accountRoutes } from './account.ts'
import { ApiProblem } from './api.ts'
import { ASSETS, assetRoutes, FORM_SCRIPT } from './asset.ts'
import { auditRoutes } from './audit.ts'
import type { DashboardDeps, Env } from './deps.ts'
import { DOCS, docsRoutes } from './docs.ts'
import { feedbackRoutes } from './feedback/feedback.ts'
import { healthRoutes } from './health/health.ts'
import { keyRoutes } from './keys.ts'
import { listRoutes } from './lists/lists.ts'
import { INTAKE } from './lists/upload.ts'
import { overviewRoutes } from './overview.ts'
import { alerts } from './page/banner.ts'
import { type Html, isHtmx } from './page/html.ts'
import { backLink, barePage, page, part } from './page/layout.ts'
import { notice, Refusal } from './page/notice.ts'
import { invitationRoutes } from './people/invitation.ts'
import { peopleRoutes } from './people/people.ts'
import { profileRoutes } from './people/profile.ts'
import { checkCsrf, shortForms } from './session/csrf.ts'
import { oidcRoutes } from './session/oidc.ts'
import { sessionRoutes } from './session/sessions.ts'
import { signInRoutes, themeRoutes } from './session/sign-in.ts'
import {
  requireSecondFactor,
  SECOND_FACTOR,
  scopeRemedy,
  sessionOrigin,
  setUser,
  signedIn,
} from './session/signed-in.ts'
import { DASHBOARD_LOG } from './telemetry.ts'
import { usageRoutes } from './usage.ts'
import { verifyRoutes } from './verify/verify.ts'
import { webhooksRoutes } from './webhooks/webhooks.ts'

/**
 * Creates the dashboard of `ev serve`: a folder for each section, which calls the API for its data.
 */
export function createDashboard(deps: DashboardDeps): Hono<Env> {
  const router = new Hono<Env>({ strict: false })
  router.onError((error, c) => answerError(c, deps, error))
  router.use(except(isFile, pageHeaders(deps)))
  router.use(except(isPublic, signedIn(deps), alerts(deps)))
  router.use(except([isPublic, isSetup], requireSecondFactor()))
  router.use(except(isPublic, noteForbidden(deps)))
  router.use(except([isPublic, isIntake], shortForms(), checkCsrf()))
  router.get('/', c => c.redirect('/overview', 303))
  router.route('/', assetRoutes())
  router.route('/', signInRoutes(deps))
  router.route('/', oidcRoutes(deps))
  router.route('/', invitationRoutes(deps))
  router.route('/', profileRoutes(deps))
  router.route('/', peopleRoutes(deps))
  router.route('/', sessionRoutes(deps))
  router.route('/', themeRoutes())
  router.route('/', webhooksRoutes(deps))
  router.route('/', overviewRoutes(deps))
  router.route('/', usageRoutes(deps))
  router.route('/', feedbackRoutes(deps))
  router.route('/', accountRoutes())
  router.route('/', auditRoutes())
  router.route('/', healthRoutes(deps))
  router.route('/', verifyRoutes(deps))
  router.route('/', keyRoutes(deps))
  router.route('/', docsRoutes(deps))
  router.route('/', listRoutes(deps))
  router.use(notFoundPage(deps))
  return router
}

/** Routes that need no session; every other route of the dashboard requires one. */
const PUBLIC: ReadonlySet<string> = new Set([
  ...['/', '/sign-in', '/sign-in/code', '/invitation/:token', '/welcome/:token'],
  ...[
    '/sign-in/oidc',
    '/sign-in/oidc/callback',
    '/sign-in/oidc/account',
    '/invitation/:token/oidc',
  ],
  ...[ASSETS, FORM_SCRIPT, ...DOCS],
])

/** Files of pages: their responses are cached, and have no headers of pages. */
const FILES: ReadonlySet<string> = new Set([ASSETS, FORM_SCRIPT])

/** Returns the patterns of the routes that answer a request; none for an unknown path. */
const answeringRoutes = (c: Context) =>
  matchedRoutes(c)
    .filter(({ method }) => method !== METHOD_NAME_ALL)
    .map(({ path }) => path)

const isPublic = (c: Context) => answeringRoutes(c).every(path => PUBLIC.has(path))
const isFile = (c: Context) => answeringRoutes(c).every(path => FILES.has(path))

/** Routes of a person who must set up a second factor. */
const SETUP: ReadonlySet<string> = new Set([SECOND_FACTOR, '/sign-out', '/theme'])

const isSetup = (c: Context) => answeringRoutes(c).every(path => SETUP.has(path))

/** The upload route streams its body and checks the CSRF token itself. */
const isIntake = ({ req }: Context) => req.method === 'POST' && req.path === INTAKE

/** Adds requests that a page refuses to the audit log; the API has added those that it refused. */
function noteForbidden({ refusedRequests }: DashboardDeps): MiddlewareHandler<Env> {
  return async (c, next) => {
    await next()
    if (c.res.status !== 403 || c.error instanceof ApiProblem) return
    const { accountId } = c.get('user')
    const name = `${c.req.method} ${answeringRoutes(c).at(-1)}: ${c.res.status}`
    await refusedRequests.add({ accountId, origin: sessionOrigin(c), name, id: null })
  }
}

/**
 * Second line of defense against injected markup: no other origin, no inline script or style, no
 * frame.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "font-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

/**
 * Renders a page for an unknown path that a browser opens, with the sidebar for a signed-in user; the
 * API answers other requests.
 */
function notFoundPage(deps: DashboardDeps): MiddlewareHandler<Env> {
  const [headers, findAlerts] = [pageHeaders(deps), alerts(deps)]
  return (c, next) => {
    const isPage = c.req.method === 'GET' && c.req.header('Accept')?.includes('text/html')
    if (!isPage || /^\/(v1|assets)\//.test(c.req.path)) return next()
    const missing = {
      title: 'Page not found',
      status: 404 as const,
      body: html`
        <p>This page doesn't exist. It may have been moved or deleted.</p>
        <p><a class="button primary" href="/">Go to the overview</a></p>`,
    }
    return headers(c, async () => {
      await findAlerts(c, async () => {
        const hasFrame = (await setUser(c, deps)) && !c.get('user').lacksSecondFactor
        c.res = await (hasFrame ? page(c, missing) : barePage(c, missing))
      })
    })
  }
}

function pageHeaders({ settings }: DashboardDeps): MiddlewareHandler<Env> {
  const isSecure = settings.baseUrl.startsWith('https:')
  return async (c, next) => {
    // CORS is for the API only, not for pages.
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

/** Renders an error as a page, or as a fragment for a request of htmx. */
async function answerError(
  c: Context<Env>,
  { log }: DashboardDeps,
  thrown: Error,
): Promise<Response> {
  const isUnavailable = isStorageError(thrown)
  const error = isUnavailable ? new Refusal(503, UNAVAILABLE) : thrown
  const isKnown = error instanceof Refusal || error instanceof ApiProblem
  if (!isKnown || isUnavailable) {
    writeLog(log, DASHBOARD_LOG.pageFailed, {
      requestId: c.get('requestId'),
      why: errorMessage(thrown),
    })
  }
  const status = (isKnown ? error.status : 500) as ContentfulStatusCode
  const sentence = isKnown ? withRemedy(c, error) : internalError(c.get('requestId'))
  const body = notice('bad', sentence)
  if (isHtmx(c)) return asNotice(c, body, status)
  const title = TITLES[status] ?? 'Something went wrong'
  if (status === 503) {
    c.header('Retry-After', RETRY_S)
    // The frame of a page needs the database too and would wait for it.
    return barePage(c, { title, body: html`${body} ${retryNow(c)}`, status })
  }
  // The frame of the page may be what failed.
  if (!isKnown || c.get('user') === undefined) return barePage(c, { title, body, status })
  return page(c, { title, body: html`${body} ${backLink(c)}`, status })
}

const TITLES: Readonly<Record<number, string>> = {
  403: 'Not allowed',
  404: 'Not found',
  503: 'Temporarily unavailable',
}

const UNAVAILABLE =
  'ev cannot read from or write to its database. Your data is safe and you stay signed in. Try again in a moment.'
const RETRY_S = '5'

/** A submitted form keeps its content on the previous page. */
const retryNow = ({ req }: Context) =>
  req.method === 'GET'
    ? html`<p><a class="button" href="${req.path}">Try again</a></p>`
    : html`<p>Your form was not saved. Go back and send it again.</p>`

/** Shows the error above the page: its target stays unchanged and can be retried. */
function asNotice(c: Context<Env>, body: Html, status: ContentfulStatusCode) {
  c.header('HX-Retarget', '#notes')
  c.header('HX-Reswap', 'innerHTML')
  c.header('HX-Reselect', '.notice')
  return part(c, body, status)
}

/** Adds to a missing scope how to get a key that has it; the API calls a list a job. */
function withRemedy(c: Context<Env>, error: Refusal | ApiProblem): string {
  if (!(error instanceof ApiProblem)) return error.message
  if (error.code === 'not_found' && c.req.path.startsWith('/lists/')) {
    return 'List not found. It may have been deleted.'
  }
  const user = c.get('user')
  return error.code === 'insufficient_scope' && user !== undefined
    ? `${error.message} ${scopeRemedy(user)}`
    : error.message
}

const internalError = (requestId: string) =>
  html`Internal error. Your data is safe. Try again; if the error persists, send this request ID to the
    administrator: ${requestId}`
