import { isFault, parseAddress, wireAddress } from '../engine/address/address.ts'
import { OperationError } from '../platform/operation-error.ts'

/**
 * Parses an address for alert emails. It is written into the header of an email, so an address that
 * needs quoting or encoding is rejected. Throws `email_invalid`.
 */
export function parseEmail(email: string): string {
  const address = parseAddress(email.trim())
  if (isFault(address)) throw new OperationError('email_invalid', { email, fault: address.message })
  const isPlain = /^[!-~]+$/.test(address.local) && !address.local.startsWith('"')
  if (isPlain && address.domain.kind !== 'literal') return wireAddress(address)
  throw new OperationError('email_invalid', { email, fault: null })
}
