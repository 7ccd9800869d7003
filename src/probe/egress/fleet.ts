import { EvError } from '../../base/error.ts'
import type { Prober } from '../probe.ts'

/** Names of the egresses that may ask an operator; null: all. */
export type AllowedEgresses = (operator: string) => readonly string[] | null

/** Our source identities: who of them asks which operator. At least one. */
export class Fleet {
  readonly names: readonly string[]
  readonly #probers: ReadonlyMap<string, Prober>
  readonly #allowed: AllowedEgresses

  constructor(probers: readonly Prober[], allowed: AllowedEgresses = () => null) {
    this.names = probers.map(({ egressName }) => egressName)
    this.#probers = new Map(probers.map(prober => [prober.egressName, prober]))
    this.#allowed = allowed
  }

  prober(name: string): Prober {
    const prober = this.#probers.get(name)
    if (prober !== undefined) return prober
    throw new EvError('usage', `There is no egress "${name}", only ${this.names.join(', ')}.`)
  }

  /**
   * Who may ask an operator; the first is the one that should. The order hangs on the names alone, so an operator
   * meets the same identity in every run, as greylists want it, and the operators spread evenly. One egress more
   * or less changes the first only for those operators that it gains or leaves (rendezvous hashing).
   */
  inOrder(operator: string): readonly string[] {
    if (this.names.length === 1) return this.names
    const allowed = this.#allowed(operator)
    const names = allowed === null ? this.names : this.names.filter(name => allowed.includes(name))
    // The settings may leave none of those at work: better another than nobody.
    const ranked = (names.length > 0 ? names : this.names).map(name => ({
      name,
      rank: hash(`${name} ${operator}`),
    }))
    return ranked.sort((a, b) => b.rank - a.rank).map(({ name }) => name)
  }

  /** Those that may ask at present: neither refused by the operator nor cut off from all. In the same order. */
  willing(operator: string): readonly string[] {
    return this.inOrder(operator).filter(name => this.prober(name).mayAsk(operator))
  }

  /** Who should ask an operator now. Where none may it is the first, who will be told so. */
  firstFor(operator: string): string {
    if (this.names.length === 1) return this.names[0] as string
    return (this.willing(operator)[0] ?? this.inOrder(operator)[0]) as string
  }

  /** Whether an egress should leave an operator to the others: it may not ask, and one of them may. */
  standsBack(name: string, operator: string): boolean {
    if (this.names.length === 1 || this.prober(name).mayAsk(operator)) return false
    return this.willing(operator).length > 0
  }

  /** How long an egress should wait until it is known whether it reaches anybody; null where it is, or others may ask. */
  doubtMs(name: string, operator: string): number | null {
    const { doubtMs } = this.prober(name)
    return doubtMs === null || this.standsBack(name, operator) ? null : doubtMs
  }

  /** When nobody will ask any more: resolves when every connection is closed that is being closed now. */
  async close(): Promise<void> {
    await Promise.all([...this.#probers.values()].map(prober => prober.close()))
  }
}

/** FNV-1a, 32 bits: quick, as it is taken for every row of a list, and the same in every process. */
function hash(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  }
  return hash >>> 0
}
