import { OperationError } from '../platform/operation-error.ts'
import { sanitizeText } from '../platform/text.ts'

export const NAME_LENGTH_MAX = 100

/**
 * Parses the name of an account, a key or a person: one line of 1 to 100 characters, trimmed. Throws
 * `name_invalid`.
 */
export function parseName(text: string, of: 'account' | 'key' | 'person'): string {
  const name = text.trim()
  if (name !== '' && name.length <= NAME_LENGTH_MAX && sanitizeText(name) === name) return name
  throw new OperationError('name_invalid', { name: text, of, lengthMax: NAME_LENGTH_MAX })
}
