import type { Context, MiddlewareHandler } from 'hono'
import type { Env } from '../context.ts'
import { setHeader } from '../headers.ts'
import type { Service } from '../service.ts'

/**
 * Allows no other origin to read the response until `allowOrigin` is called. No response is cached,
 * so none needs `Vary`. A preflight has no key, so it is answered for every origin.
 */
export function restrictOrigin({ settings }: Service): MiddlewareHandler<Env> {
  const { origin } = new URL(settings.baseUrl)
  return (c, next) => {
    setHeader(c, ALLOW_ORIGIN, origin)
    return next()
  }
}

/** Allows the origin of the request to read the response: its key is allowed on this site. */
export function allowOrigin(c: Context<Env>): void {
  const origin = c.req.header('Origin')
  if (origin !== undefined) setHeader(c, ALLOW_ORIGIN, origin)
}

const ALLOW_ORIGIN = 'Access-Control-Allow-Origin'
