import type { Context } from 'hono'
import type { Env } from '../../src/api/context.ts'
import type { GuardRule } from '../../src/api/middleware/guard.ts'
import { newRouter } from '../../src/api/route.ts'
import type { createTestService } from './service.ts'

type TestService = Awaited<ReturnType<typeof createTestService>>

type RouteOptions = Omit<Partial<GuardRule>, 'body'> & {
  /** Largest body in bytes. */
  readonly bodyMax?: number
  readonly method?: 'get' | 'post'
  readonly handler?: (c: Context<Env>) => Response | Promise<Response>
}

/** Adds a guarded path, before the first request; it returns its input. */
export function addGuardedRoute(
  { app, service }: TestService,
  path: string,
  o: RouteOptions = {},
): void {
  const { method = 'post', handler = echo, bodyMax = 1_000, ...rule } = o
  const given: GuardRule = {
    target: `${method.toUpperCase()} ${path}`,
    scope: 'verify:single',
    counts: null,
    body: { kind: 'json', bytesMax: bodyMax },
    schemas: null,
    ...rule,
  }
  app.route('/', newRouter().on([method], [path], service.guard(given)(handler)))
}

/** Counts a list, as a handler that creates one does. */
export async function echoList(c: Context<Env>): Promise<Response> {
  await c.get('admitted').countList()
  return echo(c)
}

const echo = (c: Context<Env>) => c.json({ body: c.get('json') ?? null, sandbox: c.get('sandbox') })

/** Returns the rate limit headers of a response. */
export const limitOf = ({ headers }: Response) => ({
  limit: Number(headers.get('X-RateLimit-Limit')),
  remaining: Number(headers.get('X-RateLimit-Remaining')),
  reset: Number(headers.get('X-RateLimit-Reset')),
})

export const codeOf = async (response: Response) =>
  ((await response.json()) as { code: string }).code
