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
      for (const byte of randomBytes(length)) {
        // 252 = 7 × 36: bytes above it would favour the first letters.
        if (byte < 252 && token.length < length) token += ALPHABET[byte % 36]
      }
    }
    return token
  },
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
