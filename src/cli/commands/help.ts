import type { Command } from 'commander'
import { pathOf } from '../ev-command.ts'
import { noSuchCommand } from './no-such-command.ts'

const example = ({ parent, commands }: Command) =>
  parent === null ? 'jobs resume' : (commands[0]?.name() ?? '')

/** Adds `help`, which shows the help of a command at any depth, such as `ev help jobs resume`. */
export function addHelp(parent: Command): void {
  parent
    .command('help')
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
