import { inRanges, plainIp } from '../../platform/ip.ts'
import type { Incoming } from '../context.ts'

/**
 * Tells the address of a client: the one of its socket; behind a proxy of `trustProxy`, the last one in
 * X-Forwarded-For that is not such a proxy. What stands before it anybody may have written.
 */
export function clientIp(trustProxy: readonly string[]) {
  const trusted = trustProxy.length === 0 ? () => false : inRanges(trustProxy)
  return (incoming: Incoming | undefined, forwardedFor: () => string | undefined): string => {
    const direct = plainIp(incoming?.socket?.remoteAddress ?? '') ?? UNKNOWN_CALLER
    if (!trusted(direct)) return direct
    let nearest = direct
    for (const hop of (forwardedFor() ?? '').split(',').slice(-HOPS_MAX).reverse()) {
      const ip = plainIp(hop.trim().replace(PORT, '$1$2'))
      if (ip === null) return nearest
      nearest = ip
      if (!trusted(ip)) return ip
    }
    return nearest
  }
}

/** A socket that was closed meanwhile has no address any more. */
const UNKNOWN_CALLER = '0.0.0.0'

/** More proxies in a row nobody has. */
const HOPS_MAX = 20

/** Some proxies write `192.0.2.1:1234`, `[2001:db8::1]` or `[2001:db8::1]:1234`. */
const PORT = /^(?:(\d+\.\d+\.\d+\.\d+):\d+|\[([^\]]+)\](?::\d+)?)$/
