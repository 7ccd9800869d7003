import { type Clock, SECOND } from '../../platform/clock.ts'
import { withResolvers } from '../../platform/es2024.ts'
import { OUT_OF_DESCRIPTORS } from '../../platform/open-files.ts'
import type { DnsAnswer, DnsFailure, DnsFault, RecordType } from './resolver.ts'
import type { DnsFailover } from './server-list.ts'

/**
 * Sends a query to one server, once, and returns a function that cancels it. `onReply` is called
 * after the transport has returned, at most once; its argument does not matter after a cancellation.
 */
export type DnsTransport = (server: string, onReply: (reply: DnsReply) => void) => () => void
/** Records, or an error code of c-ares such as `ENOTFOUND`. `alias` is that of a `DnsFailure`. */
export type DnsReply =
  | Extract<DnsAnswer<RecordType>, { readonly records: unknown }>
  | { readonly code: string; readonly ttlMs?: number; readonly alias?: string }

/**
 * One query with failover: the next server is tried at once after an error, and after a delay if
 * the current one does not reply, which may still answer then. The first answer wins; later replies
 * are ignored.
 */
export class DnsQuery {
  readonly answer: Promise<DnsAnswer<RecordType>>
  readonly #options: DnsQueryOptions
  /** At most a few; most queries have one. */
  #attempts: readonly PendingAttempt[] = []
  readonly #resolve: (answer: DnsAnswer<RecordType>) => void
  #remaining: string[] = []
  #last: PendingAttempt | null = null
  #fault: DnsFault = 'timeout'
  #isOurs = false
  #limitReductions: number | null = null
  #isDone = false
  #delivery: Delivery | null = null
  /** The deadline, monotonic ms. */
  #endsAt = 0
  /** One timer for the current attempt and the deadline. */
  #cancelTimer: (() => void) | null = null

  constructor(options: DnsQueryOptions) {
    this.#options = options
    const { promise, resolve } = withResolvers<DnsAnswer<RecordType>>()
    this.answer = promise
    this.#resolve = resolve
  }

  /** The argument of `start`; null if it was cancelled before. */
  get limitReductions(): number | null {
    return this.#limitReductions
  }

  /** Null without an answer, and after another error of a server. */
  get delivery(): Delivery | null {
    return this.#delivery
  }

  /**
   * Starts the query, unless it is already cancelled. `limitReductions` tells which limit of queries
   * in flight it is sent under.
   */
  start(limitReductions: number): void {
    if (this.#isDone) return
    const { clock, servers, timeoutMs } = this.#options
    this.#limitReductions = limitReductions
    this.#endsAt = clock.monotonicNow() + timeoutMs
    this.#remaining = attemptOrder(servers.ordered())
    this.#next()
  }

  cancel(): void {
    this.#end({ fault: 'timeout' })
  }

  #next(): void {
    const server = this.#remaining.shift()
    if (server === undefined) {
      this.#startTimer(null, Number.POSITIVE_INFINITY)
      this.#endIfExhausted()
      return
    }
    const { timeoutMs, transport } = this.#options
    const attempt: PendingAttempt = { server, isOpen: true, cancel: NOTHING }
    this.#last = attempt
    this.#attempts = [...this.#attempts, attempt]
    attempt.cancel = transport(server, reply => this.#handle(attempt, reply))
    // With a short deadline, each attempt gets an equal share of it.
    this.#startTimer(attempt, Math.min(TIMEOUT_MS, timeoutMs / TRIES_MAX))
  }

  /** Starts the next attempt after `delayMs`, or ends the query at its deadline. */
  #startTimer(attempt: PendingAttempt | null, delayMs: number): void {
    const { clock, servers } = this.#options
    this.#cancelTimer?.()
    const leftMs = this.#endsAt - clock.monotonicNow()
    this.#cancelTimer = clock.after(Math.min(delayMs, leftMs), () => {
      if (delayMs >= leftMs) return this.#end(this.#failure)
      if (attempt?.isOpen) servers.markUnresponsive(attempt.server)
      this.#next()
    })
  }

  #handle(attempt: PendingAttempt, reply: DnsReply): void {
    attempt.isOpen = false
    if (this.#isDone) return
    const answer = 'records' in reply ? reply : toFailure(reply)
    if ('records' in answer || answer.fault === 'no-name' || answer.fault === 'no-data') {
      this.#options.servers.markResponsive(attempt.server)
      this.#delivery ??= this.#deliveryOf(attempt)
      this.#end(answer)
    } else if ('code' in reply) {
      if (answer.fault === 'server') this.#fault = 'server'
      this.#handleError(attempt, reply.code)
    }
  }

  #deliveryOf(answered: PendingAttempt): Delivery | null {
    const [first] = this.#attempts
    if (first === answered) return 'first'
    return first?.isOpen === true ? 'lost' : null
  }

  #handleError(attempt: PendingAttempt, code: string): void {
    const { servers } = this.#options
    const { server } = attempt
    // The next attempt waits for the silence timeout, as descriptors may be free by then.
    if (OUT_OF_DESCRIPTORS.has(code)) {
      this.#isOurs = true
      return
    }
    if (code === 'EREFUSED' && attempt === this.#attempts[0]) this.#delivery = 'refused'
    if (NO_REPLY.has(code)) {
      servers.markUnresponsive(server)
    } else {
      servers.markResponsive(server)
      this.#limitTries()
    }
    if (!TEMPORARY.has(code)) this.#remaining = this.#remaining.filter(other => other !== server)
    // A restarting server refuses at once, so a retry at the same server waits for the silence
    // timeout.
    const mustWait = code === 'ECONNREFUSED' && this.#remaining[0] === server
    if (attempt === this.#last && !mustWait) this.#next()
    else this.#endIfExhausted()
  }

  /** More attempts make up for lost packets, and not for an error that a server reports. */
  #limitTries(): void {
    const max = Math.max(TRIES_AFTER_ERROR_MAX, this.#options.servers.ordered().length)
    this.#remaining = this.#remaining.slice(0, Math.max(0, max - this.#attempts.length))
  }

  #endIfExhausted(): void {
    if (this.#remaining.length > 0 || this.#attempts.some(({ isOpen }) => isOpen)) return
    this.#end(this.#failure)
  }

  get #failure(): DnsFailure {
    return this.#isOurs ? { fault: this.#fault, isOurs: true } : { fault: this.#fault }
  }

  #end(answer: DnsAnswer<RecordType>): void {
    if (this.#isDone) return
    this.#isDone = true
    this.#cancelTimer?.()
    for (const attempt of this.#attempts) if (attempt.isOpen) attempt.cancel()
    this.#resolve(answer)
  }
}

