import type { Context } from 'hono'
import type { Env } from './context.ts'
import { REQUEST_HEADERS, RESPONSE_HEADERS } from './schemas/headers.ts'
import type { MonitoringDeps, ServiceDeps } from './service.ts'

export type HeaderDeps = Pick<ServiceDeps, 'settings'>

/**
 * Adds a header to the response of a request, unless the response has it. On Node's own response
 * this costs a tenth of an entry in Headers, which matters with a dozen of them.
 */
export function addHeader(c: Context<Env>, name: string, value: string): void {
  const outgoing = c.env?.outgoing
  if (outgoing === undefined) {
    if (!c.res.headers.has(name)) c.res.headers.set(name, value)
  } else if (!outgoing.headersSent) outgoing.setHeader(name, value)
}

/**
 * Returns a header of a request by its name in lower case. Node's own object of headers costs a
 * tenth of a search in the raw ones, which matters with a dozen of them.
 */
export function getHeader({ env, req }: Context<Env>, name: Lowercase<string>): string | undefined {
  const headers = env?.incoming?.headers
  if (headers === undefined) return req.header(name)
  const value = headers[name]
  return typeof value === 'string' ? value : undefined
}

export const ALLOW_ORIGIN = 'Access-Control-Allow-Origin'

/** Headers of every response. */
export function commonHeaders({
  settings,
}: Pick<MonitoringDeps, 'settings'>): Readonly<Record<string, string>> {
  return {
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    // A signed link is a credential, which no other site may learn.
    'Referrer-Policy': 'no-referrer',
    // A response is data: a browser that opens one must show nothing and run nothing.
    'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
    // Keys are sent only in Authorization, never in cookies: any site may send requests with a key
    // that it has.
    [ALLOW_ORIGIN]: '*',
    'Access-Control-Expose-Headers': EXPOSED,
    ...(settings.baseUrl.startsWith('https:') && { 'Strict-Transport-Security': HSTS }),
  }
}

/** Response headers of a CORS preflight. */
export const PREFLIGHT: Readonly<Record<string, string>> = {
  'Access-Control-Allow-Methods': 'GET, HEAD, POST, PUT, PATCH, DELETE',
  'Access-Control-Allow-Headers': [
    ...(['Authorization', 'Content-Type'] as const),
    ...Object.keys(REQUEST_HEADERS),
  ].join(', '),
  'Access-Control-Max-Age': '7200',
}

/** Response headers that scripts of other sites may read. */
const EXPOSED = Object.keys(RESPONSE_HEADERS).join(', ')

/**
 * One year in seconds, the least that OWASP ASVS 5.0 requires (3.4.1). Without `includeSubDomains`:
 * subdomains of the host may belong to others, who may serve plain HTTP. A proxy can replace it.
 */
const HSTS = 'max-age=31536000'

/**
 * Allows no other origin to read the response until `allowOrigin` is called. No response is cached,
 * so none needs `Vary`. A preflight has no key, so it is answered for every origin.
 */
export function restrictOrigin({ settings }: HeaderDeps): (c: Context<Env>) => void {
  const { origin } = new URL(settings.baseUrl)
  return c => c.set('allowedOrigin', origin)
}

/** Allows the origin of the request to read the response: its key is allowed on this site. */
export function allowOrigin(c: Context<Env>): void {
  const origin = getHeader(c, 'origin')
  if (origin !== undefined) c.set('allowedOrigin', origin)
}
