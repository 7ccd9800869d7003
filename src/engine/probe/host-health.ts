import { type Clock, HOUR, MINUTE } from '../../platform/clock.ts'
import { TtlMap } from '../../platform/ttl-map.ts'
import type { RecipientOutcome } from '../smtp/classify-reply.ts'

const HOSTS_MAX = 20_000
/** Failures in a row after which a set of exchangers is left alone. */
const FAILURES_MAX = 2
/** How long it is left alone: long enough to spare a list, short enough to notice that it is back. */
const DOWN_MS = MINUTE
/** How long a demand for TLS, or a failing TLS, is remembered. */
const TLS_MS = HOUR
/** How long a host is asked without PIPELINING, or about few recipients in a transaction. */
const LIMITS_MS = HOUR

/**
 * What was met at exchangers lately: who is down, who demands TLS, whose TLS fails, whose replies
 * get out of step, who takes few recipients.
 */
export class HostHealth {
  readonly #clock: Clock
  #failures: TtlMap<{ count: number; answer: RecipientOutcome }>
  readonly #tls: TtlMap<{ works: boolean }>
  readonly #outOfStep: TtlMap<object>
  readonly #recipientsMax: TtlMap<{ max: number }>

  constructor(clock: Clock) {
    this.#clock = clock
    this.#failures = new TtlMap({ sizeMax: HOSTS_MAX, clock })
    this.#tls = new TtlMap({ sizeMax: HOSTS_MAX, clock })
    this.#outOfStep = new TtlMap({ sizeMax: HOSTS_MAX, clock })
    this.#recipientsMax = new TtlMap({ sizeMax: HOSTS_MAX, clock })
  }

  /** Nobody there could be spoken with; `answer` is what is told to those who ask meanwhile. */
  failed(mxGroupKey: string, answer: RecipientOutcome): void {
    const count = (this.#failures.get(mxGroupKey)?.count ?? 0) + 1
    this.#failures.set(mxGroupKey, { count, answer }, DOWN_MS)
  }

  markReachable(mxGroupKey: string): void {
    this.#failures.delete(mxGroupKey)
  }

  /** It was no fault of theirs: whoever counts as down is asked again. */
  forgive(): void {
    this.#failures = new TtlMap({ sizeMax: HOSTS_MAX, clock: this.#clock })
  }

  /** The answer for everybody while these exchangers are down, else null. */
  cachedFailure(mxGroupKey: string): RecipientOutcome | null {
    const failure = this.#failures.get(mxGroupKey)
    return failure !== undefined && failure.count >= FAILURES_MAX ? failure.answer : null
  }

  demandsTls(host: string): void {
    this.#tls.set(host, { works: true }, TLS_MS)
  }

  /** Notes that TLS with this host fails. True when it was only our wish, so that it can be left out. */
  tlsFailed(host: string): boolean {
    const demanded = this.#tls.get(host)?.works === true
    if (!demanded) this.#tls.set(host, { works: false }, TLS_MS)
    return !demanded
  }

  requiresTls(host: string, policy: 'demanded' | 'always' | 'never'): boolean {
    const known = this.#tls.get(host)
    if (policy === 'never') return false
    return known?.works ?? policy === 'always'
  }

  /** Replies to pipelined commands were missing or too many. */
  markOutOfStep(host: string): void {
    this.#outOfStep.set(host, NOTED, LIMITS_MS)
  }

  isOutOfStep(host: string): boolean {
    return this.#outOfStep.get(host) !== undefined
  }

  /** The host takes no more than `max` recipients in one transaction. */
  noteRecipientsMax(host: string, max: number): void {
    this.#recipientsMax.set(host, { max }, LIMITS_MS)
  }

  /** Recipients that the host takes in one transaction; infinite where it named no limit. */
  recipientsMax(host: string): number {
    return this.#recipientsMax.get(host)?.max ?? Number.POSITIVE_INFINITY
  }
}

const NOTED = {}
