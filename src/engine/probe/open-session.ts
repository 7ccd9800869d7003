import type { Duplex } from 'node:stream'
import { errorMessage } from '../../platform/error.ts'
import { formatDuration } from '../../platform/format.ts'
import { addressesOf, connectOrder } from '../dns/route.ts'
import type { AddressPermit, AddressStart } from '../rate-control/destination-limits.ts'
import { compileReplyRules, type RecipientOutcome } from '../smtp/classify-reply.ts'
import { isFailure } from '../smtp/connection.ts'
import { Session } from '../smtp/session.ts'
import type { ConnectionPermits } from './connection-permits.ts'
import type { ProbeDeps } from './egress.ts'
import type { HostHealth } from './host-health.ts'
import type { RouteWithHost } from './mx-groups.ts'
import {
  type DialGroup,
  NO_RESPONSE_MS,
  type OutboundReachability,
} from './outbound-reachability.ts'
import type { ServerCall } from './probe-listener.ts'
import { noResponse, outcomeFor } from './probe-outcome.ts'

/** An exchanger that greeted us and knows who we are. */
export type OpenSession = {
  readonly session: Session
  readonly host: string
  readonly ip: string
  readonly connectMs: number
  /** To be released when the connection is closed. */
  readonly permit: AddressPermit
}

/** Why no address may be dialled now; nobody was dialled, or those that may be failed. */
export type HeldConnection = Exclude<AddressStart, { readonly permit: AddressPermit }>

/** Nobody spoke with us: the most telling of what was met on the way, and where. */
export type OpenFailure = {
  readonly answer: RecipientOutcome
  readonly host: string | null
  readonly ip: string | null
  /** Our own time ended before this could tell anything of the exchangers. */
  readonly cutShort: boolean
  /** False: nobody was dialled, as the addresses failed a moment ago. */
  readonly asked: boolean
}

/** RFC 5321 §5.1 asks for several addresses to be tried, "at least two"; Postfix tries five. */
const ADDRESSES_MAX = 5
/** Hosts whose addresses are looked up: with the MX question and A and AAAA for each, seven questions. */
const HOSTS_MAX = 3
/** Conversations begun before we give up, as Postfix's smtp_mx_session_limit. */
const SESSIONS_MAX = 2

/** Two addresses of each of two operators share the time that somebody waits for a connection. */
const CONNECT_SHARES = 4

export type OpenOptions = {
  readonly signal: AbortSignal
  /** Hears what comes of each host and address that is tried. */
  readonly onCall: ((call: ServerCall) => void) | null
  readonly onLine: ((line: string) => void) | null
  /** True where this host is known to demand TLS. */
  readonly startTls: (host: string) => boolean
  readonly reachability: OutboundReachability
  readonly visit: DialGroup
  /** True: the exchangers of another operator may be dialled too, so half of the limits hold here. */
  readonly sharesLimits?: boolean
  /** Somebody waits: a silent address must leave time for the others. */
  readonly single?: boolean
  readonly permits: ConnectionPermits
  readonly hosts: HostHealth
}

/** Opens a conversation with the first exchanger that will have one: hosts by preference, then addresses. */
export async function openSession(
  deps: ProbeDeps,
  route: RouteWithHost,
  options: OpenOptions,
): Promise<OpenSession | OpenFailure | { readonly held: HeldConnection }> {
  const attempt = new Attempt(deps, options)
  const hosts = connectOrder(route, deps.random)
  for (const host of hosts.slice(0, HOSTS_MAX)) {
    const { hasIpv6 } = deps.egress
    const found = await addressesOf(deps.resolver, host, options.signal, hasIpv6)
    if (options.signal.aborted) return { ...attempt.gaveUp(host), cutShort: true }
    if ('fault' in found) {
      const sure = found.fault === 'no-name' || found.fault === 'no-data'
      attempt.note(
        noResponse(
          sure ? 'no-address' : 'dns',
          'connect',
          `${host}: ${found.detail ?? found.fault}`,
        ),
        host,
        null,
      )
      continue
    }
    for (const ip of options.permits.inOrder(found.addresses)) {
      const opened = await attempt.open(host, ip)
      if (opened !== null) return opened
      // The other addresses of this host are held too, for longer.
      if (attempt.held !== null) return { held: attempt.held }
      if (options.signal.aborted) return attempt.gaveUp(host)
      if (attempt.exhausted) return attempt.unopened()
    }
  }
  const { answer, ...where } = attempt.unopened()
  const unsure =
    hosts.length > HOSTS_MAX && answer.kind === 'no-response' && answer.why === 'no-address'
  // The hosts that were not looked up may have an address: nothing is sure.
  return { answer: unsure ? noResponse('connect', 'connect', answer.detail) : answer, ...where }
}

