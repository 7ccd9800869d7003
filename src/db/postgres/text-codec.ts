/**
 * PostgreSQL takes no U+0000 in a text, and lists of people have them. So it goes in as two characters, and the first of
 * these, which nobody uses, as two as well: what was stored is what is read.
 */
const MARK = '\u{10fffe}'

/**
 * JSON can say U+0000 and half a character too, as escapes, and PostgreSQL takes no text out of JSON that does so
 * anywhere: there the mark stands for the beginning of such an escape. What an escaped backslash is followed by is none.
 */
const ESCAPES = /((?<!\\)(?:\\\\)*)\\u(0000|d[89a-f][0-9a-f]{2})/gi

const MARKED = new RegExp(`${MARK}(?:([01])|2([0-9a-f]{4}))`, 'giu')

/** A text as the database can store it. */
export function encodeText(text: string): string {
  const whole =
    text.includes('\0') || text.includes(MARK)
      ? text.replaceAll(MARK, `${MARK}1`).replaceAll('\0', `${MARK}0`)
      : text
  return mayBeJson(whole) ? whole.replace(ESCAPES, `$1${MARK}2$2`) : whole
}

const mayBeJson = (text: string) => /^[[{"]/.test(text) && text.includes('\\u')

export function decodeText(text: string): string {
  if (!text.includes(MARK)) return text
  return text.replace(MARKED, (_, one?: string, hex?: string) =>
    hex === undefined ? (one === '0' ? '\0' : MARK) : `\\u${hex}`,
  )
}

/** A parameter that is not encoded once more. */
export type Encoded = { toPostgres(): string }

/** JSON whose texts are encoded, for what the database itself takes apart. */
export function encodeJson(value: unknown): Encoded {
  const json = JSON.stringify(value, (_, inner) =>
    typeof inner === 'string' ? encodeText(inner).toWellFormed() : inner,
  )
  return { toPostgres: () => json }
}
