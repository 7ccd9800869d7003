import { isFault, parseAddress, wireAddress } from '../../address/address.ts'
import { EvError } from '../../base/error.ts'
import { cleanText } from '../../base/text.ts'

/** Whom to write to: an address as it goes into the head of a mail, where nothing in it needs quoting or encoding. */
export function checkedEmail(given: string): string {
  const address = parseAddress(given.trim())
  if (isFault(address)) {
    throw new EvError('usage', `“${cleanText(given)}” is no address. ${address.message}`)
  }
  const isPlain = /^[!-~]+$/.test(address.local) && !address.local.startsWith('"')
  if (isPlain && address.domain.kind !== 'literal') return wireAddress(address)
  throw new EvError(
    'usage',
    `“${cleanText(given)}” is an address that many mail servers do not take. Give one at a domain, with ASCII letters and no quotation marks before the @, such as ops@example.com.`,
  )
}

/** The same, or the word `none`. */
export const emailOrNone = (given: string): string | null =>
  given === 'none' ? null : checkedEmail(given)
