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

/** Enough for the DNS lookup, for two lost SYNs and for a greeting; large providers greet at once. */
const GREETING_MS = 6 * SECOND

/**
 * Returns the name of the host that answers instead of the MX hosts of two providers. Null if they
 * greet under different names, and `undecided` if fewer than two of them greet. Nothing is sent to
 * them but QUIT.
 */
export async function findInterceptor(
  deps: ProbeDeps,
  hosts: readonly string[],
  signal: AbortSignal,
): Promise<string | null | 'undecided'> {
  const greetings: { host: string; text: string }[] = []
  for (let at = 0; at < hosts.length && greetings.length < 2; at += 2) {
    const pair = hosts.slice(at, at + 2).map(async host => {
      const text = await readGreeting(deps, host, signal)
      if (text !== null) greetings.push({ host, text })
    })
    await Promise.all(pair)
  }
  return greetings.length < 2 ? 'undecided' : findSharedHost(greetings)
}

/** Returns the text of the greeting of a host; null without one. */
async function readGreeting(
  deps: ProbeDeps,
  host: string,
  signal: AbortSignal,
): Promise<string | null> {
  const { clock, egress, isPublic, resolver, smtpPort } = deps
  const limit = withDeadline(clock, GREETING_MS, [signal])
  try {
    const families = egress.getFamilies?.() ?? 'both'
    const lookup = await addressesOf(resolver, host, { signal: limit.signal, families })
    const ip = 'fault' in lookup ? undefined : lookup.addresses.find(isPublic)
    if (ip === undefined) return null
    const socket = await egress.dial.connect({ ip, port: smtpPort, host }, limit.signal)
    const session = new Session(socket, {
      clock,
      greetingTimeoutMs: GREETING_MS,
      replyTimeoutMs: GREETING_MS,
      sessionTimeoutMs: GREETING_MS,
    })
    const unsubscribe = onAbort(limit.signal, () => session.close())
    const greeting = await session.greeting()
    await session.quit()
    unsubscribe()
    return isFailure(greeting) ? null : greeting.text
  } catch {
    return null
  } finally {
    limit.done()
  }
}
