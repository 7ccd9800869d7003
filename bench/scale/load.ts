import { xorshift } from '../../test/fake/random.ts'

/** Lists as people hand them in, and whose mail their addresses are. */
export type Load = {
  readonly addresses: number
  /** Over this time they come in; 0: all at once. */
  readonly overMs: number
}

export type ListPlan = {
  readonly id: string
  readonly atMs: number
  readonly rows: number
}

/** Those that the pace table knows come first; the others are hosters with the pace of everybody. */
const NAMED = [
  ...['google', 'microsoft-365', 'outlook', 'yahoo', 'icloud', 'gmx', 'godaddy', 'tencent'],
  ...['orange', 'netease', 'barracuda', 'yahoo-japan', 'titan', 'mxroute', 'kpn', 'netvigator'],
]
const OPERATORS = 40
const DOMAINS = 1_000_000
/** Of the domains that are not an operator's own, those whose mail one of the operators runs. */
const HOSTED_SHARE = 0.65

export const operatorNames = (): readonly string[] =>
  Array.from({ length: OPERATORS }, (_, n) => NAMED[n] ?? `hoster${n}`)

/** Draws whose mail an address is: domains by Zipf's law, the first of them the operators' own. */
export class Draw {
  readonly #chance: () => number
  readonly #names = operatorNames()
  readonly #hosted: Float64Array

  constructor(seed: number) {
    this.#chance = xorshift(seed)
    let sum = 0
    this.#hosted = Float64Array.from(this.#names, (_, n) => {
      sum += 1 / (n + 1)
      return sum
    })
  }

  /** An operator, or the domain itself, where it runs its own mail. */
  operator(): string {
    // Zipf with exponent 1 by its inverse: the chance of a rank falls with the rank.
    const rank = Math.floor((DOMAINS + 1) ** this.#chance())
    const own = this.#names[rank - 1]
    if (own !== undefined) return own
    const lot = hash(rank)
    if (lot >= HOSTED_SHARE) return `own${rank}`
    const place = (lot / HOSTED_SHARE) * (this.#hosted.at(-1) ?? 0)
    return this.#names[this.#hosted.findIndex(sum => sum >= place)] ?? 'google'
  }

  /** Many small lists, some long, few very long: a hundred rows to five million, by Pareto's law. */
  rows(): number {
    return Math.min(ROWS_MAX, Math.floor(ROWS_MIN / (1 - this.#chance()) ** (1 / TAIL)))
  }

  chance(): number {
    return this.#chance()
  }
}

const [ROWS_MIN, ROWS_MAX, TAIL] = [100, 5_000_000, 0.7]

/** A number from 0 to 1 that hangs on the domain alone. */
function hash(rank: number): number {
  let mixed = Math.imul(rank ^ (rank >>> 16), 0x45d9f3b)
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x45d9f3b)
  return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32
}

/** The lists of a load, in the order in which they come in. */
export function listsOf({ addresses, overMs }: Load, draw: Draw): ListPlan[] {
  const lists: { id: string; atMs: number; rows: number }[] = []
  for (let left = addresses; left > 0; ) {
    const rows = Math.min(left, draw.rows())
    lists.push({
      id: `job_${String(lists.length).padStart(9, '0')}`,
      atMs: draw.chance() * overMs,
      rows,
    })
    left -= rows
  }
  return lists.sort((a, b) => a.atMs - b.atMs)
}