class Attempt {
  readonly #deps: ProbeDeps
  readonly #options: OpenOptions
  #addresses = 0
  #sessions = 0
  /** When the address at hand was dialled, monotonic ms. */
  #startedAt = 0
  #best: Pick<OpenFailure, 'answer' | 'host' | 'ip'> | null = null
  /** Addresses that were left out because they failed a moment ago. */
  #skipped = 0
  held: HeldConnection | null = null

  constructor(deps: ProbeDeps, options: OpenOptions) {
    this.#deps = deps
    this.#options = options
  }

  get exhausted(): boolean {
    if (this.#options.reachability.blockedOutcome !== null) return true
    const share = this.#options.sharesLimits ? 2 : 1
    return (
      this.#addresses >= Math.floor(ADDRESSES_MAX / share) || this.#sessions >= SESSIONS_MAX / share
    )
  }

  async open(host: string, ip: string): Promise<OpenSession | null> {
    const { deps, options } = { deps: this.#deps, options: this.#options }
    if (!deps.isPublic(ip)) {
      this.note(noResponse('not-public', 'connect', `${ip} is not a public address`), host, ip)
      return null
    }
    const down = options.hosts.cachedFailure(ip)
    if (down !== null) {
      this.#skipped++
      this.note(down, host, ip, false)
      return null
    }
    const start = await options.permits.address(ip)
    if (!('permit' in start)) {
      this.held = start
      return null
    }
    const opened = await this.#openKept(host, ip, start.permit).catch(error => {
      start.permit.release()
      throw error
    })
    if (opened === null) start.permit.release()
    return opened
  }

