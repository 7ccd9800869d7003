import { Argument, type Command } from 'commander'
import type { CliContext, SetExitCode } from '../context.ts'

const EXAMPLES = `
Examples:
  source <(ev completion bash)          # in ~/.bashrc
  source <(ev completion zsh)           # in ~/.zshrc, after compinit
  ev completion fish | source           # in ~/.config/fish/config.fish`

export function addCompletion(ev: Command, context: CliContext, setExitCode: SetExitCode): void {
  ev.command('completion')
    .description('print the completion script for a shell')
    .addArgument(new Argument('<shell>', 'the shell').choices(['bash', 'zsh', 'fish']))
    .addHelpText('after', EXAMPLES)
    .action(async (shell: 'bash' | 'zsh' | 'fish') => {
      const { completionCommand } = await import('../completion/completion.ts')
      setExitCode(completionCommand(context, ev, shell))
    })
}