/**
 * What became of the first packet of a query: `first` if it was answered, `lost` if only a later one
 * was. A server that is slow with a name answers the first one as soon as a later one. `refused`: the
 * first server refused the query, as dnsmasq does with more than 150 in flight.
 */
type Delivery = 'first' | 'lost' | 'refused'

type DnsQueryOptions = {
  readonly transport: DnsTransport
  readonly servers: DnsFailover
  readonly clock: Clock
  readonly timeoutMs: number
}
type PendingAttempt = { readonly server: string; isOpen: boolean; cancel: () => void }

const NOTHING = () => {}

/**
 * Without a reply for this long, the next server is tried: above the time of most answers, and low
 * enough to hide a dead first server.
 */
const TIMEOUT_MS = SECOND
/**
 * Maximum number of attempts of a query; one per server if there are more servers. Of packets of
 * which one in ten is lost in each direction, three attempts lose one query in 150, five one in
 * 4,000.
 */
const TRIES_MAX = 5
/** Maximum number of attempts of a query to which a server replied with a temporary error. */
const TRIES_AFTER_ERROR_MAX = 3

/** Returns the servers in order of attempts, starting over until the maximum is reached. */
function attemptOrder(servers: readonly string[]): string[] {
  const order: string[] = []
  while (servers.length > 0 && order.length < TRIES_MAX) order.push(...servers)
  return order.slice(0, Math.max(TRIES_MAX, servers.length))
}

/** Codes of an attempt without any reply. */
const NO_REPLY: ReadonlySet<string> = new Set(['ETIMEOUT', 'ECONNREFUSED', 'ECANCELLED'])
/**
 * Temporary errors. After any other (REFUSED, FORMERR, NOTIMP, garbage) the server is not retried.
 */
const TEMPORARY: ReadonlySet<string> = new Set(['ESERVFAIL', 'ETIMEOUT', 'ECONNREFUSED'])

const toFailure = ({
  code,
  ...more
}: Extract<DnsReply, { readonly code: string }>): DnsFailure => ({
  fault: faultFrom(code),
  ...more,
})

function faultFrom(code: string): DnsFault {
  if (code === 'ENOTFOUND') return 'no-name'
  if (code === 'ENODATA') return 'no-data'
  const isUnsent = code === 'ECANCELLED' || OUT_OF_DESCRIPTORS.has(code)
  return code === 'ETIMEOUT' || isUnsent ? 'timeout' : 'server'
}
