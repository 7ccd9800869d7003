import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import { type ListedSession, listSessions } from '../../accounts/session-store.ts'
import { SECOND } from '../../platform/clock.ts'
import { startLoop } from '../../platform/loop.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { confirmed, sentForm } from '../page/form.ts'
import type { Html } from '../page/html.ts'
import { page } from '../page/layout.ts'
import { Refusal } from '../page/notice.ts'
import { table } from '../page/table.ts'
import { ago, statusBadge } from '../page/text.ts'
import { DASHBOARD_LOG } from '../telemetry.ts'
import { redirectWithNote } from './cookie.ts'
import { findReauthenticationFault, reauthenticationField } from './reauthenticate.ts'
import { endSession, may, userOf } from './signed-in.ts'

/** Lists the sessions of an account and ends them. */
export function sessionRoutes(deps: DashboardDeps): Hono<Env> {
  const { database, clock } = deps
  /** A key or a person without `keys:write` sees and ends only the own sessions. */
  async function visible(c: Context<Env>): Promise<readonly ListedSession[]> {
    const user = c.get('user')
    const all = await listSessions(database, user.accountId, clock.now())
    return may(user, 'keys:write') ? all : all.filter(({ keyId }) => keyId === user.keyId)
  }

  return new Hono<Env>()
    .get('/sessions', async c => sessionsPage(c, deps, await visible(c)))
    .post('/sessions/:id/end', async c => {
      const id = c.req.param('id')
      const sessions = await visible(c)
      if (!sessions.some(one => one.id === id)) throw notFound()
      const fault = await findReauthenticationFault(c, deps, await sentForm(c))
      if (fault !== null) return sessionsPage(c, deps, sessions, fault)
      if (!(await endSession(c, deps, id))) throw notFound()
      return redirectWithNote(c, '/sessions', 'Session ended.')
    })
}

const notFound = () => new Refusal(404, 'Session not found. It may have expired.')

const INTRO =
  'A session expires after twelve hours without activity, after seven days at the latest, and when its key is revoked or rotated or its person is removed.'

const sessionsPage = (
  c: Context<Env>,
  deps: DashboardDeps,
  sessions: readonly ListedSession[],
  fault?: string,
): Promise<Response> =>
  page(c, {
    title: 'Sessions',
    intro: INTRO,
    body: sessionTable(c, deps, sessions),
    problem: fault,
  })

const sessionTable = (c: Context<Env>, deps: DashboardDeps, rows: readonly ListedSession[]): Html =>
  table({
    caption: 'Dashboard sessions',
    rows,
    columns: [
      {
        label: 'Browser',
        kind: 'name',
        cell: ({ agent }) => html`<span title="${agent}">${browserName(agent)}</span>`,
      },
      { label: 'IP address', cell: ({ ip }) => ip },
      { label: 'Key or person', cell: ({ name }) => name },
      { label: 'Signed in', cell: ({ createdAt }) => ago(createdAt) },
      { label: 'Last used', cell: ({ lastSeenAt }) => ago(lastSeenAt) },
      { label: 'End', kind: 'action', cell: ({ id }) => endButton(c, deps, id) },
    ],
  })

const endButton = (c: Context<Env>, deps: DashboardDeps, id: string): Html =>
  id === c.get('user').sessionId
    ? statusBadge('ok', 'This session')
    : confirmed(c, {
        action: `/sessions/${id}/end`,
        label: 'End',
        question: 'The browser is signed out at once.',
        yes: 'End the session',
        fields: reauthenticationField(c, deps, { id: `current-${id}`, next: '/sessions' }),
      })

/** Formats a User-Agent as "Chrome 153 on Linux"; the tooltip has the original. */
function browserName(agent: string): string {
  const browser = BROWSERS.map(([name, pattern]) => [name, pattern.exec(agent)?.[1]] as const).find(
    ([, version]) => version !== undefined,
  )
  const system = SYSTEMS.find(([, pattern]) => pattern.test(agent))?.[0]
  if (browser === undefined) return agent === '' ? 'Unknown' : agent
  return `${browser[0]} ${browser[1]}${system === undefined ? '' : ` on ${system}`}`
}

/** Most specific first: browsers also include the names of others. */
const BROWSERS: readonly (readonly [name: string, version: RegExp])[] = [
  ['Edge', /Edg(?:A|iOS)?\/(\d+)/],
  ['Opera', /OPR\/(\d+)/],
  ['Firefox', /(?:Firefox|FxiOS)\/(\d+)/],
  ['Chrome', /(?:Headless)?(?:Chrome|CriOS)\/(\d+)/],
  ['Safari', /^(?=.*Safari).*?Version\/(\d+)/s],
]

const SYSTEMS: readonly (readonly [name: string, pattern: RegExp])[] = [
  ['Android', /Android/],
  ['iOS', /iPhone|iPad/],
  ['Windows', /Windows/],
  ['macOS', /Mac OS X/],
  ['Linux', /Linux/],
]

/** Delay until a stream ends after its session was ended in another browser. */
const POLL_INTERVAL_MS = 15 * SECOND

/** Ends a stream when the session ends: events of a long job would otherwise outlive it. */
export function whileSignedIn(
  c: Context<Env>,
  deps: DashboardDeps,
  body: ReadableStream<Uint8Array>,
): ReadableStream<Uint8Array> {
  const expired = new AbortController()
  const stop = () => void polling.stop()
  const polling = startLoop({
    failed: DASHBOARD_LOG.sessionCheckFailed,
    clock: deps.clock,
    log: deps.log,
    everyMs: POLL_INTERVAL_MS,
    startAfterMs: POLL_INTERVAL_MS,
    async run() {
      if ((await userOf(c, deps))?.lacksSecondFactor === false) return
      stop()
      expired.abort(new Error('the session has ended'))
    },
  })
  const transform = new TransformStream({ flush: stop, cancel: stop })
  return body.pipeThrough(transform, { signal: expired.signal })
}
