import { LRUCache } from 'lru-cache'
import { EvError } from '../../platform/error.ts'
import type { RateLimits } from '../rate-control/limit-table.ts'
import type { RateKey } from '../rate-control/shared-state.ts'
import type { EgressProber } from './egress-prober.ts'

/** Names of the egresses that may ask an operator; null: all. */
export type AllowedEgresses = (operator: string) => readonly string[] | null

/** Egresses that other processes ask by. */
export type OtherEgresses = {
  /** Their names, ours among them or not; the very same list while nothing changes. */
  readonly names: () => readonly string[]
  /** Whether an operator refuses one of them, as last known. */
  readonly isRefused: (key: RateKey) => boolean
}

/** Our source identities: who of them asks which operator. At least one. */
export class EgressPool {
  /** Those that this process asks by. */
  readonly names: readonly string[]
  /** The same without those of other processes: for what must be asked here. */
  readonly own: EgressPool
  /** Whether several egresses may ask this operator about parts of one list at the same time. */
  readonly sharesLists: (operator: string) => boolean
  readonly #probers: ReadonlyMap<string, EgressProber>
  readonly #allowed: AllowedEgresses
  readonly #others: OtherEgresses | null
  #known: Known
  /** Who is first for an operator, while the names are these: with a thousand of them it takes a while to say. */
  readonly #firsts = new LRUCache<string, string>({ max: FIRSTS_MAX })
  readonly #orders = new LRUCache<string, readonly string[]>({ max: ORDERS_MAX })

  constructor(
    probers: readonly EgressProber[],
    allowed: AllowedEgresses = () => null,
    others: OtherEgresses | null = null,
    sharesLists: (operator: string) => boolean = () => true,
  ) {
    this.names = probers.map(({ egressName }) => egressName)
    this.own = others === null ? this : new EgressPool(probers, allowed, null, sharesLists)
    this.#probers = new Map(probers.map(prober => [prober.egressName, prober]))
    this.#allowed = allowed
    this.#others = others
    this.sharesLists = sharesLists
    this.#known = knownOf(NONE, this.names)
  }

  /** Ours, and those of others; the very same list while nobody comes or goes. */
  get all(): readonly string[] {
    return this.#everybody.names
  }

  /** One of ours. */
  prober(name: string): EgressProber {
    const prober = this.#probers.get(name)
    if (prober !== undefined) return prober
    throw new EvError('usage', `There is no egress "${name}", only ${this.names.join(', ')}.`)
  }

  /** Where the pace of an operator starts, whoever asks it. */
  row(operator: string): RateLimits {
    return this.prober(this.names[0] as string).row(operator)
  }

  /**
   * Who may ask an operator; the first is the one that should. The order hangs on the names alone, so an operator
   * meets the same identity in every run, as greylists want it, and the operators spread evenly. One egress more
   * or less changes the first only for those operators that it gains or leaves (rendezvous hashing).
   */
  ranked(operator: string): readonly string[] {
    const { names } = this.#everybody
    if (names.length === 1) return names
    const order = this.#orders.get(operator) ?? this.#ranked(operator)
    this.#orders.set(operator, order)
    return order
  }

  #ranked(operator: string): readonly string[] {
    const ranked = this.#allowedFor(operator).map(({ name, seed }) => ({
      name,
      rank: hash(operator, seed),
    }))
    return ranked.sort((a, b) => b.rank - a.rank).map(({ name }) => name)
  }

  /** Those that may ask at present: neither refused by the operator nor, of ours, cut off from all. In the same order. */
  availableFor(operator: string): readonly string[] {
    return this.ranked(operator).filter(name => this.mayAsk(name, operator))
  }

  /** Who should ask an operator now. Where none may it is the first, who will be told so. */
  primaryFor(operator: string): string {
    const { names } = this.#everybody
    if (names.length === 1) return names[0] as string
    const first = this.#firsts.get(operator) ?? this.#firstOf(operator)
    this.#firsts.set(operator, first)
    return this.mayAsk(first, operator) ? first : (this.availableFor(operator)[0] ?? first)
  }

  /**
   * Whether an egress takes any address of a list, or only those that it must ask. All egresses together have
   * one limit at an operator that nobody knows: there the first one asks alone.
   */
  takesAny(egress: string, operator: string): boolean {
    if (this.isDeprioritised(egress, operator)) return false
    return this.sharesLists(operator) || egress === this.primaryFor(operator)
  }

  /** Whether an egress may ask an operator at present. */
  mayAsk(egress: string, operator: string): boolean {
    const prober = this.#probers.get(egress)
    if (prober !== undefined) return prober.mayAsk(operator)
    return !(this.#others?.isRefused({ operator, egress }) ?? false)
  }

  /** Whether one of ours should leave an operator to the others: it may not ask, and one of them may. */
  isDeprioritised(name: string, operator: string): boolean {
    if (this.all.length === 1 || this.prober(name).mayAsk(operator)) return false
    return this.availableFor(operator).length > 0
  }

  /** How much longer an operator, or a domain there, is taken to refuse an egress of ours; 0: it does not. */
  refusedForMs(name: string, operator: string, domain: string): number {
    return this.prober(name).refusedForMs(operator, domain)
  }

  /** How long an egress should wait until it is known whether it reaches anybody; null where it is, or others may ask. */
  uncertainForMs(name: string, operator: string): number | null {
    const { uncertainForMs } = this.prober(name)
    return uncertainForMs === null || this.isDeprioritised(name, operator) ? null : uncertainForMs
  }

  /** The first of `inOrder`, without putting all others in order. */
  #firstOf(operator: string): string {
    let first = ''
    let highest = -1
    for (const { name, seed } of this.#allowedFor(operator)) {
      const rank = hash(operator, seed)
      if (rank <= highest) continue
      highest = rank
      first = name
    }
    return first
  }

  #allowedFor(operator: string): readonly Ranked[] {
    const { all } = this.#everybody
    const allowed = all.length === 1 ? null : this.#allowed(operator)
    if (allowed === null) return all
    const some = all.filter(({ name }) => allowed.includes(name))
    // The settings may leave none of those at work: better another than nobody.
    return some.length > 0 ? some : all
  }

  /** Ours, and those of others. */
  get #everybody(): Known {
    const others = this.#others?.names() ?? NONE
    if (others !== this.#known.others) {
      this.#known = knownOf(others, this.names)
      this.#firsts.clear()
      this.#orders.clear()
    }
    return this.#known
  }

  /** When nobody will ask any more: resolves when every connection is closed that is being closed now. */
  async close(): Promise<void> {
    await Promise.all([...this.#probers.values()].map(prober => prober.close()))
  }
}

const NONE: readonly string[] = []

/** Operators whose first is remembered. */
const FIRSTS_MAX = 20_000
/** Operators whose whole order is remembered: with a thousand egresses it takes 8 KB each. */
const ORDERS_MAX = 500

/** An egress, and where its rank for an operator begins. */
type Ranked = { readonly name: string; readonly seed: number }

type Known = {
  readonly others: readonly string[]
  /** Each once; the order of the list is nobody's concern. */
  readonly names: readonly string[]
  readonly all: readonly Ranked[]
}

function knownOf(others: readonly string[], own: readonly string[]): Known {
  const names = [...new Set([...own, ...others])]
  return { others, names, all: names.map(name => ({ name, seed: hash(`${name} `) })) }
}

/** FNV-1a, 32 bits: quick, as it is taken for every row of a list, and the same in every process. */
function hash(text: string, seed = 0x811c9dc5): number {
  let hash = seed
  for (let i = 0; i < text.length; i++) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  }
  return hash >>> 0
}
