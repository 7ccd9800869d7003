import type { Duplex } from 'node:stream'
import { CallbackAbortController, onAbort, orOnAbort } from '../../platform/abort.ts'
import { errorMessage } from '../../platform/error.ts'
import { formatDuration } from '../../platform/format.ts'
import { isOutOfDescriptors } from '../../platform/open-files.ts'
import { wasSuspended } from '../../platform/suspension.ts'
import { type DnsFailure, isNegative } from '../dns/resolver.ts'
import { connectOrder } from '../dns/route.ts'
import type { AddressPermit, AddressStart } from '../rate-control/destination-limits.ts'
import { compileReplyRules, type RecipientOutcome } from '../smtp/classify-reply.ts'
import { isFailure } from '../smtp/connection.ts'
import { hasNoRoute, isOutOfPorts, isProxyFault, type Target } from '../smtp/dial.ts'
import { Session } from '../smtp/session.ts'
import type { ConnectionPermits } from './connection-permits.ts'
import type { ProbeDeps, Timeouts } from './egress.ts'
import { HostLookups } from './host-lookups.ts'
import type { EgressState } from './mx-group-state.ts'
import { getLimitDivisor, type MxGroupPlan, type ProbeTarget } from './mx-groups.ts'
import { type DialGroup, type DialResult, NO_RESPONSE_MS } from './outbound-reachability.ts'
import type { ProbeListener, ServerCall } from './probe-listener.ts'
import {
  isThrottling,
  NO_DESCRIPTOR,
  NO_PORT,
  noResponse,
  outcomeFor,
  PROXY_FAULT,
} from './probe-outcome.ts'

/** A session with an MX host after its greeting and EHLO. */
export type OpenSession = {
  readonly session: Session
  readonly host: string
  readonly ip: string
  readonly connectMs: number
  /** The failure of another host that was tried before this one; null if there is none. */
  readonly unreached: OpenFailure | null
  /** The caller releases it when the connection is closed. */
  readonly permit: AddressPermit
}

/** Why no address may be dialed now. Addresses without a limit, if any, have failed already. */
export type HeldConnection = Exclude<AddressStart, { readonly permit: AddressPermit }>

/** No session could be opened: the most significant outcome on the way, and its host. */
export type OpenFailure = {
  readonly answer: RecipientOutcome
  readonly host: string | null
  readonly ip: string | null
  /** True if our deadline passed too early to conclude anything about the MX hosts. */
  readonly cutShort: boolean
  /** False if nothing was dialed because the addresses had failed recently. */
  readonly asked: boolean
  /** True if an address that failed, or that closed the connection, had served us recently. */
  readonly isLost: boolean
  /** True if an address served another connection when it refused this one of a list. */
  readonly isOneTooMany: boolean
}

/** RFC 5321 §5.1 asks for several addresses to be tried, "at least two"; Postfix tries five. */
const ADDRESSES_MAX = 5
/** The most sessions to open, as Postfix's smtp_mx_session_limit. */
const SESSIONS_MAX = 2

/** Two addresses of each operator share the connect time of a single verification. */
const CONNECT_TIME_SHARES = 2

type OpenOptions = {
  readonly signal: AbortSignal
  /** Receives the result of each host and address that is tried, and the lines. */
  readonly listener: ProbeListener | null
  /** True if a caller waits: a silent address must leave time for the others. */
  readonly single: boolean
  readonly timeouts: Timeouts
  /** True if these are so long that an address which says nothing counts as down. */
  readonly isPatient: boolean
  readonly permits: ConnectionPermits
}

/** Opens a session with the first MX host that accepts one: hosts by preference, then addresses. */
export async function openSession(
  egress: EgressState,
  plan: MxGroupPlan<ProbeTarget>,
  options: OpenOptions,
): Promise<OpenSession | OpenFailure | { readonly held: HeldConnection }> {
  const opener = new SessionOpener(egress, plan, options)
  const isNotServing = (host: string) => egress.hosts.isNotServing(plan.key, host)
  const hosts = connectOrder(plan.route, egress.deps.random, isNotServing)
  const lookups = new HostLookups(egress.deps, hosts, plan, options.signal)
  for (let next = await lookups.next(); next !== null; next = await lookups.next()) {
    const { host, lookup } = next
    if (options.signal.aborted) return { ...opener.timedOut(host), cutShort: true }
    // A host that does not serve the domain decides nothing while another one was not reached.
    if (opener.isAnyUnreached && isNotServing(host)) continue
    if ('fault' in lookup) {
      opener.note(lookupFailure(host, lookup), host, null)
      continue
    }
    const addresses = options.permits.inOrder(lookup.addresses)
    for (const [i, ip] of addresses.entries()) {
      const hasMore = () => i < addresses.length - 1 || lookups.hasMore
      const opened = await opener.open(host, ip, hasMore)
      if (opened !== null) return opened
      // The permits of the other addresses of this host take even longer.
      if (opener.held !== null) return { held: opener.held }
      if (options.signal.aborted) return opener.timedOut(host)
      if (opener.exhausted) return opener.toFailure()
    }
  }
  const { answer, ...where } = opener.toFailure()
  // The hosts that were not looked up may have an address, so the result is not certain.
  const isUncertain = lookups.isCut && answer.kind === 'no-response' && answer.why === 'no-address'
  return {
    answer: isUncertain ? noResponse('connect', 'connect', answer.detail) : answer,
    ...where,
  }
}

