import { xorshift } from '../../test/support/random.ts'

/** A load of lists. */
export type Load = {
  readonly addresses: number
  /** Period over which the lists are submitted; 0 submits all at once. */
  readonly overMs: number
}

export type ListPlan = {
  readonly atMs: number
  readonly rows: number
}

/** Operators in the rate limit table; the others have the default limits. */
const NAMED = [
  ...['google', 'microsoft-365', 'outlook', 'yahoo', 'icloud', 'gmx', 'godaddy', 'tencent'],
  ...['orange', 'netease', 'barracuda', 'yahoo-japan', 'titan', 'mxroute', 'kpn', 'netvigator'],
]
const OPERATORS = 40
const DOMAINS = 1_000_000
/** Share of the other domains that are hosted by one of the operators. */
const HOSTED_SHARE = 0.65

/** Returns the name of an operator; numbers from forty on are domains with their own servers. */
export const operatorName = (number: number): string =>
  number < OPERATORS ? (NAMED[number] ?? `hoster${number}`) : `own${number}`

/**
 * Generates random operators and list lengths. Domains follow Zipf's law; the first ones belong to
 * the operators.
 */
export class LoadGenerator {
  readonly random: () => number
  /** Operator numbers by the rank of the domain, from 1. */
  readonly #operators: Int32Array

  constructor(seed: number) {
    this.random = xorshift(seed)
    // Cumulative weights of the operators that host other domains.
    let sum = 0
    const hosted = Array.from({ length: OPERATORS }, (_, n) => {
      sum += 1 / (n + 1)
      return sum
    })
    this.#operators = Int32Array.from({ length: DOMAINS + 1 }, (_, rank) => {
      if (rank <= OPERATORS) return Math.max(0, rank - 1)
      const uniform = hash(rank)
      return uniform < HOSTED_SHARE
        ? hosted.findIndex(upTo => upTo >= (uniform / HOSTED_SHARE) * sum)
        : rank
    })
  }

  /** Returns the number of a random operator, or of a domain with its own servers. */
  operator(): number {
    // The inverse of Zipf's distribution with exponent 1.
    return this.#operators[Math.floor(Math.exp(this.random() * LOG_DOMAINS))] as number
  }

  /** Returns a random list length, Pareto distributed: many short lists, few very long ones. */
  rows(): number {
    return Math.min(ROWS_MAX, Math.floor(ROWS_MIN / (1 - this.random()) ** (1 / TAIL)))
  }
}

const LOG_DOMAINS = Math.log(DOMAINS + 1)

const [ROWS_MIN, ROWS_MAX, TAIL] = [100, 5_000_000, 0.7]

/** Returns a number from 0 to 1 that depends only on the rank. */
function hash(rank: number): number {
  let mixed = Math.imul(rank ^ (rank >>> 16), 0x45d9f3b)
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x45d9f3b)
  return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32
}

/** Returns the lists of a load, in the order of submission. */
export function listsOf({ addresses, overMs }: Load, generator: LoadGenerator): ListPlan[] {
  const lists: ListPlan[] = []
  for (let remaining = addresses; remaining > 0; ) {
    const rows = Math.min(remaining, generator.rows())
    lists.push({ atMs: generator.random() * overMs, rows })
    remaining -= rows
  }
  return lists.sort((a, b) => a.atMs - b.atMs)
}
