import type { Command } from 'commander'
import { EvError } from '../../platform/error.ts'
import { sanitizeText } from '../../platform/text.ts'

/** Of a command that lists by itself: whatever names no command below it arrives at the list. */
export function noSuchCommand(given: string, parent: Command): EvError {
  const names = parent.commands.map(command => command.name()).join(', ')
  return new EvError(
    'usage',
    `There is no “ev ${parent.name()} ${sanitizeText(given)}”; there are ${names}.`,
  )
}
