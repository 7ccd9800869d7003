import type { Command } from 'commander'
import { EvError } from '../platform/error.ts'
import { sanitizeText } from '../platform/text.ts'
import { pathOf, worksWithoutData } from './ev-command.ts'

const example = ({ parent, commands }: Command) =>
  parent === null ? 'jobs resume' : (commands[0]?.name() ?? '')

/** Adds `help`, which shows the help of a command at any depth, such as `ev help jobs resume`. */
export function addHelp(parent: Command): void {
  const help = parent.command('help')
  worksWithoutData(help)
  help
    .description('show the help of a command')
    .argument('[command...]', 'the command')
    .addHelpText('after', `\nExamples:\n  ${pathOf(parent)} help ${example(parent)}`)
    .action((names: string[]) => {
      let command = parent
      for (const name of names) {
        const next = command.commands.find(one => one.name() === name)
        if (next === undefined) throw noSuchCommand(name, command)
        command = next
      }
      command.help()
    })
}

/**
 * Returns the error for an unknown subcommand. A command with a default subcommand passes the
 * unknown name to it as an argument, so commander does not report it.
 */
export function noSuchCommand(name: string, parent: Command): EvError {
  const names = parent.commands
    .map(command => command.name())
    .filter(one => one !== 'help')
    .join(', ')
  const remedy =
    names === ''
      ? `To show the help of "${pathOf(parent)}", run "${pathOf(parent)} --help".`
      : `Available: ${names}.`
  return new EvError(
    'usage',
    `Unknown command "${pathOf(parent)} ${sanitizeText(name)}". ${remedy}`,
  )
}
