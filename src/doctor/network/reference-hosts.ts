import type { Resolver } from '../../engine/dns/resolver.ts'
import { addressesOf } from '../../engine/dns/route.ts'
import { REFERENCE_MX_HOSTS } from '../../engine/probe/outbound-reachability.ts'
import { isIpv6, parseIp } from '../identity/reverse-name.ts'
import {
  type HandshakeDeps,
  type HandshakeResult,
  type Outcome,
  smtpHandshake,
} from './smtp-handshake.ts'

/**
 * Who is called at unless the user says otherwise: large providers by name, and two of them (GMX, Yahoo) by an address
 * of many years, so that trouble with the DNS is told from a closed port.
 */
const USUAL_EXCHANGERS: readonly string[] = [...REFERENCE_MX_HOSTS, '212.227.17.5', '188.125.72.73']
/** RFC 5321 §4.5.4.2. */
const SMTP_PORT = 25

/**
 * The same, for the port that is dialled. On another one nobody of them takes mail: there are mail servers of one's own,
 * as those of `ev simulate`, and whoever they are, the DNS names them. So no address of a stranger is dialled for nothing.
 */
export const referenceMxHosts = (smtpPort: number): readonly string[] =>
  smtpPort === SMTP_PORT ? USUAL_EXCHANGERS : REFERENCE_MX_HOSTS

export type ProbeAllDeps = HandshakeDeps & {
  readonly resolver: Resolver
  readonly isPublic: (ip: string) => boolean
  /** Only addresses of its family can be dialled from it. */
  readonly sourceAddress: string | null
}

/** Calls at all of them at once, at one address of each family. */
export async function probeAll(
  deps: ProbeAllDeps,
  hosts: readonly string[],
  signal: AbortSignal,
): Promise<readonly HandshakeResult[]> {
  const visits = await Promise.all(hosts.map(host => probeHost(deps, host, signal)))
  return visits.flat()
}

async function probeHost(
  deps: ProbeAllDeps,
  host: string,
  signal: AbortSignal,
): Promise<HandshakeResult[]> {
  const found = await targetsOf(deps, host, signal)
  if ('fault' in found) return [notCalled(host, null, { kind: 'unresolved', fault: found.fault })]
  return Promise.all(
    firstOfEach(found.addresses, deps.sourceAddress).map(ip =>
      deps.isPublic(ip)
        ? smtpHandshake(deps, { host, ip }, signal)
        : notCalled(host, ip, { kind: 'not-public' }),
    ),
  )
}

const targetsOf = async ({ resolver }: ProbeAllDeps, host: string, signal: AbortSignal) =>
  parseIp(host) === null ? addressesOf(resolver, host, signal) : { addresses: [host] }

function firstOfEach(addresses: readonly string[], sourceAddress: string | null): string[] {
  const families = [false, true].map(v6 => addresses.find(ip => isIpv6(ip) === v6))
  return families.filter(
    ip => ip !== undefined && (sourceAddress === null || isIpv6(ip) === isIpv6(sourceAddress)),
  ) as string[]
}

const notCalled = (host: string, ip: string | null, outcome: Outcome): HandshakeResult => ({
  host,
  ip,
  outcome,
  localAddress: null,
})
