import { isFault, parseAddress } from './address.ts'
import type { Domain } from './domain.ts'
import { isListed } from './name-list.ts'
import { REAL_PROVIDERS } from './provider.ts'
import { guessedTypo, isLargeProvider, listedTypo } from './typo.ts'
import { repairAddress } from './typo-repair.ts'
import { correctedTld, correctedTldPair, hasRegisteredTld } from './typo-tld.ts'

/** The domain that the sender of the address most likely meant. */
export type Suggestion = {
  readonly domain: string
  /** The typo is a listed one, else a guess. */
  readonly sure: boolean
  /**
   * A large provider was meant. Most names that resemble one belong to squatters with a mail server
   * (Szurdi and Christin, "Email Typosquatting", IMC 2017), so a working MX does not refute it.
   */
  readonly large: boolean
}

/** The domain that was probably meant, or null if the one given is a known provider or resembles none. */
export function suggestDomain({ ascii, kind }: Domain): Suggestion | null {
  if (kind !== 'name') return null
  const listed = listedTypo(ascii)
  if (listed !== null) return { domain: listed, sure: true, large: true }
  if (REAL_PROVIDERS.has(ascii) || isListed('free', ascii)) return null
  const guessed = guessedTypo(ascii) ?? withCorrectedTld(ascii)
  return guessed === null ? null : { domain: guessed, sure: false, large: isLargeProvider(guessed) }
}

/** The name with the ending that was meant, if the root zone has none such as it was given. */
function withCorrectedTld(name: string): string | null {
  const labels = name.split('.')
  if (hasRegisteredTld(name)) {
    const pair = correctedTldPair(name)
    return pair === null ? null : [...labels.slice(0, -2), pair].join('.')
  }
  const ending = labels.pop() ?? ''
  const intended = correctedTld(ending, labels.length > 1 ? labels.at(-1) : undefined)
  return intended === null ? null : [...labels, intended].join('.')
}

/** A whole address for a text that does not parse but plainly lacks a dot or the like; else null. */
export function suggestForSyntaxError(text: string): string | null {
  const repaired = repairAddress(text)
  const address = repaired === null ? null : parseAddress(repaired)
  if (address === null || isFault(address)) return null
  const intended = suggestDomain(address.domain)
  return intended === null ? repaired : `${address.local}@${intended.domain}`
}
