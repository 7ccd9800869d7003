import { onAbort } from '../../platform/abort.ts'
import { SECOND } from '../../platform/clock.ts'
import { publicSuffixes } from '../../platform/domain-names.ts'
import { withDeadline } from '../deadline.ts'
import { addressesOf } from '../dns/route.ts'
import type { RecipientOutcome } from '../smtp/classify-reply.ts'
import { isFailure } from '../smtp/connection.ts'
import { Session } from '../smtp/session.ts'
import type { ProbeDeps } from './egress.ts'

// Some networks answer port 25 themselves (transparent SMTP proxies of hosters, hotspots and mobile
// networks). Such a proxy accepts or rejects every recipient whatever the domain, which says nothing
// about the mailbox. It is detected by its greeting: the servers of two unrelated providers never
// name the same host.

/**
 * Returns the host name that a greeting starts with (RFC 5321 §4.2), in lower case; null without
 * one, as from a firewall that masks the greetings of the real servers.
 */
function greetingHost(text: string): string | null {
  const [, name] = /^\s*([a-z0-9-]+(?:\.[a-z0-9-]+)+)\.?(?:\s|$)/i.exec(text) ?? []
  return name?.toLowerCase() ?? null
}

/**
 * Returns the host name that the greetings of two hosts start with; null if there is none. The hosts
 * must belong to different providers.
 */
export function findSharedHost(
  greetings: Iterable<{ readonly host: string; readonly text: string }>,
): string | null {
  const hosts = new Map<string, string>()
  for (const { host, text } of greetings) {
    const name = greetingHost(text)
    if (name === null) continue
    if ((hosts.get(name) ?? host) !== host) return name
    hosts.set(name, host)
  }
  return null
}

/**
 * Whether a greeting names a host of another domain than the MX host. Many hosters greet like this,
 * and a proxy that answers instead of the mail server does too.
 */
export function isForeignGreeting(text: string, host: string): boolean {
  const name = greetingHost(text)
  return name !== null && registrableDomain(name) !== registrableDomain(host)
}

const registrableDomain = (host: string) =>
  publicSuffixes().getDomain(host, { allowPrivateDomains: false }) ?? host

/**
 * Whether an answer after a foreign greeting would be wrong if a proxy gave it: the domain is not
 * hosted there, or the recipient is accepted by a provider that is trusted without a catch-all test.
 * For a list also if every recipient is accepted: its domain would be stored as catch-all. A single
 * verification is at most risky then, and not worth connections to other providers.
 */
export function isDecidedByServer(
  answer: RecipientOutcome,
  catchAll: { readonly tested: boolean | null; readonly known: boolean | null },
  single: boolean,
): boolean {
  if (answer.kind === 'rejected') return answer.why === 'not-hosted' || answer.why === 'no-mail'
  if (answer.kind !== 'accepted') return false
  return catchAll.known === false || (catchAll.tested === true && !single)
}

type CheckDeps = Pick<
  ProbeDeps,
  'resolver' | 'isDnsTrusted' | 'clock' | 'egress' | 'isPublic' | 'smtpPort'
>

/** Time limit of the check: enough for two lost SYNs and a greeting. Large providers greet at once. */
const CHECK_MS = 6 * SECOND
/**
 * Time limit of the lookups, which a network without access to the public DNS often ignores. The
 * results that wait for the check are held up for so long.
 */
const LOOKUP_MS = 2 * SECOND

/**
 * Connects to MX hosts of different providers, and returns the name of the host that answers instead
 * of two of them. Null if they greet under different names, and `undecided` if fewer than two of
 * them greet. Nothing is sent to them but QUIT.
 */
export async function detectInterceptor(
  deps: CheckDeps,
  hosts: readonly string[],
  signal: AbortSignal,
): Promise<string | null | 'undecided'> {
  // Its answers may not lead to the reference hosts, as in a network without access to the public DNS.
  if (deps.isDnsTrusted?.() === false) return 'undecided'
  const limit = withDeadline(deps.clock, CHECK_MS, [signal])
  try {
    const found = await Promise.all(hosts.map(host => findTarget(deps, host, limit.signal)))
    const targets = found.filter(target => target !== null)
    const greetings: { host: string; text: string }[] = []
    for (let at = 0; at < targets.length && greetings.length < 2; at += 2) {
      const pair = targets.slice(at, at + 2).map(async target => {
        const text = await readGreeting(deps, target, limit.signal)
        if (text !== null) greetings.push({ host: target.host, text })
      })
      await Promise.all(pair)
    }
    return greetings.length < 2 ? 'undecided' : findSharedHost(greetings)
  } finally {
    limit.done()
  }
}

type Target = { readonly host: string; readonly ip: string }

/** Returns a host with an address that may be dialed; null if none is found in time. */
async function findTarget(
  { clock, egress, isPublic, resolver }: CheckDeps,
  host: string,
  signal: AbortSignal,
): Promise<Target | null> {
  const limit = withDeadline(clock, LOOKUP_MS, [signal])
  try {
    const families = egress.getFamilies?.() ?? 'both'
    const lookup = await addressesOf(resolver, host, { signal: limit.signal, families })
    const ip = 'fault' in lookup ? undefined : lookup.addresses.find(isPublic)
    return ip === undefined ? null : { host, ip }
  } catch {
    return null
  } finally {
    limit.done()
  }
}

/** Returns the text of the greeting of a host; null without one. */
async function readGreeting(
  { clock, egress, smtpPort }: CheckDeps,
  { host, ip }: Target,
  signal: AbortSignal,
): Promise<string | null> {
  try {
    const socket = await egress.dial.connect({ ip, port: smtpPort, host }, signal)
    const session = new Session(socket, {
      clock,
      greetingTimeoutMs: CHECK_MS,
      replyTimeoutMs: CHECK_MS,
      sessionTimeoutMs: CHECK_MS,
    })
    const unsubscribe = onAbort(signal, () => session.close())
    const greeting = await session.greeting()
    await session.quit()
    unsubscribe()
    return isFailure(greeting) ? null : greeting.text
  } catch {
    return null
  }
}
