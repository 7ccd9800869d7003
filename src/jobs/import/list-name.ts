import { sanitizeText } from '../../platform/text.ts'

/** Maximum length of the name of a list, in UTF-16 units: pages and terminals show it in one line. */
export const LIST_NAME_LENGTH_MAX = 200

/** Control, format and private-use characters, lone surrogates and line separators. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]+/gu

/**
 * Returns the name of a list that was sent as this file: its last path part, without characters that
 * cannot be shown. Null if nothing is left, as of `..`.
 */
export function toListName(fileName: string): string | null {
  const last = fileName.split(/[\\/]/).at(-1) ?? ''
  const name = sanitizeText(last.replace(INVISIBLE, ''), LIST_NAME_LENGTH_MAX)
  return /^\.*$/.test(name) ? null : name
}
