import type { Command } from 'commander'
import type { CliContext } from '../context.ts'
import { bashScript } from './bash.ts'
import { powershellScript } from './powershell.ts'
import { type Branch, branches, type Flag, IDS, steps, type Takes } from './tree.ts'
import { zshScript } from './zsh.ts'

function fishScript(branches: readonly Branch[]): string {
  return `# ev completion for fish. Add this line to ~/.config/fish/config.fish:  ev completion fish | source
function __ev_at
    set -l at ev
    for word in (commandline -opc)[2..-1]
        if contains -- "$at $word" ${steps(branches).join(' ')}
            set at "$at $word"
        end
    end
    test "$at" = "$argv"
end
complete -c ev -f
${branches.flatMap(lines).join('\n')}
`
}

function lines({ path, commands, flags, argument }: Branch): string[] {
  const at = `complete -c ev -n ${quoted(`__ev_at ${path}`)}`
  return [
    ...commands.map(({ name, help }) => `${at} -a ${quoted(name)} -d ${quoted(help)}`),
    ...(commands.length > 0 || argument.kind === 'nothing' ? [] : [`${at}${offer(argument)}`]),
    ...flags.map(flag => `${at} ${flagText(flag)}`),
  ]
}

function flagText({ names, help, takes }: Flag): string {
  const spelled = names.map(name =>
    name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`,
  )
  const value =
    takes.kind === 'nothing' ? '' : `${takes.kind === 'file' ? ' -r' : ' -x'}${offer(takes)}`
  return `${spelled.join(' ')} -d ${quoted(help)}${value}`
}

function offer(takes: Takes): string {
  switch (takes.kind) {
    case 'words':
      return ` -a ${quoted(takes.words.join(' '))}`
    case 'file':
      return ' -F'
    case 'folder':
      return " -a '(__fish_complete_directories)'"
    case 'job':
    case 'webhook':
      return ` -a ${quoted(`(${IDS[takes.kind]})`)}`
    case 'nothing':
    case 'text':
      return ''
  }
}

/** Quotes for fish, which knows only the escapes \\' and \\\\ in single quotes. */
const quoted = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`

const SCRIPTS = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
  powershell: powershellScript,
}

/** Runs `ev completion` and returns the exit code. */
export function completionCommand(
  context: CliContext,
  ev: Command,
  shell: keyof typeof SCRIPTS,
): number {
  context.stdout.write(SCRIPTS[shell](branches(ev)))
  return 0
}
