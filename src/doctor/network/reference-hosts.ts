import { SMTP_PORT } from '../../config/engine-settings.ts'
import type { Resolver } from '../../engine/dns/resolver.ts'
import { addressesOf } from '../../engine/dns/route.ts'
import { REFERENCE_MX_HOSTS } from '../../engine/probe/outbound-reachability.ts'
import { isIpv6, plainIp } from '../../platform/ip.ts'
import {
  type HandshakeDeps,
  type HandshakeResult,
  type Outcome,
  smtpHandshake,
} from './smtp-handshake.ts'

/**
 * Default mail servers to check: large providers by name, and two of them (GMX, Yahoo) also by a
 * long-lived address, to distinguish DNS problems from a blocked port.
 */
const DEFAULT_HOSTS: readonly string[] = [...REFERENCE_MX_HOSTS, '212.227.17.5', '188.125.72.73']

/**
 * Returns the default mail servers for a port. Another port means private servers, such as those of
 * `ev simulate`, which the DNS resolves: the addresses of third parties are not dialed then.
 */
export const referenceMxHosts = (smtpPort: number): readonly string[] =>
  smtpPort === SMTP_PORT ? DEFAULT_HOSTS : REFERENCE_MX_HOSTS

type ProbeAllDeps = HandshakeDeps & {
  readonly resolver: Resolver
  readonly isPublic: (ip: string) => boolean
  /** Limits the check to addresses of its family. */
  readonly sourceAddress: string | null
}

/** Connects to all hosts concurrently, at one address of each family. */
export async function probeAll(
  deps: ProbeAllDeps,
  hosts: readonly string[],
  signal: AbortSignal,
): Promise<readonly HandshakeResult[]> {
  const handshakes = await Promise.all(hosts.map(host => probeHost(deps, host, signal)))
  return handshakes.flat()
}

async function probeHost(
  deps: ProbeAllDeps,
  host: string,
  signal: AbortSignal,
): Promise<HandshakeResult[]> {
  const found = await targetsOf(deps, host, signal)
  if ('fault' in found) return [notDialed(host, null, { kind: 'unresolved', fault: found.fault })]
  return Promise.all(
    firstOfEach(found.addresses, deps.sourceAddress).map(ip =>
      deps.isPublic(ip)
        ? smtpHandshake(deps, { host, ip }, signal)
        : notDialed(host, ip, { kind: 'not-public' }),
    ),
  )
}

const targetsOf = async ({ resolver }: ProbeAllDeps, host: string, signal: AbortSignal) =>
  plainIp(host) === null ? addressesOf(resolver, host, { signal }) : { addresses: [host] }

function firstOfEach(addresses: readonly string[], sourceAddress: string | null): string[] {
  const families = [false, true].map(v6 => addresses.find(ip => isIpv6(ip) === v6))
  return families.filter(
    ip => ip !== undefined && (sourceAddress === null || isIpv6(ip) === isIpv6(sourceAddress)),
  ) as string[]
}

const notDialed = (host: string, ip: string | null, outcome: Outcome): HandshakeResult => ({
  host,
  ip,
  outcome,
  localAddress: null,
})
