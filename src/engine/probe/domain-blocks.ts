import type { Clock } from '../../platform/clock.ts'
import { TtlMap } from '../../platform/ttl-map.ts'
import type { RateLimits } from '../rate-control/limit-table.ts'
import {
  BLOCK_MS,
  onBlocked,
  onSucceeded,
  type RateChange,
  UNSERVED_GAP_MS,
} from '../rate-control/rules.ts'
import type { CurrentBlock, SharedRateState } from '../rate-control/shared-state.ts'
import type { RecipientOutcome } from '../smtp/classify-reply.ts'

type Known = {
  readonly count: number
  readonly answer: RecipientOutcome
  readonly until: number | null
}

type DomainBlocksOptions = {
  readonly clock: Clock
  readonly egress: string
  readonly limits: RateLimits
  /** The state shared with other processes; null if there are none. */
  readonly share: SharedRateState | null
}

const DOMAINS_MAX = 20_000
/** Consecutive blocks at RCPT after which a domain counts as blocking, for every recipient. */
const REFUSALS_MAX = 3
/**
 * Consecutive refusals that no rule knows after which a domain counts as blocking: those of one
 * connection, because a recipient that is accepted after them may show that they are not about us.
 */
const UNCLEAR_REFUSALS_MAX = 8

/**
 * Domains that block one egress at RCPT. A tenant may block us while its operator and the other
 * tenants do not, so each domain is counted separately. Each process counts consecutive blocks; the
 * resulting domain block is shared with all processes.
 */
export class DomainBlocks {
  readonly #options: DomainBlocksOptions
  readonly #known: TtlMap<Known>
  /** When domains began to block, monotonic ms, also for a while after the last block. */
  readonly #since: TtlMap<{ readonly at: number }>

  constructor(options: DomainBlocksOptions) {
    this.#options = options
    this.#known = new TtlMap({ sizeMax: DOMAINS_MAX, clock: options.clock })
    this.#since = new TtlMap({ sizeMax: DOMAINS_MAX, clock: options.clock })
  }

  /**
   * Counts one blocked recipient. Returns true if the domain counts as blocking from now on.
   * `isUnclear`: no rule knows the text, so that the recipient may just not exist.
   */
  blocked(domain: string, answer: RecipientOutcome, isUnclear = false): boolean {
    const { clock } = this.#options
    const known = this.#known.get(domain)
    const count = (known?.count ?? 0) + 1
    const wasBlocking = known !== undefined && known.until !== null
    const isBlocking = wasBlocking || count >= (isUnclear ? UNCLEAR_REFUSALS_MAX : REFUSALS_MAX)
    const now = clock.monotonicNow()
    const until = isBlocking ? now + BLOCK_MS : null
    this.#known.set(domain, { count, answer, until }, BLOCK_MS)
    if (isBlocking)
      this.#since.set(domain, this.#since.get(domain) ?? { at: now }, BLOCK_MS + UNSERVED_GAP_MS)
    if (isBlocking && !wasBlocking)
      this.#change(domain, (state, now) => onBlocked(state, now, answer))
    return isBlocking
  }

  /** Clears the count of a domain whose server did not block a recipient. */
  notBlocked(domain: string): void {
    if (this.#since.size > 0) this.#since.delete(domain)
    if (this.#known.size === 0) return
    const known = this.#known.get(domain)
    if (known === undefined) return
    this.#known.delete(domain)
    if (known.until !== null)
      this.#change(domain, (state, now) => onSucceeded(state, this.#options.limits, now))
  }

  /** True if no domain can be blocking. */
  get isEmpty(): boolean {
    return this.#known.size === 0 && this.#options.share === null
  }

  /** How long the domain has blocked every recipient, in ms; 0 if it does not. */
  blockingForMs(domain: string): number {
    const since = this.#since.get(domain)
    return since === undefined ? 0 : this.#options.clock.monotonicNow() - since.at
  }

  /** Returns the current block by the domain, or null. */
  find(domain: string): CurrentBlock | null {
    const { clock, egress, share } = this.#options
    if (this.isEmpty) return null
    const { until = null, answer } = this.#known.get(domain) ?? {}
    if (until !== null && answer !== undefined)
      return { answer, leftMs: until - clock.monotonicNow() }
    return share?.refusal({ operator: toRateKey(domain), egress }) ?? null
  }

  #change(domain: string, change: RateChange) {
    const { share, egress, limits } = this.#options
    share?.open({ operator: toRateKey(domain), egress }, limits).change(change)
  }
}

/** The key of a domain in the shared state; no operator name starts with `@`. */
const toRateKey = (domain: string) => `@${domain}`

/** Whether a state belongs to a domain instead of an operator. */
export const isDomainKey = (operator: string) => operator.startsWith('@')
