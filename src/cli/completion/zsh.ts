import { type Branch, IDS, steps, type Takes, valuePatterns } from './tree.ts'

/** Returns the completion script for zsh. */
export function zshScript(branches: readonly Branch[]): string {
  return `#compdef ev
# ev completion for zsh. Add this line to ~/.zshrc, after compinit:  source <(ev completion zsh)
_ev() {
  local cmd=ev i
  local -a found
  for ((i = 2; i < CURRENT; i++)); do
    case "$cmd $words[i]" in
      (${steps(branches).join('|')}) cmd="$cmd $words[i]" ;;
    esac
  done
  case "$cmd $words[CURRENT-1]" in
${valueCases(branches).join('\n')}
  esac
  case "$cmd" in
${branches.map(branchCase).join('\n')}
  esac
}
compdef _ev ev
`
}

/** Returns the cases that complete only the value after an option that takes one. */
function valueCases(branches: readonly Branch[]): string[] {
  return [...valuePatterns(branches, offer)].map(
    ([offered, patterns]) => `    (${patterns.join('|')}) ${offered}; return ;;`,
  )
}

function branchCase({ path, commands, flags, argument }: Branch): string {
  const options = flags.flatMap(({ names, help }) => names.map(name => described(name, help)))
  const names = commands.map(({ name, help }) => described(name, help))
  const bare =
    commands.length > 0 ? `found=(${names.join(' ')}); _describe command found` : offer(argument)
  return `    ('${path}')
      if [[ $PREFIX == -* ]]; then found=(${options.join(' ')}); _describe option found
      else ${bare}; fi ;;`
}

function offer(takes: Takes): string {
  switch (takes.kind) {
    case 'words':
      return `compadd -- ${takes.words.join(' ')}`
    case 'file':
      return '_files'
    case 'folder':
      return '_files -/'
    case 'job':
    case 'webhook':
      return `compadd -- $(${IDS[takes.kind]})`
    case 'nothing':
    case 'text':
      return ':'
  }
}

/** Escapes colons, which end the name for _describe, and quotes, which end the shell word. */
const described = (name: string, help: string) =>
  `'${name.replaceAll(':', '\\:')}:${help.replaceAll("'", "'\\''")}'`
