import type { Context } from 'hono'
import type { Env } from './context.ts'
import type { MonitoringDeps } from './monitoring/monitored.ts'

/**
 * Lays a header ready for the answer, whoever gives that; one of the answer itself takes its place. Node's own
 * response takes a header for a tenth of what it costs in a Headers, which counts with a dozen of them.
 */
export function layHeader(c: Context<Env>, name: string, value: string): void {
  const outgoing = c.env?.outgoing
  if (outgoing === undefined) c.header(name, value)
  else if (!outgoing.headersSent) outgoing.setHeader(name, value)
}

/** Headers that every answer has, whoever asks for what. */
export function commonHeaders({
  settings,
}: Pick<MonitoringDeps, 'settings'>): Readonly<Record<string, string>> {
  return {
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    // An answer is data: a browser that is led to one shows nothing and runs nothing.
    'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
    // Keys come by Authorization alone, never by cookies: any site may ask with a key that it has.
    'Access-Control-Allow-Origin': '*',
    'Access-Control-Expose-Headers': EXPOSED,
    ...(settings.baseUrl.startsWith('https:') && { 'Strict-Transport-Security': HSTS }),
  }
}

/** What a browser must be told before it asks with a key (CORS preflight). */
export const PREFLIGHT: Readonly<Record<string, string>> = {
  'Access-Control-Allow-Methods': 'GET, HEAD, POST, PUT, PATCH, DELETE',
  'Access-Control-Allow-Headers':
    'Authorization, Content-Type, Idempotency-Key, X-EV-Sandbox, X-EV-Sandbox-Delay',
  'Access-Control-Max-Age': '7200',
}

/** What a browser lets scripts of other sites read. */
const EXPOSED = [
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'Retry-After',
  'X-Request-Id',
  'Idempotency-Replayed',
  'Location',
  'Content-Disposition',
].join(', ')

/** A year, as is customary. */
const HSTS = 'max-age=31536000'
