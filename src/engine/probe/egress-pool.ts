import { EvError } from '../../platform/error.ts'
import { createLru } from '../../platform/lru.ts'
import type { RateLimits } from '../rate-control/limit-table.ts'
import type { RateKey } from '../rate-control/shared-state.ts'
import type { EgressProber } from './egress-prober.ts'

/** Returns the names of the egresses that may probe an operator; null means all. */
type AllowedEgresses = (operator: string) => readonly string[] | null

/** Egresses of other processes. */
type OtherEgresses = {
  /** Their names, with or without those of this process; the same array until something changes. */
  readonly names: () => readonly string[]
  /** Whether an operator blocks one of them, as last known. */
  readonly isRefused: (key: RateKey) => boolean
}

/** The egresses, at least one, and which of them probes which operator. */
export class EgressPool {
  /** The egresses of this process. */
  readonly names: readonly string[]
  /** The same pool without the egresses of other processes, for probes that must run here. */
  readonly own: EgressPool
  /** Whether several egresses may probe parts of one list at this operator at the same time. */
  readonly sharesLists: (operator: string) => boolean
  readonly #probers: ReadonlyMap<string, EgressProber>
  readonly #allowed: AllowedEgresses
  readonly #others: OtherEgresses | null
  #names: EgressNames
  /** The primary egress per operator, cached because ranking a thousand egresses is slow. */
  readonly #primaries = createLru<string>(PRIMARIES_MAX)
  readonly #rankings = createLru<readonly string[]>(RANKINGS_MAX)

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
    this.#names = toEgressNames(NONE, this.names)
  }

  /** The egresses of all processes; the same array until one joins or leaves. */
  get all(): readonly string[] {
    return this.#current.names
  }

  /** Returns the prober of an egress of this process. Throws `usage` if there is none. */
  prober(name: string): EgressProber {
    const prober = this.#probers.get(name)
    if (prober !== undefined) return prober
    throw new EvError('usage', `There is no egress "${name}", only ${this.names.join(', ')}.`)
  }

  /** Returns the initial rate limits of an operator, which are the same for all egresses. */
  limitsFor(operator: string): RateLimits {
    return this.prober(this.names[0] as string).limitsFor(operator)
  }

  /**
   * Returns the egresses that may probe an operator, the preferred one first. The order depends on
   * the names only, so an operator sees the same identity in every run, which greylists need, and
   * operators spread evenly. Adding or removing an egress changes the first one only for the
   * operators that it gains or loses (rendezvous hashing).
   */
  ranked(operator: string): readonly string[] {
    const { names } = this.#current
    if (names.length === 1) return names
    const order = this.#rankings.get(operator) ?? this.#rank(operator)
    this.#rankings.set(operator, order)
    return order
  }

  #rank(operator: string): readonly string[] {
    const ranked = this.#allowedFor(operator).map(({ name, seed }) => ({
      name,
      rank: hash(operator, seed),
    }))
    return ranked.sort((a, b) => b.rank - a.rank).map(({ name }) => name)
  }

  /**
   * Returns those of `ranked` that may probe now: not blocked by the operator, nor by the network.
   */
  availableFor(operator: string): readonly string[] {
    return this.ranked(operator).filter(name => this.mayAsk(name, operator))
  }

  /** Returns the egress that should probe an operator now; the first of `ranked` if none may. */
  primaryFor(operator: string): string {
    const { names } = this.#current
    if (names.length === 1) return names[0] as string
    const first = this.#primaries.get(operator) ?? this.#findPrimary(operator)
    this.#primaries.set(operator, first)
    return this.mayAsk(first, operator) ? first : (this.availableFor(operator)[0] ?? first)
  }

  /**
   * Whether an egress takes any address of a list, or only those assigned to it. All egresses share
   * one limit at an operator that is not in the table, so only the first one probes it.
   */
  takesAny(egress: string, operator: string): boolean {
    if (this.isDeprioritised(egress, operator)) return false
    return this.sharesLists(operator) || egress === this.primaryFor(operator)
  }

  /** Whether an egress of this process takes any address of a list. */
  probesHere(operator: string): boolean {
    return this.own === this || this.names.some(name => this.takesAny(name, operator))
  }

  /** Whether an egress may probe an operator now. */
  mayAsk(egress: string, operator: string): boolean {
    const prober = this.#probers.get(egress)
    if (prober !== undefined) return prober.mayAsk(operator)
    return !(this.#others?.isRefused({ operator, egress }) ?? false)
  }

  /** Whether an egress of this process may not probe an operator while another egress may. */
  isDeprioritised(name: string, operator: string): boolean {
    if (this.all.length === 1 || this.prober(name).mayAsk(operator)) return false
    return this.availableFor(operator).length > 0
  }

  /**
   * How much longer an operator or a domain counts as blocking an egress, in ms; 0 if it does not.
   */
  refusedForMs(name: string, operator: string, domain: string): number {
    return this.prober(name).refusedForMs(operator, domain)
  }

  /** How long an operator or a domain has refused every recipient of an egress, in ms. */
  unservedForMs(name: string, operator: string, domain: string): number {
    return this.prober(name).unservedForMs(operator, domain)
  }

  /** How long ago an operator last served a recipient of an egress, in ms; infinite if it has not. */
  servedAgoMs(name: string, operator: string): number {
    return this.prober(name).servedAgoMs(operator)
  }

  /**
   * How long an egress should wait until it is known whether it can reach mail servers, 0 if its
   * next dial tells; null if it is known, or if another egress may probe.
   */
  uncertainForMs(name: string, operator: string): number | null {
    const { uncertainForMs } = this.prober(name)
    return uncertainForMs === null || this.isDeprioritised(name, operator) ? null : uncertainForMs
  }

  /** Returns the first of `ranked` without sorting the others. */
  #findPrimary(operator: string): string {
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
    const { all } = this.#current
    const allowed = all.length === 1 ? null : this.#allowed(operator)
    if (allowed === null) return all
    const some = all.filter(({ name }) => allowed.includes(name))
    // The allowed egresses may all be missing: then any egress is better than none.
    return some.length > 0 ? some : all
  }

  /** The egresses of all processes. */
  get #current(): EgressNames {
    const others = this.#others?.names() ?? NONE
    if (others !== this.#names.others) {
      this.#names = toEgressNames(others, this.names)
      this.#primaries.clear()
      this.#rankings.clear()
    }
    return this.#names
  }

  /**
   * Resolves when every connection that is closing now is closed. Call it when no probe follows.
   */
  async close(): Promise<void> {
    await Promise.all([...this.#probers.values()].map(prober => prober.close()))
  }
}

const NONE: readonly string[] = []

/** Operators with a cached primary egress. */
const PRIMARIES_MAX = 20_000
/** Operators with a cached ranking: it takes 8 KB with a thousand egresses. */
const RANKINGS_MAX = 500

/** An egress and the seed of its rank. */
type Ranked = { readonly name: string; readonly seed: number }

type EgressNames = {
  readonly others: readonly string[]
  /** Each name once, in no particular order. */
  readonly names: readonly string[]
  readonly all: readonly Ranked[]
}

function toEgressNames(others: readonly string[], own: readonly string[]): EgressNames {
  const names = [...new Set([...own, ...others])]
  return { others, names, all: names.map(name => ({ name, seed: hash(`${name} `) })) }
}

/** FNV-1a, 32 bits: fast, because every row of a list needs it, and the same in every process. */
function hash(text: string, seed = 0x811c9dc5): number {
  let hash = seed
  for (let i = 0; i < text.length; i++) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  }
  return hash >>> 0
}
