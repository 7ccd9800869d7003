import { randomBytes, randomInt } from 'node:crypto'

/** Chance, as a door to the world: tests hand in a counted one. */
export interface Random {
  /** An integer from 0 to `limit` - 1. */
  below(limit: number): number
  /** `length` unguessable characters from a-z and 0-9. */
  token(length: number): string
}

export const systemRandom: Random = {
  below: limit => randomInt(limit),
  token(length) {
    let token = ''
    while (token.length < length) {
      const byte = nextByte()
      // 252 = 7 × 36: bytes above it would favour the first letters.
      if (byte < 252) token += ALPHABET[byte % 36]
    }
    return token
  },
}

/** Chance is had in one go: each asking costs more than the bytes that it brings. */
const POOL_LENGTH = 4_096
let pool = Buffer.alloc(0)
let taken = 0

function nextByte(): number {
  if (taken === pool.length) {
    pool = randomBytes(POOL_LENGTH)
    taken = 0
  }
  return pool[taken++] as number
}

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz0123456789'

/** A shuffled copy (Fisher–Yates). */
export function shuffled<T>(list: readonly T[], random: Random): T[] {
  const copy = [...list]
  for (let i = copy.length - 1; i > 0; i--) {
    const j = random.below(i + 1)
    const [a, b] = [copy[i] as T, copy[j] as T]
    copy[i] = b
    copy[j] = a
  }
  return copy
}
