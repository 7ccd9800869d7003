/**
 * PostgreSQL takes no U+0000 in a text, and lists of people have them. So it goes in as two characters, and the first of
 * these, which nobody uses, as two as well: what was stored is what is read.
 */
const MARK = '\u{10fffe}'

export function encodeText(text: string): string {
  if (!text.includes('\0') && !text.includes(MARK)) return text
  return text.replaceAll(MARK, `${MARK}1`).replaceAll('\0', `${MARK}0`)
}

export function decodeText(text: string): string {
  if (!text.includes(MARK)) return text
  return text.replaceAll(`${MARK}0`, '\0').replaceAll(`${MARK}1`, MARK)
}

/** JSON whose texts are encoded, for what the database itself takes apart. */
export function encodeJson(value: unknown): string {
  return JSON.stringify(value, (_, inner) =>
    typeof inner === 'string' ? encodeText(inner) : inner,
  )
}
