import { Argument, type Command } from 'commander'
import type { CliContext } from '../context.ts'
import { worksWithoutData } from '../ev-command.ts'

const EXAMPLES = `
Examples:
  source <(ev completion bash)
  source <(ev completion zsh)
  ev completion fish | source
  ev completion powershell | Out-String | Invoke-Expression

Add the line for your shell to its startup file: ~/.bashrc, ~/.zshrc (after compinit), ~/.config/fish/config.fish, or
$PROFILE of PowerShell.`

export function defineCompletion(completion: Command, context: CliContext): void {
  worksWithoutData(completion)
  completion
    .addArgument(new Argument('<shell>', 'shell').choices(Object.keys(SCRIPTS)))
    .addHelpText('after', EXAMPLES)
    .action((shell: keyof typeof SCRIPTS) => {
      context.stdout.write(SCRIPTS[shell])
    })
}

/**
 * The completion scripts. They know nothing of the commands: each asks
 * `ev __complete =WORD [WORDS BEFORE]`, which `complete.ts` answers. The equals sign keeps an empty
 * word, which PowerShell would drop.
 */

/** For bash 3.2 (the version of macOS) and later. */
const BASH = `# ev completion for bash. Add this line to ~/.bashrc:  source <(ev completion bash)
_ev() {
  local cur=\${COMP_WORDS[COMP_CWORD]} out line
  local IFS=$'\\n'
  COMPREPLY=()
  out=$(ev __complete "=$cur" "\${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null) || return
  case "$out" in
    files) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$cur")) ;;
    folders) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- "$cur")) ;;
    words$'\\n'*)
      for line in \${out#words}; do COMPREPLY+=("\${line%%$'\\t'*}"); done ;;
  esac
}
complete -F _ev ev
`

const ZSH = `#compdef ev
# ev completion for zsh. Add this line to ~/.zshrc, after compinit:  source <(ev completion zsh)
_ev() {
  local -a lines found
  lines=("\${(@f)$(ev __complete "=\${(Q)words[CURRENT]}" "\${(@Q)words[2,CURRENT-1]}" 2>/dev/null)}")
  case $lines[1] in
    (files) _files ;;
    (folders) _files -/ ;;
    (words)
      shift lines
      found=("\${(@)\${(@)lines//:/\\\\:}/$'\\t'/:}")
      _describe ev found ;;
  esac
}
compdef _ev ev
`

const FISH = `# ev completion for fish. Add this line to ~/.config/fish/config.fish:  ev completion fish | source
function __ev_complete
    set -l current (commandline -ct)
    set -l before (commandline -opc)
    set -e before[1]
    set -l lines (ev __complete "=$current" $before 2>/dev/null)
    set -l kind $lines[1]
    set -e lines[1]
    switch "$kind"
        case files
            __fish_complete_path "$current"
        case folders
            __fish_complete_directories "$current"
        case words
            string join \\n -- $lines
    end
end
complete -c ev -f -a '(__ev_complete)'
`

/** For PowerShell 5.1 and later. Without a result, it completes file names. */
const POWERSHELL = `# ev completion for PowerShell. Add this line to $PROFILE:  ev completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName ev -ScriptBlock {
  param($wordToComplete, $commandAst, $cursorPosition)
  $before = @($commandAst.CommandElements | Select-Object -Skip 1 |
    Where-Object { $_.Extent.EndOffset -lt $cursorPosition } |
    ForEach-Object { $_.Extent.Text })
  $kind, $found = @(& ev __complete "=$wordToComplete" @before 2>$null)
  if ($kind -ne 'words') { return }
  $found | ForEach-Object {
    $word, $help = $_ -split "\`t", 2
    if (-not $help) { $help = $word }
    [System.Management.Automation.CompletionResult]::new($word, $word, 'ParameterValue', $help)
  }
}
`

const SCRIPTS = { bash: BASH, zsh: ZSH, fish: FISH, powershell: POWERSHELL }
