import { createRequire } from 'node:module'

type PublicSuffixes = Pick<typeof import('tldts'), 'getDomain' | 'parse'>

let loaded: PublicSuffixes | null = null

/** Returns the public suffix list, loaded on first use: loading takes 8 ms. */
export function publicSuffixes(): PublicSuffixes {
  loaded ??= createRequire(import.meta.url)('tldts') as PublicSuffixes
  return loaded
}