function lookupFailure(host: string, failure: DnsFailure): RecipientOutcome {
  if (failure.isOurs) return NO_DESCRIPTOR
  const why = isNegative(failure) ? 'no-address' : 'dns'
  return noResponse(why, 'connect', `${host}: ${failure.detail ?? failure.fault}`)
}

type DialTimer = {
  readonly cancel: () => void
  /** The time after which it ended the dial, in ms; null if it did not. */
  readonly endedAfterMs: number | null
}

type FailedDial = {
  readonly permit: AddressPermit
  /** Whether another connection to the address was open when it was dialed. */
  readonly wasServing: boolean
  /** The time after which the dial was ended, in ms; null if it failed before. */
  readonly endedAfterMs: number | null
  readonly onDialEnd: (result: DialResult) => void
}

/** Tries the addresses of hosts until one of them opens a session. */
class SessionOpener {
  readonly #egress: EgressState
  readonly #deps: ProbeDeps
  readonly #options: OpenOptions
  readonly #plan: Pick<MxGroupPlan<ProbeTarget>, 'key' | 'sharesLimits'>
  readonly #dialGroup: DialGroup
  #addresses = 0
  #sessions = 0
  /** When the current address was dialed, monotonic ms. */
  #startedAt = 0
  #best: Pick<OpenFailure, 'answer' | 'host' | 'ip'> | null = null
  /** Addresses that were skipped because they failed recently. */
  #skipped = 0
  #isLost = false
  #isOneTooMany = false
  held: HeldConnection | null = null

  constructor(egress: EgressState, plan: MxGroupPlan<ProbeTarget>, options: OpenOptions) {
    this.#egress = egress
    this.#deps = egress.deps
    this.#options = options
    this.#plan = plan
    this.#dialGroup = { set: plan.key }
  }

