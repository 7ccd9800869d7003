/** Why a text is not an address: the violated rule and its position. */
export type SyntaxFault = {
  readonly fault: FaultCode
  /** Index of the offending character in the text (UTF-16 units). */
  readonly at: number
  /** A sentence for people with the position and the remedy. */
  readonly message: string
  /** The violated clause, such as `RFC 5321 §4.1.2`. */
  readonly rule: string
}

export type FaultCode =
  | 'empty'
  | 'placeholder'
  | 'too_long'
  | 'broken_text'
  | 'control_character'
  | 'hidden_character'
  | 'no_at'
  | 'two_ats'
  | 'no_local'
  | 'local_too_long'
  | 'local_dot'
  | 'local_space'
  | 'local_character'
  | 'comment'
  | 'angle_bracket'
  | 'quote_inside'
  | 'quote_open'
  | 'quote_tail'
  | 'several_addresses'
  | 'no_domain'
  | 'domain_too_long'
  | 'label_empty'
  | 'label_too_long'
  | 'label_hyphen'
  | 'trailing_dot'
  | 'domain_space'
  | 'domain_character'
  | 'domain_idn'
  | 'dotless'
  | 'numeric_tld'
  | 'bare_ip'
  | 'literal_open'
  | 'literal_tail'
  | 'literal_bad'

const MAILBOX = 'RFC 5321 §4.1.2'
const NAME = 'RFC 1035 §2.3.1'

/**
 * The clause and the sentence of each error; `place` is "character 7", `shown` the character there,
 * or the addresses of `several_addresses`.
 */
const FAULTS: Record<
  FaultCode,
  readonly [rule: string, sentence: (place: string, shown: string) => string]
> = {
  empty: [MAILBOX, () => 'The address is empty: write it as name@domain.'],
  placeholder: [
    MAILBOX,
    () => 'The text stands for a missing address: leave it out, or write name@domain.',
  ],
  too_long: [
    'RFC 5321 §4.5.3.1.3',
    () => 'The address is longer than 254 octets: no mail server accepts it.',
  ],
  broken_text: [
    'RFC 3629 §3',
    place =>
      `The text is corrupted at ${place}: it was read in the wrong encoding; save the file as UTF-8.`,
  ],
  control_character: [
    MAILBOX,
    (place, shown) => `There is a control character (${shown}) at ${place}: remove it.`,
  ],
  hidden_character: [
    'RFC 6532 §3.1',
    (place, shown) => `There is an invisible character (${shown}) at ${place}: remove it.`,
  ],
  no_at: [MAILBOX, () => 'There is no @: write the address as name@domain.'],
  two_ats: [
    MAILBOX,
    place => `There is a second @ at ${place}: keep one, or write each address separately.`,
  ],
  no_local: [MAILBOX, () => 'There is no name before the @: write the address as name@domain.'],
  local_too_long: [
    'RFC 5321 §4.5.3.1.1',
    () => 'The part before the @ is longer than 64 octets: shorten it.',
  ],
  local_dot: [
    MAILBOX,
    place => `The dot at ${place} must be between two other characters: remove it.`,
  ],
  local_space: [MAILBOX, place => `There is a space at ${place}, before the @: remove it.`],
  local_character: [
    MAILBOX,
    (place, shown) => `${shown} at ${place} is not allowed before the @: remove it.`,
  ],
  comment: [
    'RFC 5321 §4.1.2',
    place => `There is a parenthesis at ${place}: comments are not part of an address; remove it.`,
  ],
  angle_bracket: [
    MAILBOX,
    place => `There is an angle bracket at ${place}: write only the address inside it.`,
  ],
  quote_inside: [
    MAILBOX,
    place =>
      `There is a quotation mark at ${place}: quote the whole part before the @, or remove it.`,
  ],
  quote_open: [
    MAILBOX,
    () => 'The quotation mark at the start is not closed: close it before the @, or remove it.',
  ],
  quote_tail: [
    MAILBOX,
    (place, shown) => `${shown} at ${place} follows the closing quotation mark: only an @ may.`,
  ],
  several_addresses: [MAILBOX, (_, shown) => `There are ${shown}: write each address separately.`],
  no_domain: [MAILBOX, () => 'There is nothing after the @: add the domain, such as example.com.'],
  domain_too_long: [
    'RFC 1035 §2.3.4',
    () => 'The domain is longer than 253 characters: no such domain can exist.',
  ],
  label_empty: [NAME, place => `A part of the domain is missing at ${place}: remove the dot.`],
  label_too_long: [
    'RFC 1035 §2.3.4',
    place => `The part of the domain at ${place} is longer than 63 characters: shorten it.`,
  ],
  label_hyphen: [
    NAME,
    place => `A part of the domain starts or ends with the hyphen at ${place}: remove it.`,
  ],
  trailing_dot: [MAILBOX, place => `The domain ends with a dot at ${place}: remove it.`],
  domain_space: [MAILBOX, place => `There is a space at ${place}, in the domain: remove it.`],
  domain_character: [
    NAME,
    (place, shown) =>
      `${shown} at ${place} is not allowed in a domain: use letters, digits, hyphens and dots.`,
  ],
  domain_idn: [
    'RFC 5891 §5.4',
    place =>
      `The part of the domain at ${place} is not a valid internationalized name: check its letters.`,
  ],
  dotless: ['RFC 7085 §2', () => 'The domain has no dot: add its ending, such as .com.'],
  numeric_tld: [
    'RFC 3696 §2',
    place => `The domain ends with a number at ${place}, which no domain does: check its ending.`,
  ],
  bare_ip: [
    'RFC 5321 §4.1.3',
    () => 'An IP address needs brackets: write it as name@[192.0.2.1], or use a domain.',
  ],
  literal_open: ['RFC 5321 §4.1.3', () => 'The bracket after the @ is not closed: add ].'],
  literal_tail: [
    'RFC 5321 §4.1.3',
    place => `There is text after the closing bracket at ${place}: remove it.`,
  ],
  literal_bad: [
    'RFC 5321 §4.1.3',
    () =>
      'The brackets do not contain a valid IP address: write [192.0.2.1] or [IPv6:2001:db8::1].',
  ],
}

