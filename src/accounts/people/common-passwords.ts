import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'

/**
 * Bytes of a hash in the file. With 43,000 hashes, one of 25 million other passwords is refused by
 * mistake.
 */
const HASH_BYTES = 5

/** The sorted hashes of common passwords, which `tools/bake-passwords.mjs` writes. */
const FILE = new URL('./common-passwords.bin', import.meta.url)

/**
 * Whether a password is one of those that people use most, whatever its case. The file is read each
 * time and not kept, because passwords are set rarely.
 */
export async function isCommonPassword(password: string): Promise<boolean> {
  const [hashes, wanted] = [await readFile(FILE), hashCommonPassword(password)]
  let low = 0
  let high = hashes.length / HASH_BYTES
  while (low < high) {
    const middle = (low + high) >>> 1
    const start = middle * HASH_BYTES
    const order = hashes.compare(wanted, 0, HASH_BYTES, start, start + HASH_BYTES)
    if (order === 0) return true
    if (order < 0) low = middle + 1
    else high = middle
  }
  return false
}

/** Returns the hash by which the file has a password. */
export const hashCommonPassword = (password: string): Buffer =>
  createHash('sha256')
    .update(password.normalize('NFKC').toLowerCase())
    .digest()
    .subarray(0, HASH_BYTES)
