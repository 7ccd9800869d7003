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
    while (pool.length < length) pool += randomText()
    const token = pool.slice(0, length)
    pool = pool.slice(length)
    return token
  },
}

/** Loaded on first use: it takes 5 ms, and many commands need nothing random. */
const nodeCrypto = () => process.getBuiltinModule('node:crypto')

/** Random bytes are fetched in bulk: each call costs more than the bytes it returns. */
const POOL_LENGTH = 1_024
/** Random characters that no token has yet. */
let pool = ''

function randomText(): string {
  let text = ''
  // 252 = 7 × 36: larger bytes would favor the first letters.
  for (const byte of nodeCrypto().randomBytes(POOL_LENGTH))
    if (byte < 252) text += ALPHABET[byte % 36]
  return text
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
