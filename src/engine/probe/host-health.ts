import type { Duplex } from 'node:stream'
import { type Clock, DAY, HOUR, MINUTE } from '../../platform/clock.ts'
import { TtlMap } from '../../platform/ttl-map.ts'
import type { RecipientOutcome } from '../smtp/classify-reply.ts'
import type { ServedAddresses } from './served-addresses.ts'

const HOSTS_MAX = 20_000
/** Consecutive failures after which an MX group counts as down. */
const FAILURES_MAX = 2
/** How long it is not dialed: long enough to spare a list, short enough to notice its recovery. */
const DOWN_MS = MINUTE
/** How long a demand for TLS, or a TLS failure, is cached. */
const TLS_MS = HOUR
/** How long PIPELINING stays disabled for a host, or its transactions or connections stay limited. */
const LIMITS_MS = HOUR
/** How long an accepted recipient is asked again: mailboxes are rarely closed within a day. */
const WITNESS_MS = DAY
/**
 * Rejections in a row after which the witness of a server is asked again: one or two are common in
 * any list, and a server that counts them allows more.
 */
const REJECTED_IN_A_ROW_MAX = 3

/** Why an MX group or an address counts as down. */
type HostFailure = {
  readonly answer: RecipientOutcome
  /** True if it served us recently, so that it may be back soon. */
  readonly isLost: boolean
  /** True if a single verification or a stop left too little time. A list waits longer. */
  readonly isBrief: boolean
}

/** How many recipients were named in a connection, and how many commands were refused. */
export type ConnectionCounts = { readonly recipients: number; readonly refusals: number }

/** `limit`: it would defer anyone. `recipients`: it greylists these, or their mailboxes are busy. */
type DeferralMeaning = 'limit' | 'recipients' | 'unclear'

const UNLIMITED: ConnectionCounts = {
  recipients: Number.POSITIVE_INFINITY,
  refusals: Number.POSITIVE_INFINITY,
}

/**
 * The names under which a server is known, the most specific first: its IP address, unless customers
 * share it, its host name, and the hosts of the same preference. They usually share their limits and
 * their mailboxes.
 */
export type ServerKeys = readonly string[]

/** A recipient that a server has answered. */
export type AnsweredRecipient = { readonly domain: string; readonly recipient: string }

/** The last recipient that a server accepted. */
export type Witness = AnsweredRecipient & {
  /** Whether the server ever rejected its witness, too. */
  readonly hasRejectedAll: boolean
}

type KnownWitness = {
  -readonly [K in keyof Witness]: Witness[K]
} & {
  /** Recipients that the server has rejected since then. */
  rejectedInARow: number
}

/**
 * Caches the recent state of MX hosts: unreachable groups, connections to addresses, TLS demands and
 * failures, replies out of step, limits of each transaction and connection, and whether rejections
 * can be trusted.
 */
export class HostHealth {
  readonly #clock: Clock
  #failures: TtlMap<HostFailure & { readonly count: number }>
  /** Number of open connections by address. */
  readonly #connections = new Map<string, number>()
  readonly #served: ServedAddresses
  readonly #tls: TtlMap<{ works: boolean }>
  readonly #outOfStep: TtlMap<object>
  readonly #recipientsMax: TtlMap<{ max: number }>
  /** What it means that a host defers recipients after it has answered others. */
  readonly #deferrals: TtlMap<{ meaning: DeferralMeaning }>
  /** The counts of the last connection in which the host asked to slow down, and its limits. */
  readonly #full: TtlMap<{ counts: ConnectionCounts; limits: ConnectionCounts }>
  readonly #witnesses: TtlMap<KnownWitness>

  constructor(clock: Clock, served: ServedAddresses) {
    this.#clock = clock
    this.#served = served
    this.#failures = new TtlMap({ sizeMax: HOSTS_MAX, clock })
    this.#tls = new TtlMap({ sizeMax: HOSTS_MAX, clock })
    this.#outOfStep = new TtlMap({ sizeMax: HOSTS_MAX, clock })
    this.#recipientsMax = new TtlMap({ sizeMax: HOSTS_MAX, clock })
    this.#deferrals = new TtlMap({ sizeMax: HOSTS_MAX, clock })
    this.#full = new TtlMap({ sizeMax: HOSTS_MAX, clock })
    this.#witnesses = new TtlMap({ sizeMax: HOSTS_MAX, clock })
  }

