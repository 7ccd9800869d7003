import type { Clock } from '../../platform/clock.ts'
import { TtlMap } from '../../platform/ttl-map.ts'
import type { RateLimits } from '../rate-control/controller.ts'
import { BLOCK_MS, onBlocked, onSucceeded, type RateChange } from '../rate-control/rules.ts'
import type { CurrentBlock, SharedRateState } from '../rate-control/shared-state.ts'
import type { RecipientOutcome } from '../smtp/classify-reply.ts'

type Known = {
  readonly count: number
  readonly answer: RecipientOutcome
  readonly until: number | null
}

export type DomainBlocksOptions = {
  readonly clock: Clock
  readonly egress: string
  readonly row: RateLimits
  /** Where other processes go by the same states; null: there are none. */
  readonly share: SharedRateState | null
}

const DOMAINS_MAX = 20_000
/** Refusals at RCPT in a row after which a domain is taken to refuse us, whoever the recipient is. */
const REFUSALS_MAX = 3

/**
 * Domains that refuse one egress at RCPT. A tenant may refuse us where its operator and the other tenants
 * do not, so each domain is counted by itself. Refusals in a row are counted by each process; that a domain
 * refuses us is told to all.
 */
export class DomainBlocks {
  readonly #options: DomainBlocksOptions
  readonly #known: TtlMap<Known>

  constructor(options: DomainBlocksOptions) {
    this.#options = options
    this.#known = new TtlMap({ sizeMax: DOMAINS_MAX, clock: options.clock })
  }

  /** One more recipient was refused for our sake. True where the domain refuses us from now on. */
  refused(domain: string, answer: RecipientOutcome): boolean {
    const { clock } = this.#options
    const count = (this.#known.get(domain)?.count ?? 0) + 1
    const isRefusing = count >= REFUSALS_MAX
    const until = isRefusing ? clock.monotonicNow() + BLOCK_MS : null
    this.#known.set(domain, { count, answer, until }, BLOCK_MS)
    if (count === REFUSALS_MAX) this.#change(domain, (state, now) => onBlocked(state, now, answer))
    return isRefusing
  }

  /** The domain's server did not refuse us for a recipient. */
  notRefused(domain: string): void {
    const known = this.#known.get(domain)
    if (known === undefined) return
    this.#known.delete(domain)
    if (known.until !== null) this.#change(domain, state => onSucceeded(state, this.#options.row))
  }

  /** No domain refuses us. */
  get isEmpty(): boolean {
    return this.#known.size === 0 && this.#options.share === null
  }

  /** Null where the domain does not refuse us at present. */
  find(domain: string): CurrentBlock | null {
    const { clock, egress, share } = this.#options
    const { until = null, answer } = this.#known.get(domain) ?? {}
    if (until !== null && answer !== undefined)
      return { answer, leftMs: until - clock.monotonicNow() }
    return share?.refusal({ operator: keyOf(domain), egress }) ?? null
  }

  #change(domain: string, change: RateChange) {
    const { share, egress, row } = this.#options
    share?.open({ operator: keyOf(domain), egress }, row).change(change)
  }
}

/** What a domain stands under among the operators; no operator has such a name. */
const keyOf = (domain: string) => `@${domain}`

/** Whether a state is of a domain, not of an operator. */
export const isDomainKey = (operator: string) => operator.startsWith('@')
