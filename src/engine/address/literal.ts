import type { Domain } from './domain.ts'
import { type AddressSyntaxError, invisibleCharError, syntaxError } from './syntax-error.ts'

/** Reads an address literal such as `[192.0.2.1]` or `[IPv6:2001:db8::1]` (RFC 5321 §4.1.3). */
export function parseLiteral(text: string, shift = 0): Domain | AddressSyntaxError {
  const hidden = invisibleCharError(text, shift)
  if (hidden !== null) return hidden
  const close = text.indexOf(']')
  if (close < 0) return syntaxError('literal_open', text, 0, shift)
  if (close < text.length - 1) return syntaxError('literal_tail', text, close + 1, shift)
  const inside = text.slice(1, close)
  const good = /^ipv6:/i.test(inside) ? isIpv6(inside.slice(5)) : isIpv4(inside)
  if (!good) return syntaxError('literal_bad', text, 1, shift)
  const ascii = `[${inside.toLowerCase().replace('ipv6:', 'IPv6:')}]`
  return { ascii, unicode: ascii, kind: 'literal' }
}

function isIpv4(text: string): boolean {
  const deps = text.split('.')
  return deps.length === 4 && deps.every(part => /^\d{1,3}$/.test(part) && Number(part) <= 255)
}

/** RFC 5321 §4.1.3: eight groups, or `::` for at least two of them; the last two may be written as IPv4. */
function isIpv6(text: string): boolean {
  const halves = text.split('::')
  if (halves.length > 2) return false
  const [head = '', tail] = halves
  const before = groupCount(head, tail === undefined)
  if (tail === undefined) return before === 8
  return before + groupCount(tail, true) <= 6
}

/** How many 16-bit groups stand here; Infinity if one of them is none. */
function groupCount(text: string, isEnd: boolean): number {
  if (text === '') return 0
  const groups = text.split(':')
  const last = groups.at(-1) ?? ''
  const ipv4 = isEnd && last.includes('.')
  if (ipv4 && !isIpv4(last)) return Number.POSITIVE_INFINITY
  const hex = ipv4 ? groups.slice(0, -1) : groups
  if (!hex.every(group => /^[0-9a-f]{1,4}$/i.test(group))) return Number.POSITIVE_INFINITY
  return hex.length + (ipv4 ? 2 : 0)
}
