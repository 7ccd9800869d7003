/** What is longer is no pasted address, and is left to the parser to refuse. */
const PASTED_LENGTH_MAX = 2_000
/** Wrappings within wrappings: quotes, a name, angle brackets, mailto; no more has been seen. */
const ROUNDS_MAX = 5

/** Takes one wrapping after the other from `text` until `isDone` says that an address is left; `notes` names them. */
export function extractAddress(
  text: string,
  isDone: (text: string) => boolean,
): { text: string; notes: string[] } {
  const notes: string[] = []
  let clean = text
  if (text.length > PASTED_LENGTH_MAX) return { text, notes }
  for (let round = 0; round < ROUNDS_MAX && !isDone(clean); round++) {
    const step = firstStep(clean)
    if (step === null) break
    clean = step.text
    if (!notes.includes(step.note)) notes.push(step.note)
  }
  return { text: clean, notes }
}

/** Rows in reading order: what is taken, and how; a row that changes nothing does not apply. */
const STEPS: readonly [note: string, take: (text: string) => string][] = [
  ['surrounding space', trim],
  ['mailto:', withoutMailto],
  ['smtp:', text => text.replace(/^smtp:/i, '')], // As directories export proxy addresses.
  ['display name', withoutDisplayName],
  ['angle brackets', text => inside(text, '<', '>')],
  ['trailing punctuation', withoutTail],
  ['wrapping quotes', withoutQuotes],
]

function firstStep(text: string) {
  for (const [note, take] of STEPS) {
    const taken = take(text)
    if (taken !== text) return { text: taken, note }
  }
  return null
}

/** White space of any kind, and characters that nobody sees. */
const BLANK = /[\s\p{Zs}\u00AD\u200B-\u200F\u202A-\u202E\u2060-\u2069\uFEFF\0]/u

function trim(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && BLANK.test(text.charAt(start))) start++
  while (end > start && BLANK.test(text.charAt(end - 1))) end--
  return text.slice(start, end)
}

/** RFC 6068: `mailto:` with its percent-encoding, and without the headers after the question mark. */
function withoutMailto(text: string): string {
  const scheme = /^mailto:(?:\/\/)?/i.exec(text)?.[0]
  if (scheme === undefined) return text
  const target = text.slice(scheme.length).split('?', 1)[0] ?? ''
  try {
    return decodeURIComponent(target)
  } catch {
    return target // A percent sign that encodes nothing stands for itself.
  }
}

/** `Name <ann@example.com>` and `"Name" <ann@example.com>` (RFC 5322 §3.4 name-addr); not one of several addresses. */
function withoutDisplayName(text: string): string {
  const open = text.indexOf('<')
  if (open <= 0 || !text.endsWith('>') || text.includes('<', open + 1)) return text
  const name = text
    .slice(0, open)
    .replace(/"[^"]*"/g, '')
    .trim()
  const isAnother =
    name.includes('@') && name.toLowerCase() !== text.slice(open + 1, -1).toLowerCase()
  return isAnother || /[,;]/.test(name) ? text : text.slice(open)
}

const inside = (text: string, open: string, close: string) =>
  text.length > 2 && text.startsWith(open) && text.endsWith(close) ? text.slice(1, -1) : text

/** A list's comma or semicolon; a full stop only if a space shows that it ends a sentence. */
function withoutTail(text: string): string {
  if (/[,;]$/.test(text)) return text.slice(0, -1)
  return /\s\.$/.test(text) ? text.slice(0, -2) : text
}

/** Quotation marks around the whole, as CSV, SQL and word processors leave them. */
function withoutQuotes(text: string): string {
  const pairs = ['""', "''", '“”', '„“', '‘’', '«»', '``']
  const found = pairs.map(pair => inside(text, pair.charAt(0), pair.charAt(1)))
  return found.find(taken => taken !== text) ?? text
}
