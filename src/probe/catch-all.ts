import { type Clock, DAY, HOUR } from '../base/clock.ts'
import type { Random } from '../base/random.ts'
import { TtlMap } from '../base/ttl-map.ts'

/** A domain that takes everything may stop doing so; one that tells seldom begins to take everything. */
export const CATCH_ALL_TTL_MS = { yes: 24 * HOUR, no: 7 * DAY } as const
const DOMAINS_MAX = 100_000

/** Letters and digits after the first letter: 36^19 names, so no mailbox has one by chance. */
const NAME_LENGTH = 20

/** A local part that no mailbox has and that no one can guess. */
export function unguessableName(random: Random): string {
  return `${'abcdefghijklmnopqrstuvwxyz'[random.below(26)]}${random.token(NAME_LENGTH - 1)}`
}

export type CatchAllTurn =
  /** Known already; null: somebody asked just now and it could not be told. */
  | { readonly known: boolean | null }
  /** It falls to the caller to ask, and to say what came of it: null for no evidence. */
  | { readonly settle: (catchAll: boolean | null) => void }

/** Which domains take mail for everybody: asked once per domain, whoever needs to know it. */
export class CatchAllMemory {
  readonly #known: TtlMap<{ catchAll: boolean }>
  readonly #asking = new Map<string, Promise<boolean | null>>()

  constructor(clock: Clock) {
    this.#known = new TtlMap({ sizeMax: DOMAINS_MAX, clock })
  }

  /** What is known of a domain, or null. */
  recall(domain: string): boolean | null {
    return this.#known.get(domain)?.catchAll ?? null
  }

  remember(domain: string, catchAll: boolean): void {
    this.#known.set(domain, { catchAll }, CATCH_ALL_TTL_MS[catchAll ? 'yes' : 'no'])
  }

  /** Waits for whoever is asking about this domain, else gives the caller the turn to ask. */
  async take(domain: string): Promise<CatchAllTurn> {
    const known = this.recall(domain)
    if (known !== null) return { known }
    const asking = this.#asking.get(domain)
    if (asking !== undefined) return { known: await asking }
    let answer: (catchAll: boolean | null) => void = () => {}
    this.#asking.set(
      domain,
      new Promise(resolve => {
        answer = resolve
      }),
    )
    return {
      settle: catchAll => {
        this.#asking.delete(domain)
        if (catchAll !== null) this.remember(domain, catchAll)
        answer(catchAll)
      },
    }
  }
}
