import { sanitizeText } from '../../platform/text.ts'

/** One of several addresses in a text, perhaps malformed, and its index in the text. */
type Mention = { readonly text: string; readonly at: number }

/**
 * Reads full-width forms of ASCII, which East Asian keyboards type, as ASCII, as IDNA reads them in
 * a domain and RFC 8265 §3.3.2 in a user name.
 */
export const readWide = (text: string): string =>
  text
    .replace(/[！-～]/g, wide => String.fromCharCode(wide.charCodeAt(0) - WIDE_OFFSET))
    .replaceAll('﹫', '@')

/** From `!` to its full-width form (Unicode, U+FF01). */
const WIDE_OFFSET = 0xfee0

/**
 * Finds the addresses in a text that is not one address, such as `a@x.test, Bob <b@y.test>`. An
 * address that occurs twice is found once.
 */
export function findAddresses(text: string): Mention[] {
  const found = new Map<string, Mention>()
  // SharePoint separates by `;#`.
  const separated = readWide(text).replaceAll(';#', '; ')
  for (const { 0: part, index } of separated.matchAll(PART)) {
    for (const mention of splitPart(part, index)) {
      const key = mention.text.toLowerCase()
      if (!found.has(key)) found.set(key, mention)
    }
  }
  return [...found.values()]
}

/**
 * Text between separators: words, quoted strings (which may contain separators) and address
 * literals. A colon ends a label, such as `mailto:`.
 */
const PART = /(?:"[^"\r\n]*"|@(?:\[[^\]\s"@]*\])?|[^@\s,;:<>()[\]{}"，；、､،؛])+/g

/** Marks that are part of names, but separate two addresses if each side has an @. */
const MARK = /[/|&\\]/

function splitPart(part: string, index: number): Mention[] {
  const sides = part.split(MARK)
  if (sides.length < 2 || !sides.every(side => side.includes('@'))) return toMention(part, index)
  let at = index
  return sides.flatMap(side => {
    const mention = toMention(side, at)
    at += side.length + 1
    return mention
  })
}

/** Returns nothing for a name, a quoted phrase and a lone @. */
function toMention(part: string, at: number): Mention[] {
  const text = (/^"([^"\s]*)"$/.exec(part)?.[1] ?? part)
    .replace(/^['‘’“”„«»`]+/, '')
    .replace(/(?<!['‘’“”«»`.])['‘’“”«»`.]+$/, '')
  const isAddress = text.includes('@') && text !== '@' && !/^"[^"]*"$/.test(text)
  return isAddress ? [{ text, at: at + part.indexOf(text) }] : []
}

/** Enough of an address to recognize it in a sentence. */
const SHOWN_LENGTH_MAX = 80

/** Names two of several addresses in a sentence. */
export function nameAddresses([first, second, ...others]: readonly Mention[]): string {
  const [one, other] = [first, second].map(mention =>
    sanitizeText(mention?.text ?? '', SHOWN_LENGTH_MAX),
  )
  return others.length === 0
    ? `two addresses, ${one} and ${other}`
    : `${others.length + 2} addresses, such as ${one} and ${other}`
}
