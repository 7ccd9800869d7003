import { EvError } from '../platform/error.ts'
import { sanitizeText } from '../platform/text.ts'

/** Parses the value of a flag as a whole number in a range. Throws EvError('usage'). */
export function parseInteger(
  flag: string,
  value: string,
  [min, max]: readonly [min: number, max: number],
): number {
  const number = Number(value)
  if (/^\d+$/.test(value) && number >= min && number <= max) return number
  throw new EvError(
    'usage',
    `${flag} is "${sanitizeText(value)}"; it takes a whole number from ${min} to ${max}.`,
  )
}

/** Parses a port to listen on; 0 for a free port. */
export const parsePort = (flag: string, value: string): number =>
  parseInteger(flag, value, [0, 65_535])
