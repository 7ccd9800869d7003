import { EvError } from '../../platform/error.ts'
import { sanitizeText } from '../../platform/text.ts'

/** What people say of something that is there or not. */
export function onOrOff(given: string): boolean {
  if (given === 'on' || given === 'off') return given === 'on'
  throw new EvError('usage', `Write on or off after the account, not “${sanitizeText(given)}”.`)
}
