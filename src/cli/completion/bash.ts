import { type Branch, IDS, steps, type Takes, valuePatterns } from './tree.ts'

/** Returns the completion script for bash 3.2 (the version of macOS) and later. */
export function bashScript(branches: readonly Branch[]): string {
  return `# ev completion for bash. Add this line to ~/.bashrc:  source <(ev completion bash)
_ev() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} path=ev i
  local IFS=$' \\t\\n'
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$path \${COMP_WORDS[i]}" in
      ${steps(branches).join('|')}) path="$path \${COMP_WORDS[i]}" ;;
    esac
  done
  case "$path $prev" in
${valueCases(branches).join('\n')}
  esac
  case "$path" in
${branches.map(branchCase).join('\n')}
  esac
}
_ev_words() { COMPREPLY=($(compgen -W "$1" -- "$cur")); }
_ev_paths() {
  local IFS=$'\\n'
  compopt -o filenames 2>/dev/null
  COMPREPLY=($(compgen "$1" -- "$cur"))
}
complete -F _ev ev
`
}

/** Returns the cases that complete only the value after an option that takes one. */
function valueCases(branches: readonly Branch[]): string[] {
  return [...valuePatterns(branches, offer)].map(
    ([offered, patterns]) => `    ${patterns.join('|')}) ${offered}; return ;;`,
  )
}

function branchCase({ path, commands, flags, argument }: Branch): string {
  const names = commands.map(({ name }) => name).join(' ')
  const options = flags.flatMap(flag => flag.names).join(' ')
  const bare = commands.length > 0 ? `_ev_words '${names}'` : offer(argument)
  return `    '${path}') if [[ $cur == -* ]]; then _ev_words '${options}'; else ${bare}; fi ;;`
}

function offer(takes: Takes): string {
  switch (takes.kind) {
    case 'words':
      return `_ev_words '${takes.words.join(' ')}'`
    case 'file':
      return '_ev_paths -f'
    case 'folder':
      return '_ev_paths -d'
    case 'job':
    case 'webhook':
      return `_ev_words "$(${IDS[takes.kind]})"`
    case 'nothing':
    case 'text':
      return ':'
  }
}
