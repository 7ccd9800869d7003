import type { Env } from '../../src/api/context.ts'
import { createDashboard } from '../../src/dashboard/dashboard.ts'
import type { ApiBindings, DashboardDeps } from '../../src/dashboard/deps.ts'
import type { HealthSource } from '../../src/dashboard/health/source.ts'
import { type FirstKeys, firstKeys } from '../../src/dashboard/session/setup.ts'
import { idleHealth } from './idle-health.ts'
import { failOnUnknownNames } from './known-names.ts'
import { instantPasswords } from './people.ts'
import { createTestService } from './service.ts'

type Options = Parameters<typeof createTestService>[0] & {
  readonly health?: Partial<HealthSource>
  /** Connects the dashboard with an identity provider. */
  readonly identityProvider?: (
    deps: Pick<DashboardDeps, 'clock' | 'random' | 'log'>,
  ) => DashboardDeps['identityProvider']
  /** False starts without a session. */
  readonly signIn?: boolean
}

/** A response with its text. */
export type Answer = {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

export type Fields = Readonly<Record<string, string | readonly string[]>>

/**
 * Creates the dashboard on top of the API, without a port and a browser, signed in with a key with
 * all scopes.
 */
export async function createTestDashboard({
  health,
  identityProvider = () => null,
  signIn: isSignedIn = true,
  ...given
}: Options = {}) {
  const base = await createTestService(given)
  const { service, app, key } = base
  const keys: FirstKeys = firstKeys(service.clock, service.random)
  const pages = createDashboard({
    clock: service.clock,
    random: service.random,
    log: service.log,
    firstKeys: keys,
    refusedRequests: service.refusedRequests,
    secretBox: service.secretBox,
    passwords: instantPasswords(),
    identityProvider: identityProvider(service),
    database: service.database,
    app: {
      fetch: failOnUnknownNames((request: Request, bindings: ApiBindings) =>
        app.fetch(request, bindings as Env['Bindings']),
      ),
    },
    settings: service.settings,
    disk: service.disk,
    limits: service.limits,
    health: { ...idleHealth(), ...health },
  })
  app.route('/', pages)
  const cookies = new Map<string, string>()
  /** CSRF tokens by cookies. */
  const tokens = new Map<string, string>()

  /** Sends a request as a browser at 192.0.2.1 with its cookies. */
  async function fetch(path: string, init: RequestInit & { ip?: string } = {}): Promise<Response> {
    const { ip = '192.0.2.1', ...rest } = init
    const headers = new Headers(init.headers)
    const jar = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    if (jar !== '' && !headers.has('Cookie')) headers.set('Cookie', jar)
    if (!headers.has('Sec-Fetch-Site')) headers.set('Sec-Fetch-Site', 'same-origin')
    // The bindings of Node for a request over HTTP/1.1.
    const bindings = { incoming: { socket: { remoteAddress: ip }, httpVersionMajor: 1 } }
    const url = `${service.settings.baseUrl}${path}`
    const answer = await base.settled(
      Promise.resolve(app.fetch(new Request(url, { ...rest, headers }), bindings)),
    )
    for (const cookie of answer.headers.getSetCookie()) storeCookie(cookie)
    return answer
  }

  function storeCookie(cookie: string): void {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? []
    if (/max-age=0\b/i.test(cookie)) cookies.delete(name)
    else cookies.set(name, value)
  }

  async function get(path: string, headers: Record<string, string> = {}): Promise<Answer> {
    return answerOf(await fetch(path, { headers }))
  }

  /** Sends a form as a page of this session does; redirects are not followed. */
  async function post(
    path: string,
    fields: Fields = {},
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const body = new URLSearchParams({ _csrf: await csrf() })
    for (const [name, value] of Object.entries(fields)) {
      if (name === '_csrf') body.delete(name)
      for (const one of [value].flat()) body.append(name, one as string)
    }
    return answerOf(await fetch(path, { method: 'POST', body, headers }))
  }

  /** The CSRF token of this session, as in its pages, which are read once for each session. */
  async function csrf(): Promise<string> {
    const session = String([...cookies])
    const known = tokens.get(session)
    if (known) return known
    const { text, headers } = await get('/sessions')
    const moved = headers.get('Location')
    const shown = moved === null ? text : (await get(moved)).text
    const token = /<meta name="csrf" content="([^"]+)"/.exec(shown)?.[1] ?? ''
    tokens.set(session, token)
    return token
  }

  async function signIn(text: string = key): Promise<Answer> {
    const body = new URLSearchParams({ key: text })
    return answerOf(await fetch('/sign-in', { method: 'POST', body }))
  }

  if (isSignedIn) await signIn()
  return { ...base, pages, fetch, get, post, csrf, signIn, cookies, firstKeys: keys }
}

const answerOf = async (answer: Response): Promise<Answer> => ({
  status: answer.status,
  headers: answer.headers,
  text: await answer.text(),
})