  /** Records a connection to an address. */
  opened(ip: string, connection: Duplex): void {
    this.#countConnection(ip, 1)
    connection.once('close', () => this.#countConnection(ip, -1))
  }

  /** Records that the address began to serve us over a connection. */
  served(ip: string, connection: Duplex): void {
    this.#served.add(ip)
    connection.once('close', () => this.#served.add(ip))
  }

  #countConnection(ip: string, change: 1 | -1) {
    const count = (this.#connections.get(ip) ?? 0) + change
    if (count === 0) this.#connections.delete(ip)
    else this.#connections.set(ip, count)
  }

  /** Whether a connection to an address is open. */
  isServing(ip: string): boolean {
    return this.#connections.has(ip)
  }

  /** Whether an address served us recently, through any egress. */
  hasServed(ip: string): boolean {
    return this.#served.has(ip)
  }

  /** Records that no session could be opened; the failure is returned to callers in the meantime. */
  failed(mxGroupKey: string, failure: HostFailure): void {
    const count = (this.#failures.get(mxGroupKey)?.count ?? 0) + 1
    this.#failures.set(mxGroupKey, { count, ...failure }, DOWN_MS)
  }

  markReachable(mxGroupKey: string): void {
    this.#failures.delete(mxGroupKey)
  }

  /** Clears all failures, because their cause was the network of this machine. */
  clearFailures(): void {
    this.#failures = new TtlMap({ sizeMax: HOSTS_MAX, clock: this.#clock })
  }

  /** Returns the cached failure while the MX group counts as down, else null. */
  cachedFailure(mxGroupKey: string): HostFailure | null {
    const failure = this.#failures.get(mxGroupKey)
    return failure !== undefined && failure.count >= FAILURES_MAX ? failure : null
  }

  demandsTls(host: string): void {
    this.#tls.set(host, { works: true }, TLS_MS)
  }

  /** Records that TLS with this host fails. Returns true if the host does not demand it. */
  tlsFailed(host: string): boolean {
    const isRequired = this.#tls.get(host)?.works === true
    if (!isRequired) this.#tls.set(host, { works: false }, TLS_MS)
    return !isRequired
  }

  requiresTls(host: string, policy: 'demanded' | 'always' | 'never'): boolean {
    const known = this.#tls.get(host)
    if (policy === 'never') return false
    return known?.works ?? policy === 'always'
  }

  /** Records that replies to pipelined commands were missing or surplus. */
  markOutOfStep(host: string): void {
    this.#outOfStep.set(host, NOTED, LIMITS_MS)
  }

  isOutOfStep(host: string): boolean {
    return this.#outOfStep.get(host) !== undefined
  }

  /** Records that the host deferred the last recipients of a transaction after it answered others. */
  noteDeferral(host: string, meaning: DeferralMeaning): void {
    if (this.deferralMeaning(host) !== 'limit') this.#deferrals.set(host, { meaning }, LIMITS_MS)
  }

  /** Returns what that means; null if it has not done so. */
  deferralMeaning(host: string): DeferralMeaning | null {
    return this.#deferrals.get(host)?.meaning ?? null
  }

  /** Records that the host accepts at most `max` recipients per transaction. */
  noteRecipientsMax(host: string, max: number): void {
    this.#recipientsMax.set(host, { max }, LIMITS_MS)
  }

  /** The recipients that the host accepts per transaction; infinite if no limit is known. */
  recipientsMax(host: string): number {
    return this.#recipientsMax.get(host)?.max ?? Number.POSITIVE_INFINITY
  }

  /**
   * Records what a connection had taken when the host asked to slow down. The host may have counted
   * the recipients of a minute, but the same number in two connections in a row is its limit for
   * each: of recipients, or of refused ones.
   */
  noteFull(host: string, counts: ConnectionCounts): void {
    const before = this.#full.get(host)?.counts
    let limits = UNLIMITED
    if (counts.recipients === before?.recipients)
      limits = { ...UNLIMITED, recipients: counts.recipients }
    else if (counts.refusals === before?.refusals && counts.refusals > 0)
      limits = { ...UNLIMITED, refusals: counts.refusals }
    this.#full.set(host, { counts, limits }, LIMITS_MS)
  }

  /** The known limits of the host for each connection; infinite if there are none. */
  connectionLimits(host: string): ConnectionCounts {
    return this.#full.get(host)?.limits ?? UNLIMITED
  }

  /**
   * Records that a host rejects every recipient after some number of refusals in a connection; it
   * accepted one after `max` of them.
   */
  noteRefusalsMax(host: string, max: number): void {
    const limits = { ...UNLIMITED, refusals: Math.max(1, max) }
    this.#full.set(host, { counts: limits, limits }, LIMITS_MS)
  }

  /** Records that a server accepted a recipient, so that it does not reject everyone. */
  noteAccepted(server: ServerKeys, domain: string, recipient: string): void {
    const hasRejectedAll = this.#witnessOf(server)?.hasRejectedAll ?? false
    const witness = { domain, recipient, rejectedInARow: 0, hasRejectedAll }
    for (const key of server) this.#witnesses.set(key, witness, WITNESS_MS)
  }

  /** Forgets the witness of a connection whose replies did not belong to their commands. */
  forgetWitness(server: ServerKeys): void {
    for (const key of server) this.#witnesses.delete(key)
  }

  /** Counts a rejection by a server that has a witness. */
  noteRejected(server: ServerKeys): void {
    const known = this.#witnessOf(server)
    if (known !== undefined) known.rejectedInARow++
  }

  /** Records that a server rejected its witness: it rejects everyone. */
  noteWitnessRejected(server: ServerKeys): void {
    const known = this.#witnessOf(server)
    if (known !== undefined) known.hasRejectedAll = true
  }

  /**
   * Returns the witness of a server, to be asked again after so many rejections in a row of a
   * connection, or of several ones; null if there is none, or if these are too few.
   */
  findWitness(server: ServerKeys, rejectedInARow: number): Witness | null {
    const known = this.#witnessOf(server)
    if (known === undefined) return null
    const count = Math.max(rejectedInARow, known.rejectedInARow)
    return count >= (known.hasRejectedAll ? 1 : REJECTED_IN_A_ROW_MAX) ? known : null
  }

  #witnessOf(server: ServerKeys): KnownWitness | undefined {
    for (const key of server) {
      const known = this.#witnesses.get(key)
      if (known !== undefined) return known
    }
    return undefined
  }
}

const NOTED = {}
