import { OperationError } from '../platform/operation-error.ts'
import { sanitizeText } from '../platform/text.ts'

export const NAME_LENGTH_MAX = 100

/** A name of an account or a key, without blanks around it: one line of 1 to 100 characters. Throws `name_invalid`. */
export function parseName(given: string, of: 'account' | 'key'): string {
  const name = given.trim()
  if (name !== '' && name.length <= NAME_LENGTH_MAX && sanitizeText(name) === name) return name
  throw new OperationError('name_invalid', { name: given, of, lengthMax: NAME_LENGTH_MAX })
}
