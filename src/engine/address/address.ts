import type { Domain } from './domain.ts'
import { parseDomain } from './domain.ts'
import { extractAddress } from './extract-address.ts'
import { parseLocal } from './local.ts'
import {
  type AddressSyntaxError,
  invisibleCharError,
  isSyntaxError,
  syntaxError,
} from './syntax-error.ts'

export {
  type AddressSyntaxError as SyntaxFault,
  isSyntaxError as isFault,
  type SyntaxErrorCode as FaultCode,
} from './syntax-error.ts'

/** A mailbox address (RFC 5321 §4.1.2, RFC 6531 §3.3). */
export type Address = {
  /** The address as people write it: local part and domain as given, in NFC. */
  readonly text: string
  /** The local part as it goes on the wire, in NFC: quoted only if it was given quoted and must be. */
  readonly local: string
  readonly domain: Domain
}

/** RFC 5321 §4.5.3.1.3: a path has 256 octets, two of them the angle brackets. */
const ADDRESS_OCTETS_MAX = 254

/** Reads a mailbox address: no comments, no folding, no display name, nothing around it; never throws. */
export function parseAddress(text: string): Address | AddressSyntaxError {
  if (text === '') return syntaxError('empty', text, 0)
  // A UTF-16 unit is at least one octet, so this refuses what is far too long before anything reads it.
  if (text.length > ADDRESS_OCTETS_MAX) return syntaxError('too_long', text, ADDRESS_OCTETS_MAX)
  if (PRINTABLE_ASCII.test(text)) return parseMailbox(text)
  const hidden = invisibleCharError(text)
  if (hidden !== null) return hidden
  const nfc = text.normalize('NFC')
  const asGiven = parseMailbox(text)
  // Judged in both forms: to compose characters must neither hide a forbidden one nor make one.
  return nfc === text || isSyntaxError(asGiven) ? asGiven : parseMailbox(nfc)
}

/** What RCPT TO carries between the angle brackets: local part and A-label domain. */
export const wireAddress = ({ local, domain }: Address): string => `${local}@${domain.ascii}`

/** The key under which the address is remembered and deduplicated: local part exact, domain as A-label in lower case. */
export const addressKey = (address: Address): string => wireAddress(address)

/** Takes away what people paste around an address; each thing taken is named in `notes`. What is valid stays as it is. */
export const cleanAddress = (text: string): { text: string; notes: string[] } =>
  extractAddress(text, inner => !isSyntaxError(parseAddress(inner)))

const PRINTABLE_ASCII = /^[\x20-\x7E]+$/

function parseMailbox(text: string): Address | AddressSyntaxError {
  const parsed = parseOne(text)
  if (!isSyntaxError(parsed)) return parsed
  const second = SECOND_ADDRESS.exec(text)
  return second === null ? parsed : syntaxError('several_addresses', text, second[0].length)
}

/** All before a second address: one address, then a separator that no address has outside quotes. */
const SECOND_ADDRESS = /^[^@"]+@[^@\s,;<>|]+[\s,;<>|]+(?=[^@\s,;<>|]+@[^@])/

function parseOne(text: string): Address | AddressSyntaxError {
  if (!text.includes('@')) return syntaxError('no_at', text, text.length - 1)
  const local = parseLocal(text)
  if (isSyntaxError(local)) return local
  const domain = parseDomain(text.slice(local.end + 1), local.end + 1)
  if (isSyntaxError(domain)) return domain
  const address = { text, local: local.wire, domain }
  // Both forms of the domain may travel: the A-label, or the U-label with SMTPUTF8 (RFC 6531 §3.3).
  const octets = Math.max(Buffer.byteLength(text), Buffer.byteLength(wireAddress(address)))
  return octets > ADDRESS_OCTETS_MAX ? syntaxError('too_long', text, text.length - 1) : address
}