  async #openKept(host: string, ip: string, permit: AddressPermit): Promise<OpenSession | null> {
    const { deps, options } = { deps: this.#deps, options: this.#options }
    this.#addresses++
    this.#startedAt = deps.clock.monotonicNow()
    const socket = await this.#dial(host, ip)
    if (socket === null) return null
    options.hosts.markReachable(ip)
    this.#sessions++
    this.#notify({ host, ip, dialled: true, answer: null })
    const session = new Session(socket, {
      clock: deps.clock,
      greetingTimeoutMs: deps.timeouts.greetingMs,
      replyTimeoutMs: deps.timeouts.replyMs,
      sessionTimeoutMs: deps.timeouts.sessionMs,
      listener: options.onLine,
    })
    const close = () => session.close()
    options.signal.addEventListener('abort', close, { once: true })
    if (options.signal.aborted) close()
    try {
      const answer = await this.#introduce(session, host)
      if (answer === null) return { session, host, ip, connectMs: this.#ageMs, permit }
      this.note(answer, host, ip)
      if (answer.kind === 'deferred') permit.throttled(answer.retryAfterMs)
      // The next exchanger is not dialled before this one has hung up.
      if (session.usable) await session.quit()
      return null
    } catch (error) {
      session.close()
      throw error
    } finally {
      options.signal.removeEventListener('abort', close)
    }
  }

  /** Keeps the most telling answer: what a server said, before what nobody said. */
  note(answer: RecipientOutcome, host: string, ip: string | null, dialled = true) {
    // What ends with our own time is no trouble of theirs.
    if (!this.#options.signal.aborted) this.#notify({ host, ip, dialled, answer })
    if (this.#best === null || weight(answer) > weight(this.#best.answer)) {
      this.#best = { answer, host, ip }
    }
  }

  #notify(call: Omit<ServerCall, 'port'>) {
    this.#options.onCall?.({ ...call, port: this.#deps.smtpPort })
  }

  unopened(): OpenFailure {
    const noListener = {
      answer: noResponse('no-address', 'connect', 'no host'),
      host: null,
      ip: null,
    }
    const asked = this.#addresses > 0 || this.#skipped === 0
    return { ...(this.#best ?? noListener), cutShort: false, asked }
  }

  gaveUp(host: string): OpenFailure {
    const answer = noResponse(
      'timeout',
      this.#sessions > 0 ? 'greeting' : 'connect',
      'time ran out',
    )
    this.note(answer, host, null)
    return { ...this.unopened(), cutShort: this.#ageMs < NO_RESPONSE_MS }
  }

  get #ageMs(): number {
    return this.#deps.clock.monotonicNow() - this.#startedAt
  }

  async #dial(host: string, ip: string): Promise<Duplex | null> {
    const { clock, smtpPort, timeouts, egress } = this.#deps
    const { signal, reachability, visit, single = false, sharesLimits = false } = this.#options
    const limit = new AbortController()
    const giveUp = () => limit.abort()
    const ended = reachability.dial(visit, giveUp)
    if (typeof ended !== 'function') {
      this.note(ended, host, ip, false)
      return null
    }
    const connectMs = timeouts.connectMs / (sharesLimits && single ? CONNECT_SHARES : 1)
    const late = new Error(`no answer within ${formatDuration(connectMs)}`)
    const cancel = clock.after(connectMs, () => limit.abort(late))
    signal.addEventListener('abort', giveUp, { once: true })
    try {
      const connecting = egress.dial.connect({ ip, port: smtpPort, host }, limit.signal)
      compileReplyRules()
      const socket = await connecting
      ended('opened')
      return socket
    } catch (error) {
      ended(signal.aborted ? 'given-up' : 'failed')
      const cause = limit.signal.reason === late ? late : error
      const answer = noResponse('connect', 'connect', errorMessage(cause))
      // It is no fault of theirs where nobody can be reached.
      if (!signal.aborted && reachability.blockedOutcome === null)
        this.#options.hosts.failed(ip, answer)
      this.note(answer, host, ip)
      return null
    } finally {
      cancel()
      signal.removeEventListener('abort', giveUp)
    }
  }

  async #introduce(session: Session, host: string): Promise<RecipientOutcome | null> {
    const greeting = await session.greeting()
    if (isFailure(greeting) || greeting.code !== 220) return outcomeFor('greeting', greeting)
    return introduce(session, this.#deps, host, this.#options.startTls(host), this.#options.signal)
  }
}

/** Says EHLO, and puts TLS on where it is wanted and offered. Null when all went well. */
async function introduce(
  session: Session,
  deps: ProbeDeps,
  host: string,
  requiresTls: boolean,
  signal: AbortSignal,
): Promise<RecipientOutcome | null> {
  const ehlo = await session.ehlo(deps.egress.helo)
  if (isFailure(ehlo) || ehlo.code !== 250) return outcomeFor('ehlo', ehlo)
  if (!requiresTls || !session.offersStartTls) return null
  const failure = await startTls(session, deps, host, signal)
  // RFC 3207 §4: refused, perhaps for now only; the conversation goes on in clear text.
  return session.usable && !session.secured ? null : failure
}

/** STARTTLS, and EHLO anew (RFC 3207 §4.2). Null when all went well. */
export async function startTls(
  session: Session,
  deps: ProbeDeps,
  host: string,
  signal: AbortSignal,
): Promise<RecipientOutcome | null> {
  const started = await session.starttls(socket => deps.egress.dial.secure(socket, host, signal))
  if (isFailure(started)) return outcomeFor('starttls', started)
  if (started.code !== 220) return outcomeFor('starttls', started)
  const again = await session.ehlo(deps.egress.helo)
  return isFailure(again) || again.code !== 250 ? outcomeFor('ehlo', again) : null
}

/**
 * What leaves more open weighs more: that one exchanger takes no mail (RFC 7504) decides only where no other
 * is left that might.
 */
export function weight(answer: RecipientOutcome): number {
  if (answer.kind === 'rejected') return 1
  if (answer.kind !== 'no-response') return 5
  if (answer.why === 'no-address') return 0
  if (answer.why === 'not-public') return 2
  return answer.why === 'dns' || answer.why === 'connect' ? 3 : 4
}
