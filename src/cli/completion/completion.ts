import type { Command } from 'commander'
import type { CliContext } from '../context.ts'
import { bashScript } from './bash.ts'
import { fishScript } from './fish.ts'
import { branches } from './tree.ts'
import { zshScript } from './zsh.ts'

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript }

/** `ev completion`: gives the code to exit with. */
export function completionCommand(
  context: CliContext,
  ev: Command,
  shell: keyof typeof SCRIPTS,
): number {
  context.stdout.write(SCRIPTS[shell](branches(ev)))
  return 0
}
