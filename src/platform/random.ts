/** Source of randomness. Tests inject a deterministic one. */
export interface Random {
  /** Returns an integer from 0 to `limit` - 1. */
  below(limit: number): number
  /** Returns `length` cryptographically random characters from a-z and 0-9. */
  token(length: number): string
}

export const systemRandom: Random = {
  below: limit => nodeCrypto().randomInt(limit),
  token(length) {
    let token = ''
    while (token.length < length) {
      const byte = nextByte()
      // 252 = 7 × 36: larger bytes would favor the first letters.
      if (byte < 252) token += ALPHABET[byte % 36]
    }
    return token
  },
}

/** Loaded on first use: it takes 5 ms, and many commands need nothing random. */
const nodeCrypto = () => process.getBuiltinModule('node:crypto')

/** Random bytes are fetched in bulk: each call costs more than the bytes it returns. */
const POOL_LENGTH = 4_096
let pool = Buffer.alloc(0)
let offset = 0

function nextByte(): number {
  if (offset === pool.length) {
    pool = nodeCrypto().randomBytes(POOL_LENGTH)
    offset = 0
  }
  return pool[offset++] as number
}

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz0123456789'

/** Returns a shuffled copy (Fisher–Yates). */
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
