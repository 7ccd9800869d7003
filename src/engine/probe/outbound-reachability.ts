import { orOnAbort } from '../../platform/abort.ts'
import { HOUR, MINUTE, SECOND, sleep } from '../../platform/clock.ts'
import { groupBy } from '../../platform/es2024.ts'
import { writeLog } from '../../platform/log.ts'
import { wasSuspended } from '../../platform/suspension.ts'
import { sanitizeText } from '../../platform/text.ts'
import { withDeadline } from '../deadline.ts'
import { isNegative } from '../dns/resolver.ts'
import { addressesOf } from '../dns/route.ts'
import type { RecipientOutcome } from '../smtp/classify-reply.ts'
import { ENGINE_LOG } from '../telemetry.ts'
import type { ProbeDeps } from './egress.ts'
import { detectInterceptor } from './interception.ts'
import { noResponse } from './probe-outcome.ts'

/**
 * A dial without a response counts as failed after this time, though it continues: a SYN is resent
 * after 1 s (RFC 6298 §2.1).
 */
export const NO_RESPONSE_MS = 3 * SECOND
/**
 * Failed dial groups, with none that opened, after which the reference MX hosts are probed. Two at
 * one MX group are enough, because a list may hold addresses of one provider only and a probe is
 * cheap.
 */
const SUSPICIOUS_AFTER = 2
/**
 * Failed MX groups after which the port counts as blocked if the reference hosts do not resolve.
 */
const CONFIRMED_AFTER = 5
/**
 * How long the port counts as open after a successful dial. In that time, failed dials are
 * suspicious only if no other opens.
 */
const OPEN_MS = HOUR
/** After a failed dial, one that opens within this time shows that only its host is down. */
const NEXT_OPEN_MS = 2 * SECOND
/** After the reference MX hosts were reached, failed dials say nothing about the port for so long. */
const REACHED_MS = 5 * MINUTE
/** How long dialing stops once the port is blocked: a proxy can restart, and a list can wait. */
const CLOSED_MS = 30 * SECOND
/**
 * How long lists wait for a network that had reached mail servers, as they do for the DNS. For one
 * that never did they wait until the second probe.
 */
const OUTAGE_WAIT_MS = 10 * MINUTE
/** The delay for callers that can wait while the reference MX hosts are probed. */
const PROBING_MS = 2 * SECOND

/** The dials of one connection attempt to an MX group, which may try several addresses. */
export type DialGroup = { readonly set: string }

/** The result of a dial; `given-up` means that we aborted it, so it is not evidence. */
export type DialResult = 'opened' | 'failed' | 'given-up'

/**
 * Tracks whether one egress can reach mail servers at all. Many hosters drop outbound traffic to
 * port 25, and each address would then cost its full timeout.
 */
export class OutboundReachability {
  readonly #deps: ProbeDeps
  #openUntil = Number.NEGATIVE_INFINITY
  #hasConnected = false
  /** When the reference MX hosts were probed last without finding the port blocked, monotonic ms. */
  #reachedAt = Number.NEGATIVE_INFINITY
  /** When the next dial is allowed, monotonic ms; null if the port does not count as blocked. */
  #closedUntil: number | null = null
  /** Since when the port has been blocked, epoch ms; null if it does not count as blocked. */
  #closedSince: number | null = null
  /** When the port was last found blocked after it was open, monotonic ms. */
  #closedAt = 0
  /** True if waiting tells no more: the port stays blocked, or no probe could decide. */
  #isConfirmed = false
  readonly #failedDials = new Set<DialGroup>()
  readonly #failedSets = new Set<string>()
  /** Aborts each dial in flight, as long as none has opened. */
  readonly #dials = new Set<() => void>()
  #probing: AbortController | null = null
  /** The search for the cause of a failed dial while the port counts as open. */
  #search: Promise<void> | null = null
  /** Ends the wait of a search for the next dial that opens. */
  #awaited: AbortController | null = null
  /** The host that answers instead of the mail servers; null if none is known. */
  #interceptor: string | null = null
  /** Until when the reference MX hosts count as answering themselves, monotonic ms. */
  #genuineUntil = Number.NEGATIVE_INFINITY
  #interceptionCheck: { readonly end: AbortController; readonly done: Promise<void> } | null = null

