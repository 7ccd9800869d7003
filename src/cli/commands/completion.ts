import { Argument, type Command } from 'commander'
import type { CliContext, SetExitCode } from '../context.ts'

const SHELLS = ['bash', 'zsh', 'fish', 'powershell'] as const

const EXAMPLES = `
Examples:
  source <(ev completion bash)          # in ~/.bashrc
  source <(ev completion zsh)           # in ~/.zshrc, after compinit
  ev completion fish | source           # in ~/.config/fish/config.fish
  ev completion powershell | Out-String | Invoke-Expression  # in $PROFILE`

export function addCompletion(ev: Command, context: CliContext, setExitCode: SetExitCode): void {
  ev.command('completion')
    .description('print the completion script for a shell')
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .addHelpText('after', EXAMPLES)
    .action(async (shell: (typeof SHELLS)[number]) => {
      const { completionCommand } = await import('../completion/completion.ts')
      setExitCode(completionCommand(context, ev, shell))
    })
}