  get exhausted(): boolean {
    if (this.#egress.reachability.blockedOutcome !== null) return true
    const divisor = getLimitDivisor(this.#plan)
    return (
      this.#addresses >= Math.floor(ADDRESSES_MAX / divisor) ||
      this.#sessions >= SESSIONS_MAX / divisor
    )
  }

  /** `hasMore` tells whether another address is known, which needs a share of the connect time. */
  async open(host: string, ip: string, hasMore: () => boolean): Promise<OpenSession | null> {
    const deps = this.#deps
    if (!deps.isPublic(ip)) {
      this.note(noResponse('not-public', 'connect', `${ip} is not a public address`), host, ip)
      return null
    }
    const down = this.#egress.hosts.cachedFailure(ip)
    if (down !== null) {
      this.#skipped++
      this.#isLost ||= down.isLost
      this.note(down.answer, host, ip, false)
      return null
    }
    const acquired = await this.#options.permits.address(ip)
    if (!('permit' in acquired)) {
      this.held = acquired
      return null
    }
    let opened: OpenSession | null = null
    try {
      opened = await this.#openWithPermit(host, ip, hasMore, acquired.permit)
      return opened
    } finally {
      if (opened === null) acquired.permit.release()
    }
  }

  async #openWithPermit(
    host: string,
    ip: string,
    hasMore: () => boolean,
    permit: AddressPermit,
  ): Promise<OpenSession | null> {
    const deps = this.#deps
    const { listener, signal, timeouts } = this.#options
    this.#addresses++
    this.#startedAt = deps.clock.monotonicNow()
    const socket = await this.#dial(host, ip, hasMore, permit)
    if (socket === null) return null
    this.#egress.hosts.opened(ip, socket)
    this.#sessions++
    this.#notify({ host, ip, dialled: true, answer: null })
    const session = new Session(socket, {
      clock: deps.clock,
      greetingTimeoutMs: timeouts.greetingMs,
      replyTimeoutMs: timeouts.replyMs,
      sessionTimeoutMs: timeouts.sessionMs,
      listener: listener && (line => listener.onLine(line)),
    })
    const unsubscribe = onAbort(signal, () => session.close())
    try {
      const answer = await this.#introduce(session, host)
      this.#noteSilence(ip, answer)
      if (answer === null) {
        this.#egress.hosts.served(ip, socket)
        const unreached = this.#unreachedBefore(host)
        return { session, host, ip, connectMs: this.#ageMs, unreached, permit }
      }
      this.note(answer, host, ip)
      if (answer.kind === 'deferred') permit.throttled(answer.retryAfterMs)
      // The next host is dialed only after this connection is closed.
      if (session.usable) await session.quit()
      return null
    } catch (error) {
      session.close()
      throw error
    } finally {
      unsubscribe()
    }
  }

  /**
   * Notes an address that says nothing. After a long wait it counts as down, as if it had not
   * accepted the connection.
   */
  #noteSilence(ip: string, answer: RecipientOutcome | null) {
    const { signal, isPatient } = this.#options
    const { hosts } = this.#egress
    const isLost = (answer?.why === 'timeout' || answer?.why === 'closed') && hosts.hasServed(ip)
    this.#isLost ||= isLost
    if (answer?.why !== 'timeout') return hosts.markReachable(ip)
    const isOurs = signal.aborted || wasSuspended(this.#deps.clock, this.#startedAt)
    if (!isOurs && isPatient) hosts.failed(ip, { answer, isLost, isBrief: false })
  }

  /** Keeps the most significant outcome: a server's reply ranks above a missing one. */
  note(answer: RecipientOutcome, host: string, ip: string | null, dialled = true) {
    // After our deadline a failure is not the server's fault.
    if (!this.#options.signal.aborted) this.#notify({ host, ip, dialled, answer })
    if (this.#best === null || weight(answer) > weight(this.#best.answer)) {
      this.#best = { answer, host, ip }
    }
  }

  #notify(call: Omit<ServerCall, 'port'>) {
    this.#options.listener?.onCall({ ...call, port: this.#deps.smtpPort })
  }

  /** Whether a host was not reached, other than one that accepts no mail or has no address. */
  get isAnyUnreached(): boolean {
    return this.#best !== null && weight(this.#best.answer) > 1
  }

  /** Returns the failure of such a host, if it is another one. */
  #unreachedBefore(host: string): OpenFailure | null {
    return this.isAnyUnreached && this.#best?.host !== host ? this.toFailure() : null
  }

  toFailure(): OpenFailure {
    const noHost = {
      answer: noResponse('no-address', 'connect', 'no host'),
      host: null,
      ip: null,
    }
    const asked = this.#addresses > 0 || this.#skipped === 0
    return {
      ...(this.#best ?? noHost),
      cutShort: false,
      asked,
      isLost: this.#isLost,
      isOneTooMany: this.#isOneTooMany,
    }
  }

  timedOut(host: string): OpenFailure {
    const answer = noResponse(
      'timeout',
      this.#sessions > 0 ? 'greeting' : 'connect',
      'deadline exceeded',
    )
    this.note(answer, host, null)
    return { ...this.toFailure(), cutShort: this.#ageMs < NO_RESPONSE_MS }
  }

  get #ageMs(): number {
    return this.#deps.clock.monotonicNow() - this.#startedAt
  }

  async #dial(
    host: string,
    ip: string,
    hasMore: () => boolean,
    permit: AddressPermit,
  ): Promise<Duplex | null> {
    const { smtpPort, egress } = this.#deps
    const { hosts } = this.#egress
    const { signal } = this.#options
    const limit = new CallbackAbortController()
    const giveUp = () => limit.abort()
    const onDialEnd = this.#egress.reachability.dial(this.#dialGroup, giveUp)
    if (typeof onDialEnd !== 'function') {
      this.note(onDialEnd, host, ip, false)
      return null
    }
    const timer = this.#startTimer(hasMore, giveUp)
    const unsubscribe = onAbort(signal, giveUp)
    const target = { ip, port: smtpPort, host }
    const wasServing = hosts.isServing(ip)
    try {
      const connecting = egress.dial.connect(target, limit.signal)
      compileReplyRules()
      const socket = await connecting
      onDialEnd('opened')
      return socket
    } catch (error) {
      // A timer that is late shows a suspension.
      timer.cancel()
      const { endedAfterMs } = timer
      await this.#dialFailed(error, target, { permit, wasServing, endedAfterMs, onDialEnd })
      return null
    } finally {
      timer.cancel()
      unsubscribe()
    }
  }

  /**
   * Ends a dial after the connect time. A dial of a single verification has only a share of it if
   * there is another address, such as one of IPv6, which may become known during the dial.
   */
  #startTimer(hasMore: () => boolean, endDial: () => void): DialTimer {
    const { clock } = this.#deps
    const { single, timeouts } = this.#options
    const connectMs = timeouts.connectMs / (single ? getLimitDivisor(this.#plan) : 1)
    const shareMs = single ? connectMs / CONNECT_TIME_SHARES : connectMs
    let endedAfterMs: number | null = null
    const end = (afterMs: number) => {
      endedAfterMs = afterMs
      endDial()
    }
    let cancel = clock.after(shareMs, () => {
      if (shareMs === connectMs || hasMore()) return end(shareMs)
      cancel = clock.after(connectMs - shareMs, () => end(connectMs))
    })
    return {
      cancel: () => cancel(),
      get endedAfterMs() {
        return endedAfterMs
      },
    }
  }

  /** Notes the outcome of a dial that failed, once it is known whether that is the fault of its host. */
  async #dialFailed(
    error: unknown,
    target: Target,
    { permit, wasServing, endedAfterMs, onDialEnd }: FailedDial,
  ): Promise<void> {
    const { signal, single } = this.#options
    const { reachability, hosts } = this.#egress
    const { host, ip } = target
    const isServing = !single && (wasServing || hosts.isServing(ip))
    const ownLimit = this.#ownLimitOf(error, target)
    const isOurs =
      signal.aborted || ownLimit !== null || wasSuspended(this.#deps.clock, this.#startedAt)
    onDialEnd(isOurs ? 'given-up' : 'failed')
    if (!isOurs && !single) await orOnAbort(reachability.findCause(), signal, undefined)
    // Nothing was sent, and the other family of addresses may have a route.
    if (hasNoRoute(error)) this.#addresses--
    // A list waits for a busy proxy. If it fails for all hosts, the port counts as blocked.
    const isBusyProxy = !single && isProxyFault(error)
    const detail =
      endedAfterMs === null
        ? errorMessage(error)
        : `no answer within ${formatDuration(endedAfterMs)}`
    const refused = isBusyProxy ? PROXY_FAULT : noResponse('connect', 'connect', detail)
    const answer = ownLimit ?? refused
    // If the outbound port is blocked, the address is not marked as failed.
    const isHostDown = !isOurs && !isBusyProxy && reachability.blockedOutcome === null
    if (isHostDown && isServing) {
      this.#isOneTooMany = true
      permit.limitReached()
    } else if (isHostDown) {
      const isLost = hosts.hasServed(ip)
      this.#isLost ||= isLost
      hosts.failed(ip, { answer, isLost, isBrief: false })
    }
    this.note(answer, host, ip)
  }

  /** Returns the outcome of a dial that a limit of this machine prevented, else null. */
  #ownLimitOf(error: unknown, target: Target): RecipientOutcome | null {
    if (isOutOfDescriptors(error)) return NO_DESCRIPTOR
    const families = this.#deps.egress.getFamilies?.() ?? 'both'
    return isOutOfPorts(error, target, families) ? NO_PORT : null
  }

  /**
   * Waits for the greeting, sends EHLO, and starts TLS if it is required and offered. Returns null on
   * success.
   */
  async #introduce(session: Session, host: string): Promise<RecipientOutcome | null> {
    const greeting = await session.greeting()
    if (isFailure(greeting) || greeting.code !== 220) return outcomeFor('greeting', greeting)
    const requiresTls = this.#egress.hosts.requiresTls(host, this.#deps.startTls)
    const ehlo = await session.ehlo(this.#deps.egress.helo)
    if (isFailure(ehlo) || ehlo.code !== 250) return outcomeFor('ehlo', ehlo)
    if (!requiresTls || !session.offersStartTls) return null
    const failure = await startTls(session, this.#deps, host, this.#options.signal)
    if (failure !== null && isThrottling(failure)) return failure
    // RFC 3207 §4: after a refused STARTTLS, possibly temporary, the session goes on in clear text.
    return session.usable && !session.secured ? null : failure
  }
}

/** Sends STARTTLS, then EHLO again (RFC 3207 §4.2). Returns null on success. */
export async function startTls(
  session: Session,
  deps: ProbeDeps,
  host: string,
  signal: AbortSignal,
): Promise<RecipientOutcome | null> {
  const started = await session.starttls(socket => deps.egress.dial.secure(socket, host, signal))
  if (isFailure(started) || started.code !== 220) return outcomeFor('starttls', started)
  const ehlo = await session.ehlo(deps.egress.helo)
  return isFailure(ehlo) || ehlo.code !== 250 ? outcomeFor('ehlo', ehlo) : null
}

/**
 * Ranks outcomes: the less certain one weighs more. That one host accepts no mail (RFC 7504)
 * decides only if no other host is left that might.
 */
export function weight(answer: RecipientOutcome): number {
  if (answer.kind === 'rejected') return 1
  if (answer.kind !== 'no-response') return 5
  if (answer.why === 'no-address') return 0
  if (answer.why === 'not-public') return 2
  return answer.why === 'dns' || answer.why === 'connect' || answer.why === 'own-limit' ? 3 : 4
}
