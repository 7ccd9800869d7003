import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import { endSession, type ListedSession, listSessions } from '../../accounts/session-store.ts'
import { write } from '../../db/database.ts'
import { SECOND } from '../../platform/clock.ts'
import { startLoop } from '../../platform/loop.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { form } from '../page/form.ts'
import { page } from '../page/layout.ts'
import { Refusal } from '../page/notice.ts'
import { time } from '../page/text.ts'
import { leaveNote } from './cookie.ts'
import { may, userOf } from './signed-in.ts'

/** Who is signed in to an account, and ending that. */
export function sessionRoutes({ database, clock }: DashboardDeps): Hono<Env> {
  /** A key that may not change others neither sees who came with them nor signs them out. */
  async function visible(c: Context<Env>): Promise<readonly ListedSession[]> {
    const user = c.get('user')
    const all = await listSessions(database, user.accountId, clock.now())
    return may(user, 'keys:write') ? all : all.filter(({ keyId }) => keyId === user.keyId)
  }

  return new Hono<Env>()
    .get('/sessions', async c => {
      return page(c, { title: 'Sessions', body: table(c, await visible(c)) })
    })
    .post('/sessions/:id/end', async c => {
      const { accountId } = c.get('user')
      const id = c.req.param('id')
      const isVisible = (await visible(c)).some(one => one.id === id)
      if (!isVisible || !(await write(database, trx => endSession(trx, accountId, id)))) {
        throw new Refusal(404, 'There is no such session: it may have ended by itself.')
      }
      leaveNote(c, 'The session is over.')
      return c.redirect('/sessions', 303)
    })
}

const table = (c: Context<Env>, sessions: readonly ListedSession[]) => html`
  <p>A session ends by itself after twelve hours without use, after seven days in any case, and when its key is revoked
  or rotated.</p>
  <div class="scroll"><table>
    <thead><tr><th>Browser</th><th>From</th><th>Key</th><th>Begun</th><th>Last used</th><th></th></tr></thead>
    <tbody>${sessions.map(
      one => html`
        <tr>
          <td title="${one.agent}">${browserName(one.agent)}</td><td>${one.ip}</td><td>${one.keyName}</td>
          <td>${time(one.createdAt)}</td><td>${time(one.lastSeenAt)}</td>
          <td>${
            one.id === c.get('user').sessionId
              ? 'this one'
              : form(c, `/sessions/${one.id}/end`, html`<button>End</button>`)
          }</td>
        </tr>`,
    )}</tbody>
  </table></div>`

/** “Chrome 153 on Linux”, as far as a browser tells; its own text stands in the title. */
function browserName(agent: string): string {
  const browser = BROWSERS.map(([name, found]) => [name, found.exec(agent)?.[1]] as const).find(
    ([, version]) => version !== undefined,
  )
  const system = SYSTEMS.find(([, found]) => found.test(agent))?.[0]
  if (browser === undefined) return agent === '' ? 'unknown' : agent
  return `${browser[0]} ${browser[1]}${system === undefined ? '' : ` on ${system}`}`
}

/** The more special first: each browser also calls itself by the names of others. */
const BROWSERS: readonly (readonly [name: string, version: RegExp])[] = [
  ['Edge', /Edg(?:A|iOS)?\/(\d+)/],
  ['Opera', /OPR\/(\d+)/],
  ['Firefox', /(?:Firefox|FxiOS)\/(\d+)/],
  ['Chrome', /(?:Headless)?(?:Chrome|CriOS)\/(\d+)/],
  ['Safari', /Version\/(\d+).*Safari/],
]

const SYSTEMS: readonly (readonly [name: string, found: RegExp])[] = [
  ['Android', /Android/],
  ['iOS', /iPhone|iPad/],
  ['Windows', /Windows/],
  ['macOS', /Mac OS X/],
  ['Linux', /Linux/],
]

/** Somebody who was signed out elsewhere sees no more after so long. */
const POLL_INTERVAL_MS = 15 * SECOND

/** Passes on what comes, for as long as the session lasts: what goes on for hours would else outlive it. */
export function whileSignedIn(
  c: Context<Env>,
  deps: DashboardDeps,
  body: ReadableStream<Uint8Array>,
): ReadableStream<Uint8Array> {
  const over = new AbortController()
  const end = () => void watch.stop()
  const watch = startLoop({
    ...{ name: 'the check of a dashboard session', clock: deps.clock, log: deps.log },
    ...{ everyMs: POLL_INTERVAL_MS, startAfterMs: POLL_INTERVAL_MS },
    async run() {
      if ((await userOf(c, deps)) !== null) return
      end()
      over.abort(new Error('the session is over'))
    },
  })
  return body.pipeThrough(new TransformStream({ flush: end, cancel: end }), { signal: over.signal })
}
