import type { Command } from 'commander'
import { noSuchCommand } from './no-such-command.ts'

/** Adds `help`, which shows the help of a command at any depth, such as `ev help jobs resume`. */
export function addHelp(parent: Command): void {
  parent
    .command('help')
    .description('show the help of a command')
    .argument('[command...]', 'the command, such as jobs resume')
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
