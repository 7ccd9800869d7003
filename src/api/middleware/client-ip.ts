import { inRanges, plainIp } from '../../platform/ip.ts'
import type { Incoming } from '../context.ts'

/**
 * Returns a function that determines the IP address of a client: the address of its socket or,
 * behind a proxy of `trustProxy`, the last address in X-Forwarded-For that is not such a proxy.
 * Earlier entries can be forged.
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

/** Stands for a socket that was closed, which has no address. */
const UNKNOWN_CALLER = '0.0.0.0'

/** More proxies in a row do not occur in practice. */
const HOPS_MAX = 20

/** Some proxies write `192.0.2.1:1234`, `[2001:db8::1]` or `[2001:db8::1]:1234`. */
const PORT = /^(?:(\d+\.\d+\.\d+\.\d+):\d+|\[([^\]]+)\](?::\d+)?)$/
