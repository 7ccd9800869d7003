import type { BlockedState } from '../../engine/rate-control/rules.ts'
import type { RateKey } from '../../engine/rate-control/shared-state.ts'
import type { RateRecord, RateVersion } from './rows.ts'

/** A pace as the key of a map; the name of an egress has no line break. */
export const textOf = ({ operator, egress }: RateKey) => `${egress}\n${operator}`

/** The operators that refuse some egress, whoever asks by it. */
export class SharedBlocks {
  readonly #known = new Map<string, RateVersion & { readonly refusal: BlockedState }>()

  /** What a row says by now. */
  note({ operator, egress, version, stored }: RateRecord): void {
    const key = { operator, egress }
    const { refusal } = stored.state
    if (refusal === null) this.#known.delete(textOf(key))
    else this.#known.set(textOf(key), { ...key, version, refusal })
  }

  get(key: RateKey): BlockedState | null {
    return this.#known.get(textOf(key))?.refusal ?? null
  }

  versions(isSought: (key: RateKey) => boolean): RateVersion[] {
    return [...this.#known.values()].filter(isSought)
  }

  /** Those that are over. */
  forget(now: number): void {
    for (const [text, { refusal }] of this.#known)
      if (refusal.until <= now) this.#known.delete(text)
  }
}
