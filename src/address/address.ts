import type { Domain } from './domain.ts'

/** A mailbox address (RFC 5321 §4.1.2, RFC 6531 §3.3). */
export type Address = {
  /** The address as people write it: local part and domain as given, in NFC. */
  readonly text: string
  /** The local part as it goes on the wire, in NFC: quoted only if it was given quoted and must be. */
  readonly local: string
  readonly domain: Domain
}

/** Why a text is not an address: which rule, and where. */
export type SyntaxFault = {
  readonly fault: FaultCode
  /** Index of the offending character in the text (UTF-16 units). */
  readonly at: number
  /** A sentence for people that names the place and the remedy. */
  readonly message: string
  /** The clause that forbids it, such as `RFC 5321 §4.1.2`. */
  readonly rule: string
}

export type FaultCode = 'empty' // …

export declare function parseAddress(text: string): Address | SyntaxFault
export declare function isFault(parsed: Address | SyntaxFault): parsed is SyntaxFault
/** What RCPT TO carries between the angle brackets: local part and A-label domain. */
export declare function wireAddress(address: Address): string
/** The key under which the address is remembered and deduplicated: local part exact, domain as A-label in lower case. */
export declare function addressKey(address: Address): string
/** Takes away what people paste around an address; each thing taken is named in `notes`. */
export declare function cleanAddress(text: string): { text: string; notes: string[] }
