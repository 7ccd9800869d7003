import { HOUR, SECOND, sleep } from '../../platform/clock.ts'
import { addressesOf } from '../dns/route.ts'
import type { RecipientOutcome } from '../smtp/classify-reply.ts'
import type { ProbeDeps } from './egress.ts'

/** A dial without an answer for so long counts as failed, though it goes on: a SYN is sent again after 1 s (RFC 6298 §2.1). */
export const NO_RESPONSE_MS = 3 * SECOND
/**
 * Visits whose dialling failed, with none that opened, after which the well-known exchangers are tried. Two at one
 * set of exchangers are enough, as a list may hold addresses of one provider only, and trying costs little.
 */
const SUSPICIOUS_AFTER = 2
/** Sets of exchangers that failed, after which it counts as closed where the well-known exchangers cannot be looked up. */
const CERTAIN_AFTER = 5
/** How long one connection that opened is believed: nothing is counted meanwhile. */
const OPEN_MS = HOUR
/** How long nobody dials once the way is closed: enough for a proxy to start anew, short enough for a list to wait for it. */
const CLOSED_MS = 30 * SECOND
/** How long who can wait does so while the well-known exchangers are tried. */
const KNOCKING_MS = 2 * SECOND

/** One call at a set of exchangers, in which several addresses may be dialled. */
export type DialGroup = { readonly set: string }

/** What came of a dial; `given-up`: we ended it ourselves, so that it tells nothing. */
export type DialResult = 'opened' | 'failed' | 'given-up'

/**
 * Whether mail servers can be reached at all from one egress. Many hosters drop what goes out to port 25: each
 * address would then cost its whole timeout.
 */
export class OutboundReachability {
  readonly #deps: ProbeDeps
  #openUntil = Number.NEGATIVE_INFINITY
  /** When one dial more is allowed; null: nobody says that the way is closed. */
  #closedUntil: number | null = null
  #closedSince: number | null = null
  /** It was closed when it was tried again too, or nobody could tell. */
  #isConfirmed = false
  readonly #failedDials = new Set<DialGroup>()
  readonly #failedSets = new Set<string>()
  /** Ends each dial under way, as long as none has opened. */
  readonly #dials = new Set<() => void>()
  #probing: AbortController | null = null

  readonly #onReopened: () => void

  /** `onReopened` is called when the way opens after it was closed. */
  constructor(deps: ProbeDeps, onReopened: () => void) {
    this.#deps = deps
    this.#onReopened = onReopened
  }

  /** What everybody is told while the way is closed; null where somebody may dial. */
  get blockedOutcome(): RecipientOutcome | null {
    const { clock, smtpPort } = this.#deps
    if (this.#closedUntil === null || this.#closedUntil <= clock.monotonicNow()) return null
    const detail = `not asked: outbound port ${smtpPort} seems to be blocked`
    return { kind: 'no-response', why: 'connect', stage: 'connect', detail }
  }

  /** Since when it has been closed, by the wall clock; null: nobody says that it is. */
  get closedSince(): number | null {
    return this.#closedSince
  }

  /**
   * For who can wait: how long, as it is not known whether the way is closed for more than a moment. Null where it is
   * open, and where no more is to be known.
   */
  get uncertainForMs(): number | null {
    if (this.#isConfirmed) return null
    if (this.#probing !== null) return KNOCKING_MS
    const closedForMs = (this.#closedUntil ?? 0) - this.#deps.clock.monotonicNow()
    return closedForMs > 0 ? closedForMs : null
  }

  /**
   * A dial begins; the returned function takes how it ended. An answer in its place where the way is closed; when it
   * closes meanwhile, `giveUp` is called.
   */
  dial(dialGroup: DialGroup, giveUp: () => void): ((end: DialResult) => void) | RecipientOutcome {
    const { clock } = this.#deps
    if (this.#openUntil > clock.monotonicNow()) return end => end === 'opened' && this.#opened()
    const closed = this.blockedOutcome
    if (closed !== null) return closed
    if (this.#closedUntil !== null) this.#retryNow()
    this.#dials.add(giveUp)
    const cancel = clock.after(NO_RESPONSE_MS, () => this.#failed(dialGroup))
    return end => {
      cancel()
      this.#dials.delete(giveUp)
      if (end === 'opened') this.#opened()
      if (end === 'failed') this.#failed(dialGroup)
    }
  }

  /** Gives up a question that only serves dials to come. */
  cancelProbe(): void {
    this.#probing?.abort()
    this.#probing = null
  }

  /** One dial is let through, and the well-known exchangers are tried beside it: one that opens is enough. */
  #retryNow() {
    this.#closedUntil = this.#deps.clock.monotonicNow() + CLOSED_MS
    void this.#portProbe()
  }

  #opened() {
    const { clock, log, smtpPort, egress } = this.#deps
    this.#openUntil = clock.monotonicNow() + OPEN_MS
    this.#failedDials.clear()
    this.#failedSets.clear()
    this.#isConfirmed = false
    this.cancelProbe()
    if (this.#closedUntil === null) return
    this.#closedUntil = null
    this.#closedSince = null
    this.#onReopened()
    log.info(`Mail servers can be reached again on port ${smtpPort}.`, { egress: egress.name })
  }

  #failed(dialGroup: DialGroup) {
    if (this.#openUntil > this.#deps.clock.monotonicNow() || this.#closedUntil !== null) return
    if (this.#failedDials.size < SUSPICIOUS_AFTER) this.#failedDials.add(dialGroup)
    if (this.#failedSets.size < CERTAIN_AFTER) this.#failedSets.add(dialGroup.set)
    if (this.#failedDials.size >= SUSPICIOUS_AFTER) void this.#portProbe()
  }

  async #portProbe(): Promise<void> {
    if (this.#probing !== null) return
    const probing = new AbortController()
    this.#probing = probing
    const opens = await probePort(this.#deps, probing.signal)
    // Nothing is known: those who dial just now are given the time to open.
    if (opens === null) await sleep(this.#deps.clock, NO_RESPONSE_MS, probing.signal)
    if (this.#probing !== probing) return
    this.#probing = null
    const isCertain = this.#failedSets.size >= CERTAIN_AFTER || this.#closedUntil !== null
    if (opens === true) this.#opened()
    else if (opens === false || isCertain) this.#close()
    else this.#isConfirmed = true
  }

  #close() {
    const { clock, log, smtpPort, egress } = this.#deps
    const isNew = this.#closedUntil === null
    this.#isConfirmed ||= !isNew
    this.#closedUntil = clock.monotonicNow() + CLOSED_MS
    this.#closedSince ??= clock.now()
    for (const giveUp of [...this.#dials]) giveUp()
    if (isNew) log.warn(portBlockedMessage(smtpPort), { egress: egress.name })
  }
}

/** What is said once when the way closes. */
export const portBlockedMessage = (port: number) =>
  `No mail server can be reached on port ${port} from here: most likely outbound port ${port} is blocked. ` +
  'Run “ev doctor” to find out. It is tried again; until it opens, addresses end as unknown (no_connect).'

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
async function probePort(deps: ProbeDeps, signal: AbortSignal): Promise<boolean | null> {
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
