import { sanitizeText } from '../platform/text.ts'
import { accountError } from './errors.ts'

export const NAME_LENGTH_MAX = 100

/**
 * Parses the name of an account, a key or a person: one line of 1 to 100 characters, trimmed. Throws
 * `name_invalid`.
 */
export function parseName(text: string): string {
  const name = text.trim()
  if (name !== '' && name.length <= NAME_LENGTH_MAX && sanitizeText(name) === name) return name
  throw accountError('name_invalid', { name: text, lengthMax: NAME_LENGTH_MAX })
}