/**
 * Creates the error `code` at index `at` of `text`; `shift` is the index of `text` in the input,
 * and `shown` is what the sentence shows of it.
 */
export function syntaxError(
  code: FaultCode,
  text: string,
  at: number,
  shift = 0,
  shown = excerptAt(text, at),
): SyntaxFault {
  const [rule, sentence] = FAULTS[code]
  const place = `character ${at + shift + 1}`
  return { fault: code, at: at + shift, message: sentence(place, shown), rule }
}

/** Whether a parse result is an error. */
export function isFault<T extends object>(parsed: T | SyntaxFault): parsed is SyntaxFault {
  return 'fault' in parsed
}

function excerptAt(text: string, at: number): string {
  const code = text.codePointAt(at)
  if (code === undefined) return 'Nothing'
  const character = String.fromCodePoint(code)
  if (!/[\p{C}\p{Z}\p{M}]/u.test(character)) return `\`${character}\``
  return `U+${code.toString(16).toUpperCase().padStart(4, '0')}`
}

/**
 * Invisible and forbidden characters. Some scripts and emoji need U+200C and U+200D, so these are
 * allowed between two non-ASCII characters. U+FFFD is the trace of a wrong encoding.
 */
const HIDDEN =
  /[[\p{C}\p{Zl}\p{Zp}\p{DI}\u{FFFD}]--[\u{200C}\u{200D}\u{FE00}-\u{FE0F}]]|(?<![\u{80}-\u{10FFFF}])[\u{200C}\u{200D}]|[\u{200C}\u{200D}](?:[\u{200C}\u{200D}]|(?![\u{80}-\u{10FFFF}]))/v

/** Returns an error for the first character that is invalid anywhere in an address; else null. */
export function invisibleCharError(text: string, shift = 0): SyntaxFault | null {
  const at = text.search(HIDDEN)
  if (at < 0) return null
  const code = text.codePointAt(at) ?? 0
  if (code === 0xfffd || (code >= 0xd800 && code <= 0xdfff)) {
    return syntaxError('broken_text', text, at, shift)
  }
  const control = code < 0x20 || (code >= 0x7f && code < 0xa0)
  return syntaxError(control ? 'control_character' : 'hidden_character', text, at, shift)
}
