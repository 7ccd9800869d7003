import { EvError } from '../../base/error.ts'
import { cleanText } from '../../base/text.ts'

/** As over HTTP. */
const NAME_LENGTH_MAX = 100

/** A name for `thing`, such as an account or a key, as people give it. */
export function checkedName(given: string, thing: string): string {
  const name = given.trim()
  if (name !== '' && name.length <= NAME_LENGTH_MAX && cleanText(name) === name) return name
  throw new EvError(
    'usage',
    `“${cleanText(given)}” is no name for ${thing}: --name takes 1 to ${NAME_LENGTH_MAX} characters on one line.`,
  )
}
