import type { Refused } from '../../../probe/pace/rules.ts'
import type { PaceKey } from '../../../probe/pace-share.ts'
import type { PaceRecord, PaceVersion } from './rows.ts'

/** A pace as the key of a map; the name of an egress has no line break. */
export const textOf = ({ operator, egress }: PaceKey) => `${egress}\n${operator}`

/** The operators that refuse some egress, whoever asks by it. */
export class Refusals {
  readonly #known = new Map<string, PaceVersion & { readonly refusal: Refused }>()

  /** What a row says by now. */
  note({ operator, egress, version, stored }: PaceRecord): void {
    const key = { operator, egress }
    const { refusal } = stored.state
    if (refusal === null) this.#known.delete(textOf(key))
    else this.#known.set(textOf(key), { ...key, version, refusal })
  }

  get(key: PaceKey): Refused | null {
    return this.#known.get(textOf(key))?.refusal ?? null
  }

  versions(isSought: (key: PaceKey) => boolean): PaceVersion[] {
    return [...this.#known.values()].filter(isSought)
  }

  /** Those that are over. */
  forget(now: number): void {
    for (const [text, { refusal }] of this.#known)
      if (refusal.until <= now) this.#known.delete(text)
  }
}