  readonly #onChanged: () => void

  /**
   * `onChanged` is called when the port is found blocked, and when it opens after that: earlier
   * failures say nothing about their hosts.
   */
  constructor(deps: ProbeDeps, onChanged: () => void) {
    this.#deps = deps
    this.#onChanged = onChanged
  }

  /** The outcome for all targets while the port is blocked; null if dialing is allowed. */
  get blockedOutcome(): RecipientOutcome | null {
    const { clock, smtpPort } = this.#deps
    if (this.#closedUntil === null || this.#closedUntil <= clock.monotonicNow()) return null
    if (this.#interceptor !== null) return this.interceptedOutcome
    return noResponse(
      'connect',
      'connect',
      `not probed: outbound port ${smtpPort} seems to be blocked`,
    )
  }

  /** The outcome for all targets while something else answers instead of the mail servers. */
  get interceptedOutcome(): RecipientOutcome | null {
    if (this.#interceptor === null) return null
    const host = sanitizeText(this.#interceptor)
    const detail = `${host} answers on port ${this.#deps.smtpPort} instead of the mail servers`
    return noResponse('connect', 'connect', detail)
  }

  /** Since when the port has been blocked, epoch ms; null if it does not count as blocked. */
  get closedSince(): number | null {
    return this.#closedSince
  }

  /** Whether a mail server was reached since the start; true also while the port is blocked. */
  get hasConnected(): boolean {
    return this.#hasConnected
  }

  get #isOpen(): boolean {
    return this.#openUntil > this.#deps.clock.monotonicNow()
  }

  /**
   * Waits until it is known whether a failed dial was the fault of its host or of this network: until
   * another dial opens, or the reference MX hosts were probed.
   */
  async findCause(): Promise<void> {
    await this.#search
  }

  /** How long to wait, in ms, while the reference MX hosts are being probed; null otherwise. */
  get probingForMs(): number | null {
    return this.#probing === null ? null : PROBING_MS
  }

  /**
   * How long to wait, in ms, while it is uncertain whether the port is blocked for more than a
   * moment; 0 if the next dial tells. Null if it is open, or if waiting tells no more.
   */
  get uncertainForMs(): number | null {
    if (this.#isConfirmed) return null
    if (this.probingForMs !== null) return this.probingForMs
    if (this.#closedUntil === null) return null
    return Math.max(0, this.#closedUntil - this.#deps.clock.monotonicNow())
  }

  /**
   * Registers a dial and returns the function that takes its result. Returns an outcome instead
   * while the port is blocked. Calls `giveUp` if the port turns out to be blocked during the dial.
   */
  dial(
    dialGroup: DialGroup,
    giveUp: () => void,
  ): ((result: DialResult) => void) | RecipientOutcome {
    const { clock } = this.#deps
    if (this.#isOpen) {
      return result => {
        if (result === 'opened') this.#opened()
        if (result === 'failed') this.#failedWhileOpen(dialGroup)
      }
    }
    const closed = this.blockedOutcome
    if (closed !== null) return closed
    // Connections open, so only the greetings tell when it ends.
    const intercepted = this.interceptedOutcome
    if (intercepted !== null) {
      this.#closedUntil = clock.monotonicNow() + CLOSED_MS
      void this.checkInterception()
      return intercepted
    }
    if (this.#closedUntil !== null) this.#retryNow()
    this.#dials.add(giveUp)
    const startedAt = clock.monotonicNow()
    const cancel = clock.after(NO_RESPONSE_MS, () => {
      if (!wasSuspended(clock, startedAt)) this.#failed(dialGroup)
    })
    return result => {
      cancel()
      this.#dials.delete(giveUp)
      if (result === 'opened') this.#opened()
      if (result === 'failed') this.#failed(dialGroup)
    }
  }

  /**
   * Compares the greetings of reference MX hosts, at most once an hour while they differ. Resolves
   * when it is known whether something else answers instead of the mail servers, or at the abort of
   * `signal`.
   */
  async checkInterception(signal?: AbortSignal): Promise<void> {
    const { clock } = this.#deps
    if (this.#interceptionCheck === null) {
      const isKnown = this.#genuineUntil > clock.monotonicNow()
      if (isKnown && this.#interceptor === null) return
      const end = new AbortController()
      const done = this.#compareGreetings(end.signal).finally(() => {
        this.#interceptionCheck = null
      })
      this.#interceptionCheck = { end, done }
    }
    await orOnAbort(this.#interceptionCheck.done, signal, undefined)
  }

  /** Aborts the running checks of the reference MX hosts, which serve later dials only. */
  stop(): void {
    this.cancelProbe()
    this.#interceptionCheck?.end.abort()
  }

  /** Aborts a running probe of the reference MX hosts, which serves later dials only. */
  cancelProbe(): void {
    this.#probing?.abort()
    this.#probing = null
    this.#awaited?.abort()
  }

  /** Allows one dial and probes the reference MX hosts in parallel: one success is enough. */
  #retryNow() {
    this.#closedUntil = this.#deps.clock.monotonicNow() + CLOSED_MS
    void this.#portProbe()
  }

  async #compareGreetings(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps
    const interceptor = await detectInterceptor(this.#deps, REFERENCE_MX_HOSTS, signal)
    if (signal.aborted) return
    if (interceptor === 'undecided' || interceptor === null) {
      const isGenuine = interceptor === null
      this.#genuineUntil = clock.monotonicNow() + (isGenuine ? OPEN_MS : REACHED_MS)
      if (this.#interceptor === null) return
      if (isGenuine) {
        this.#interceptor = null
        this.#opened()
      } else this.#close()
      return
    }
    this.#interceptor = interceptor
    this.#close()
  }

  #opened() {
    // A connection that opens is that of the interceptor.
    if (this.#interceptor !== null) return
    const { clock, log, smtpPort, egress } = this.#deps
    this.#openUntil = clock.monotonicNow() + OPEN_MS
    this.#hasConnected = true
    this.#failedDials.clear()
    this.#failedSets.clear()
    this.#isConfirmed = false
    // Also ends the search for an outage.
    this.cancelProbe()
    if (this.#closedUntil === null) return
    this.#closedUntil = null
    this.#closedSince = null
    this.#onChanged()
    writeLog(log, ENGINE_LOG.portReachable, { egress: egress.name }, `${smtpPort}`)
  }

  #failed(dialGroup: DialGroup) {
    if (this.#isOpen || this.#closedUntil !== null) return
    this.#count(dialGroup)
    if (this.#isSuspicious) void this.#portProbe()
  }

  #failedWhileOpen(dialGroup: DialGroup) {
    const { clock } = this.#deps
    if (this.#closedUntil !== null || clock.monotonicNow() - this.#reachedAt < REACHED_MS) return
    this.#count(dialGroup)
    this.#search ??= this.#findOutage().finally(() => {
      this.#search = null
    })
  }

  #count(dialGroup: DialGroup) {
    if (this.#failedDials.size < SUSPICIOUS_AFTER) this.#failedDials.add(dialGroup)
    if (this.#failedSets.size < CONFIRMED_AFTER) this.#failedSets.add(dialGroup.set)
  }

  get #isSuspicious(): boolean {
    return this.#failedDials.size >= SUSPICIOUS_AFTER
  }

  /** Probes the reference MX hosts if at least two dials failed and none opens for a moment. */
  async #findOutage(): Promise<void> {
    this.#awaited = new AbortController()
    await sleep(this.#deps.clock, NEXT_OPEN_MS, this.#awaited.signal)
    this.#awaited = null
    if (this.#isSuspicious) await this.#portProbe()
  }

  async #portProbe(): Promise<void> {
    if (this.#probing !== null) return
    const probing = new AbortController()
    this.#probing = probing
    const port = await probePort(this.#deps, probing.signal)
    const isDecided = port === 'open' || port === 'blocked'
    // The dials in flight get time to open.
    if (!isDecided) await sleep(this.#deps.clock, NO_RESPONSE_MS, probing.signal)
    if (this.#probing !== probing) return
    this.#probing = null
    if (port === 'blocked' || (!isDecided && this.#isOutage(port))) return this.#close()
    if (port === 'open') this.#opened()
    else this.#isConfirmed = !this.#isOpen
    this.#reachedAt = this.#deps.clock.monotonicNow()
  }

  /** Whether failed dials mean an outage although no reference MX host could be dialed. */
  #isOutage(port: 'no-hosts' | 'no-dns'): boolean {
    // A network that loses its connection loses its DNS server too.
    if (this.#isOpen) return port === 'no-dns'
    return this.#failedSets.size >= CONFIRMED_AFTER || this.#closedUntil !== null
  }

  #close() {
    const { clock, log, smtpPort, egress } = this.#deps
    const now = clock.monotonicNow()
    const isNew = this.#closedUntil === null
    if (isNew) this.#closedAt = now
    const waitMs = this.#hasConnected ? OUTAGE_WAIT_MS : 0
    this.#isConfirmed ||= !isNew && now - this.#closedAt >= waitMs
    this.#openUntil = Number.NEGATIVE_INFINITY
    this.#closedUntil = now + CLOSED_MS
    this.#closedSince ??= clock.now()
    for (const giveUp of [...this.#dials]) giveUp()
    if (!isNew) return
    this.#onChanged()
    const fields = { egress: egress.name }
    if (this.#interceptor === null)
      return writeLog(log, ENGINE_LOG.portBlocked, fields, `${smtpPort}`)
    const host = sanitizeText(this.#interceptor)
    writeLog(log, ENGINE_LOG.portIntercepted, { ...fields, host }, `${smtpPort}`)
  }
}

/**
 * MX hosts of large providers that have had these names for many years. A machine that reaches none
 * of them reaches no mail server.
 */
export const REFERENCE_MX_HOSTS = [
  'gmail-smtp-in.l.google.com',
  'outlook-com.olc.protection.outlook.com',
  'mta5.am0.yahoodns.net',
  'mx01.mail.icloud.com',
  'mx00.gmx.net',
] as const

/** Enough for the DNS lookup and for two lost SYNs. */
const PORT_PROBE_TIMEOUT_MS = 4 * SECOND
/** A single provider may block us, so one unreachable host is not evidence about the port. */
const HOSTS_MIN = 2

/**
 * Returns whether a connection to any of the reference MX hosts opens. If too few of them have
 * addresses: `no-dns` if their lookups failed, else `no-hosts`. The connection is closed as soon as it
 * opens, without sending anything.
 */
async function probePort(
  deps: ProbeDeps,
  signal: AbortSignal,
): Promise<'open' | 'blocked' | 'no-hosts' | 'no-dns'> {
  const ended = new AbortController()
  const limit = withDeadline(deps.clock, PORT_PROBE_TIMEOUT_MS, [signal, ended.signal])
  let dialled = 0
  let unanswered = 0
  const probeAt = async (host: string) => {
    const targets = await findTargets(deps, host, limit.signal)
    if (targets === null) unanswered++
    else if (targets.length > 0) dialled++
    await Promise.any((targets ?? []).map(ip => tryConnect(deps, { ip, host }, limit.signal)))
  }
  try {
    await Promise.any(REFERENCE_MX_HOSTS.map(probeAt))
    return 'open'
  } catch {
    if (dialled >= HOSTS_MIN) return 'blocked'
    return unanswered >= HOSTS_MIN ? 'no-dns' : 'no-hosts'
  } finally {
    ended.abort()
  }
}

/**
 * Returns one address of each family, because many machines have only one; null if the lookup
 * failed.
 */
async function findTargets(
  deps: ProbeDeps,
  host: string,
  signal: AbortSignal,
): Promise<string[] | null> {
  const lookup = await addressesOf(deps.resolver, host, { signal })
  if ('fault' in lookup) return isNegative(lookup) ? [] : null
  if (signal.aborted) return []
  const addresses = lookup.addresses.filter(deps.isPublic)
  const families = groupBy(addresses, ip => ip.includes(':'))
  return [...families.values()].flatMap(([first]) => first ?? [])
}

async function tryConnect(
  { egress, smtpPort }: ProbeDeps,
  to: { ip: string; host: string },
  signal: AbortSignal,
): Promise<void> {
  const socket = await egress.dial.connect({ ...to, port: smtpPort }, signal)
  socket.on('error', () => {}) // The connection is being closed, so its errors are irrelevant.
  socket.destroy()
}
