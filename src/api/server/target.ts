import type { IncomingMessage } from 'node:http'
import { ApiError } from '../errors/api-error.ts'
import type { ServerLimits } from './limits.ts'

/** What is wrong with a request before anybody looks at what it asks for; null: nothing. */
export function faultOfRequest(
  request: IncomingMessage,
  { headersMax }: Pick<ServerLimits, 'headersMax'>,
): ApiError | null {
  if (request.rawHeaders.length / 2 > headersMax) {
    return new ApiError('headers_too_large', `A request has at most ${headersMax} headers`)
  }
  const hosts = valuesOf(request, 'host')
  // RFC 9112 §3.2: none, or several, and nobody can tell whom the client meant.
  if (!isProbe(request, hosts) && (hosts.length !== 1 || !isHost(hosts[0] ?? ''))) {
    return new ApiError('invalid_request', 'A request needs one Host header with a host name')
  }
  return TARGET.test(request.url ?? '') && !/%00/.test(request.url ?? '')
    ? null
    : new ApiError('invalid_request', 'The target of a request is a path, such as /v1/jobs')
}

/** Health checks of load balancers ask so: HTTP/1.0 knows no Host. */
const isProbe = ({ httpVersion, url = '' }: IncomingMessage, hosts: readonly unknown[]) =>
  httpVersion === '1.0' && hosts.length === 0 && /^\/(?:livez|readyz)$/.test(url)

/** A name or an address as it is usually written, and perhaps a port. */
function isHost(given: string): boolean {
  const [, name = '', port = '80'] = HOST.exec(given.toLowerCase()) ?? []
  return URL.canParse(`http://${name}:${port}`) && new URL(`http://${name}`).hostname === name
}

const HOST = /^([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::(\d{1,5}))?$/

/** RFC 9112 §3.2.1: a path and perhaps a query; nothing for proxies, and nothing that some software takes for a slash. */
const TARGET = /^\/(?!\/)[!#-;=?-[\]^_`a-z{|}~]*$/i

function valuesOf({ rawHeaders }: IncomingMessage, name: string): string[] {
  return rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === name)
}
