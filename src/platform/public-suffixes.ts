import { createRequire } from 'node:module'

type PublicSuffixes = Pick<typeof import('tldts'), 'getDomain' | 'parse'>

let loaded: PublicSuffixes | null = null

/** The public suffix list, loaded when first asked: its tables cost 8 ms, and many a run does without. */
export function publicSuffixes(): PublicSuffixes {
  loaded ??= createRequire(import.meta.url)('tldts') as PublicSuffixes
  return loaded
}
