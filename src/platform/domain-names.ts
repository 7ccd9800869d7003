import { createRequire } from 'node:module'

/**
 * Special-use names, absent from public DNS: RFC 6761 (test, example, invalid, localhost), RFC 6762
 * (local), RFC 7686 (onion), RFC 9476 (alt), RFC 8375 (home.arpa), RFC 9665 (service.arpa),
 * RFC 9462 (resolver.arpa), internal (ICANN 2024). example.com is not one: it is in DNS, with a
 * null MX.
 */
const SPECIAL_USE =
  /(?:^|\.)(?:test|example|invalid|localhost|local|onion|alt|internal|(?:home|service|resolver)\.arpa)$/

/** Whether a name is special-use. `name` is in A-labels, lower case, without the root dot. */
export const isSpecialUse = (name: string) => SPECIAL_USE.test(name)

type PublicSuffixes = Pick<typeof import('tldts'), 'getDomain' | 'parse'>

let loaded: PublicSuffixes | null = null

/** Returns the public suffix list, loaded on first use: loading takes 8 ms. */
export function publicSuffixes(): PublicSuffixes {
  loaded ??= createRequire(import.meta.url)('tldts') as PublicSuffixes
  return loaded
}

/**
 * Domains of large mailbox providers that have had MX records for more than ten years. A working
 * resolver finds them.
 */
export const CHECK_NAMES: readonly string[] = ['gmail.com', 'outlook.com', 'yahoo.com']
