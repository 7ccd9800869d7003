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
    while (letters.length - offset < length) {
      letters = randomLetters(length)
      offset = 0
    }
    const token = letters.toString('latin1', offset, offset + length)
    offset += length
    return token
  },
}

let loaded: typeof import('node:crypto') | null = null

/** Loaded on first use: it takes 5 ms, and many commands need nothing random. */
function nodeCrypto() {
  loaded ??= process.getBuiltinModule('node:crypto')
  return loaded
}

/** Random bytes are fetched in bulk: each call costs more than the bytes it returns. */
const POOL_LENGTH = 4_096
/** Random letters and digits in ASCII; tokens have taken those before `offset`. */
let letters: Buffer = Buffer.alloc(0)
let offset = 0

/** Returns random letters and digits, most likely at least `length`. */
function randomLetters(length: number): Buffer {
  const bytes = nodeCrypto().randomBytes(Math.max(POOL_LENGTH, 2 * length))
  let count = 0
  // 252 = 7 × 36: larger bytes would favor the first letters.
  for (const byte of bytes) if (byte < 252) bytes[count++] = ALPHABET.charCodeAt(byte % 36)
  return bytes.subarray(0, count)
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
