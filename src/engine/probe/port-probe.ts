import { SECOND } from '../../platform/clock.ts'
import { addressesOf } from '../dns/route.ts'
import type { ProbeDeps } from './egress.ts'

/** Exchangers of large providers that have had these names for many years: who reaches none of them reaches nobody. */
export const REFERENCE_MX_HOSTS = [
  'gmail-smtp-in.l.google.com',
  'outlook-com.olc.protection.outlook.com',
  'mta5.am0.yahoodns.net',
  'mx01.mail.icloud.com',
  'mx00.gmx.net',
] as const

/** Enough for the DNS and for a SYN that is lost twice. */
const PORT_PROBE_TIMEOUT_MS = 4 * SECOND
/** One provider that does not let us in says nothing of the way out. */
const HOSTS_MIN = 2

/**
 * Whether a connection opens to any of the well-known exchangers; null when too few of them can be looked up
 * to tell. Nothing is said on it: it is closed as soon as it is there.
 */
export async function probePort(deps: ProbeDeps, signal: AbortSignal): Promise<boolean | null> {
  const limit = new AbortController()
  const giveUp = () => limit.abort()
  const cancel = deps.clock.after(PORT_PROBE_TIMEOUT_MS, giveUp)
  signal.addEventListener('abort', giveUp, { once: true })
  let dialled = 0
  const probeAt = async (host: string) => {
    const targets = await targetsOf(deps, host, limit.signal)
    if (targets.length > 0) dialled++
    await Promise.any(targets.map(ip => tryConnect(deps, { ip, host }, limit.signal)))
  }
  try {
    await Promise.any(REFERENCE_MX_HOSTS.map(probeAt))
    return true
  } catch {
    return dialled < HOSTS_MIN ? null : false
  } finally {
    cancel()
    giveUp()
    signal.removeEventListener('abort', giveUp)
  }
}

/** One address of each family, as many machines have but one. */
async function targetsOf(deps: ProbeDeps, host: string, signal: AbortSignal): Promise<string[]> {
  const found = await addressesOf(deps.resolver, host, signal)
  if (signal.aborted || 'fault' in found) return []
  const addresses = found.addresses.filter(deps.isPublic)
  const families = Map.groupBy(addresses, ip => ip.includes(':'))
  return [...families.values()].flatMap(([first]) => first ?? [])
}

async function tryConnect(
  { egress, smtpPort }: ProbeDeps,
  to: { ip: string; host: string },
  signal: AbortSignal,
): Promise<void> {
  const socket = await egress.dial.connect({ ...to, port: smtpPort }, signal)
  socket.on('error', () => {}) // What the line has to say of its end concerns nobody.
  socket.destroy()
}
