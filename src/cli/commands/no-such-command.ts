import type { Command } from 'commander'
import { EvError } from '../../platform/error.ts'
import { sanitizeText } from '../../platform/text.ts'
import { pathOf } from '../ev-command.ts'

/**
 * Returns the error for an unknown subcommand. A command with a default subcommand passes the
 * unknown name to it as an argument, so commander does not report it.
 */
export function noSuchCommand(name: string, parent: Command): EvError {
  const names = parent.commands
    .map(command => command.name())
    .filter(one => one !== 'help')
    .join(', ')
  return new EvError(
    'usage',
    `Unknown command "${pathOf(parent)} ${sanitizeText(name)}". Available: ${names}.`,
  )
}
