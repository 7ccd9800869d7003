import { isFault, parseAddress, wireAddress } from '../engine/address/address.ts'
import { OperationError } from '../platform/operation-error.ts'

/**
 * An address that alerts are sent to: it goes into the head of a mail, so nothing in it may need quoting or encoding.
 * Throws `email_invalid`.
 */
export function parseEmail(email: string): string {
  const address = parseAddress(email.trim())
  if (isFault(address)) throw new OperationError('email_invalid', { email, fault: address.message })
  const isPlain = /^[!-~]+$/.test(address.local) && !address.local.startsWith('"')
  if (isPlain && address.domain.kind !== 'literal') return wireAddress(address)
  throw new OperationError('email_invalid', { email, fault: null })
}
