import { Argument, type Command } from 'commander'
import type { CliContext, SetExitCode } from '../context.ts'
import { addSettings } from '../settings.ts'

const MCP_EXAMPLES = `
Examples:
  ev mcp
  EV_KEY=ev_live_… ev mcp --url https://ev.example.com

The server has the tools verify, explain, verify_list, job_status and cancel_job. It reads requests from stdin and
writes responses to stdout, so an AI application starts it: {"command": "ev", "args": ["mcp"]}. Each request is
answered within ten seconds. ev serve has the same tools at /mcp.

With --url, it uses a service and the API key in EV_KEY. Without it, it contacts mail servers from this machine.`

export function addMcp(ev: Command, context: CliContext, setExitCode: SetExitCode): void {
  const mcp = ev
    .command('mcp')
    .description('run a Model Context Protocol server on stdin and stdout')
    .option('--url <url>', 'URL of the service to use (default: verify from this machine)')
    .option('--sandbox', 'simulate results; the prefix of an address selects its result')
    .addHelpText('after', MCP_EXAMPLES)
    .action(async flags => {
      const { mcpCommand } = await import('../mcp.ts')
      setExitCode(await mcpCommand(context, flags))
    })
  addSettings(mcp, context)
}

export function addVersion(ev: Command, context: CliContext, setExitCode: SetExitCode): void {
  ev.command('version')
    .description('print the versions of ev and Node')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev version\n  ev version --json')
    .action(async flags => {
      const { versionCommand } = await import('../version.ts')
      setExitCode(versionCommand(context, flags))
    })
}

const SHELLS = ['bash', 'zsh', 'fish', 'powershell'] as const

const COMPLETION_EXAMPLES = `
Examples:
  source <(ev completion bash)
  source <(ev completion zsh)
  ev completion fish | source
  ev completion powershell | Out-String | Invoke-Expression

Add the line for your shell to its startup file: ~/.bashrc, ~/.zshrc (after compinit), ~/.config/fish/config.fish, or
$PROFILE of PowerShell.`

export function addCompletion(ev: Command, context: CliContext, setExitCode: SetExitCode): void {
  ev.command('completion')
    .description('print the completion script for a shell')
    .addArgument(new Argument('<shell>', 'shell').choices(SHELLS))
    .addHelpText('after', COMPLETION_EXAMPLES)
    .action(async (shell: (typeof SHELLS)[number]) => {
      const { completionCommand } = await import('../completion/completion.ts')
      setExitCode(completionCommand(context, ev, shell))
    })
}

const SIMULATE_EXAMPLES = `
Examples:
  ev simulate --example > scenario.json
  ev simulate scenario.json --smtp-port 2525 --dns-port 5353
  ev simulate scenario.json --json

The simulator listens on loopback addresses only, so other machines cannot reach it, and it sends no mail. Each mail
server has its own address in 127.0.0.0/8; Linux needs no setup for that. Press Ctrl-C to stop it and print the
counters. With --json, it reads the commands "counters" and "reset" from stdin, one per line.`

export function addSimulate(ev: Command, context: CliContext, setExitCode: SetExitCode): void {
  ev.command('simulate')
    .description('simulate mail servers and DNS on this machine, for tests')
    .argument('[scenario]', 'scenario file, JSON (default: the example)')
    .option('--smtp-port <n>', 'port of all mail servers (default: a free port)')
    .option('--dns-port <n>', 'port of the DNS server (default: a free port)')
    .option('--example', 'print an example scenario')
    .option('--json', 'print JSON: the endpoints, and the counters at the end')
    .option('--debug', 'print stack traces')
    .addHelpText('after', SIMULATE_EXAMPLES)
    .action(async (scenario: string | undefined, flags) => {
      const { simulateCommand } = await import('../simulate.ts')
      setExitCode(await simulateCommand(context, scenario, flags))
    })
}
