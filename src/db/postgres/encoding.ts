/**
 * PostgreSQL rejects U+0000 in text, and uploaded lists contain it. It is stored as an escape of
 * two characters; the escape character, a noncharacter of Unicode, is escaped too.
 */
const MARK = '\u{10fffe}'

/**
 * Matches JSON escapes of U+0000 and of surrogates: PostgreSQL cannot extract text from JSON that
 * contains them, so the mark replaces their `\u`. An escaped backslash starts no escape.
 */
const ESCAPES = /((?<!\\)(?:\\\\)*)\\u(0000|d[89a-f][0-9a-f]{2})/gi

const MARKED = new RegExp(`${MARK}(?:([01])|2([0-9a-f]{4}))`, 'giu')

/** Encodes a text so that PostgreSQL can store it. */
export function encodeText(text: string): string {
  const encoded =
    text.includes('\0') || text.includes(MARK)
      ? text.replaceAll(MARK, `${MARK}1`).replaceAll('\0', `${MARK}0`)
      : text
  return mayBeJson(encoded) ? encoded.replace(ESCAPES, `$1${MARK}2$2`) : encoded
}

const mayBeJson = (text: string) => /^[[{"]/.test(text) && text.includes('\\u')

export function decodeText(text: string): string {
  if (!text.includes(MARK)) return text
  return text.replace(MARKED, (_, one?: string, hex?: string) =>
    hex === undefined ? (one === '0' ? '\0' : MARK) : `\\u${hex}`,
  )
}

/** A parameter that is already encoded. */
export type Encoded = { toPostgres(): string }

/**
 * Writes an array as PostgreSQL reads it, with encoded texts (manual, 8.15.6, Array Input and Output
 * Syntax). Objects become JSON; null and undefined become NULL.
 */
export function encodeArray(values: readonly unknown[]): Encoded {
  let text = ''
  let [previous, element]: [unknown, string] = [undefined, toElement(undefined)]
  for (const value of values) {
    // Many columns have one value in all rows.
    if (value !== previous) element = toElement(value)
    previous = value
    text += text === '' ? element : `,${element}`
  }
  return { toPostgres: () => `{${text}}` }
}

function toElement(value: unknown): string {
  if (value === null || value === undefined) return 'NULL'
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  return quote(typeof value === 'string' ? encodeText(value) : encodeJson(value).toPostgres())
}

/** Of texts without control characters, JSON escapes the same two characters, and is faster. */
const quote = (text: string): string =>
  /\p{Cc}/u.test(text) ? `"${text.replace(/["\\]/g, '\\$&')}"` : JSON.stringify(text.toWellFormed())

/** Serializes JSON with encoded texts, for JSON that the database itself parses. */
export function encodeJson(value: unknown): Encoded {
  const json = JSON.stringify(value, (_, inner) =>
    typeof inner === 'string' ? encodeText(inner).toWellFormed() : inner,
  )
  return { toPostgres: () => json }
}
