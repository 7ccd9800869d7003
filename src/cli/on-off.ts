import { EvError } from '../platform/error.ts'
import { sanitizeText } from '../platform/text.ts'

/** Parses an argument that is `on` or `off`. `which` names it in the error. */
export function parseOnOff(which: 'first' | 'second', value: string): boolean {
  if (value === 'on' || value === 'off') return value === 'on'
  throw new EvError(
    'usage',
    `The ${which} argument is "${sanitizeText(value)}"; it takes on or off.`,
  )
}
