import type { Duplex } from 'node:stream'
import { type Clock, HOUR, MINUTE } from '../../platform/clock.ts'
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
/** How long PIPELINING stays disabled for a host. */
const OUT_OF_STEP_MS = HOUR
/** How long a host that does not serve its domain is tried after those of its preference. */
const NOT_SERVING_MS = HOUR

/** Why an MX group or an address counts as down. */
type HostFailure = {
  readonly answer: RecipientOutcome
  /** True if it served us recently, so that it may be back soon. */
  readonly isLost: boolean
  /** True if a single verification or a stop left too little time. A list waits longer. */
  readonly isBrief: boolean
}

/**
 * Caches the recent state of MX hosts: unreachable groups, connections to addresses, TLS demands and
 * failures, replies out of step, and hosts that do not serve their domain.
 */
export class HostHealth {
  readonly #clock: Clock
  #failures: TtlMap<HostFailure & { readonly count: number }>
  /** Number of open connections by address. */
  readonly #connections = new Map<string, number>()
  readonly #served: ServedAddresses
  readonly #tls: TtlMap<{ works: boolean }>
  readonly #outOfStep: TtlMap<object>
  readonly #notServing: TtlMap<object>

  constructor(clock: Clock, served: ServedAddresses) {
    this.#clock = clock
    this.#served = served
    this.#failures = new TtlMap({ sizeMax: HOSTS_MAX, clock })
    this.#tls = new TtlMap({ sizeMax: HOSTS_MAX, clock })
    this.#outOfStep = new TtlMap({ sizeMax: HOSTS_MAX, clock })
    this.#notServing = new TtlMap({ sizeMax: HOSTS_MAX, clock })
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

  /** Records that a host of an MX group does not serve its domain: those of its preference may. */
  markNotServing(mxGroupKey: string, host: string): void {
    this.#notServing.set(`${mxGroupKey} ${host}`, NOTED, NOT_SERVING_MS)
  }

  /** Whether a host of an MX group is tried after those of its preference. */
  isNotServing(mxGroupKey: string, host: string): boolean {
    return this.#notServing.get(`${mxGroupKey} ${host}`) !== undefined
  }

  /** Records that replies to pipelined commands were missing or surplus. */
  markOutOfStep(host: string): void {
    this.#outOfStep.set(host, NOTED, OUT_OF_STEP_MS)
  }

  isOutOfStep(host: string): boolean {
    return this.#outOfStep.get(host) !== undefined
  }
}

const NOTED = {}
