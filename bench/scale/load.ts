import { xorshift } from '../../test/support/random.ts'

/** Lists as people hand them in, and whose mail their addresses are. */
export type Load = {
  readonly addresses: number
  /** Over this time they come in; 0: all at once. */
  readonly overMs: number
}

export type ListPlan = {
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

/** Of an operator's number; those above the forty are domains that run their own mail. */
export const operatorName = (number: number): string =>
  number < OPERATORS ? (NAMED[number] ?? `hoster${number}`) : `own${number}`

/** Draws whose mail an address is: domains by Zipf's law, the first of them the operators' own. */
export class Draw {
  readonly entropy: () => number
  /** The operator of each domain, by the domain's rank from 1. */
  readonly #operators: Int32Array

  constructor(seed: number) {
    this.entropy = xorshift(seed)
    // The chance that one of the operators, or one before it, hosts a domain.
    let sum = 0
    const hosted = Array.from({ length: OPERATORS }, (_, n) => {
      sum += 1 / (n + 1)
      return sum
    })
    this.#operators = Int32Array.from({ length: DOMAINS + 1 }, (_, rank) => {
      if (rank <= OPERATORS) return Math.max(0, rank - 1)
      const lot = hash(rank)
      return lot < HOSTED_SHARE
        ? hosted.findIndex(upTo => upTo >= (lot / HOSTED_SHARE) * sum)
        : rank
    })
  }

  /** The number of an operator, or that of the domain itself, where it runs its own mail. */
  operator(): number {
    // Zipf with exponent 1 by its inverse: the chance of a rank falls with the rank.
    return this.#operators[Math.floor(Math.exp(this.entropy() * LOG_DOMAINS))] as number
  }

  /** Many small lists, some long, few very long: a hundred rows to five million, by Pareto's law. */
  rows(): number {
    return Math.min(ROWS_MAX, Math.floor(ROWS_MIN / (1 - this.entropy()) ** (1 / TAIL)))
  }
}

const LOG_DOMAINS = Math.log(DOMAINS + 1)

const [ROWS_MIN, ROWS_MAX, TAIL] = [100, 5_000_000, 0.7]

/** A number from 0 to 1 that hangs on the domain alone. */
function hash(rank: number): number {
  let mixed = Math.imul(rank ^ (rank >>> 16), 0x45d9f3b)
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x45d9f3b)
  return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32
}

/** The lists of a load, in the order in which they come in. */
export function listsOf({ addresses, overMs }: Load, draw: Draw): ListPlan[] {
  const lists: ListPlan[] = []
  for (let left = addresses; left > 0; ) {
    const rows = Math.min(left, draw.rows())
    lists.push({ atMs: draw.entropy() * overMs, rows })
    left -= rows
  }
  return lists.sort((a, b) => a.atMs - b.atMs)
}
