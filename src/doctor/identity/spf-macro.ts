import { isIpv6, partsOf } from './ip.ts'

/** Who sends what from where: what an SPF record is asked about. */
export type SpfQuestion = {
  readonly ip: string
  /** The whole sender; `postmaster@HELO` for the null sender (RFC 7208 §2.4). */
  readonly sender: string
  readonly helo: string
}

/** Fills in the macros of RFC 7208 §7; null where one is none. `domain` is the one whose record it is. */
export function filledIn(text: string, domain: string, question: SpfQuestion): string | null {
  let isGood = true
  const filled = text.replace(/%(?:\{([^}]*)\}|(.?))/g, (_, macro?: string, sign = '') => {
    const stands = macro === undefined ? SIGNS[sign] : expandMacro(macro, domain, question)
    isGood &&= typeof stands === 'string'
    return stands ?? ''
  })
  return isGood ? shortened(filled) : null
}

const SIGNS: Readonly<Record<string, string>> = { '%': '%', _: ' ', '-': '%20' }

function expandMacro(macro: string, domain: string, question: SpfQuestion): string | null {
  const [, letter, keep = '', turn = '', delimiters = '.'] =
    /^([slodiphv])(\d*)(r?)([.+,/_=-]*)$/i.exec(macro) ?? []
  if (letter === undefined || keep === '0') return null
  const cut = new Set(delimiters === '' ? '.' : delimiters)
  const parts = splitBy(letterStandsFor(letter.toLowerCase(), domain, question), cut)
  if (turn !== '') parts.reverse()
  return (keep === '' ? parts : parts.slice(-Number(keep))).join('.')
}

function letterStandsFor(
  letter: string,
  domain: string,
  { ip, sender, helo }: SpfQuestion,
): string {
  const at = sender.lastIndexOf('@')
  switch (letter) {
    case 's':
      return sender
    case 'l':
      return sender.slice(0, at)
    case 'o':
      return sender.slice(at + 1)
    case 'i':
      return partsOf(ip).join('.')
    case 'h':
      return helo
    case 'v':
      return isIpv6(ip) ? 'ip6' : 'in-addr'
    case 'p':
      return 'unknown' // §7.2 would have it looked up, and advises against its use.
    default:
      return domain
  }
}

function splitBy(text: string, delimiters: ReadonlySet<string>): string[] {
  const parts = ['']
  for (const character of text) {
    if (delimiters.has(character)) parts.push('')
    else parts[parts.length - 1] += character
  }
  return parts
}

/** §7.3: a name that is too long loses labels on the left. */
function shortened(name: string): string {
  let rest = name
  while (rest.length > NAME_OCTETS_MAX && rest.includes('.'))
    rest = rest.slice(rest.indexOf('.') + 1)
  return rest
}

/** RFC 1035 §2.3.4: 255 octets on the wire are 253 in text. */
const NAME_OCTETS_MAX = 253
