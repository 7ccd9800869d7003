import type { Command } from 'commander'
import type { CliContext, SetExitCode } from '../context.ts'
import { worksWithoutData } from '../ev-command.ts'
import { addSettings } from '../settings.ts'

const MCP_EXAMPLES = `
Examples:
  ev mcp
  EV_KEY=ev_live_… ev mcp --url https://ev.example.com

The server has the tools verify, explain, verify_list, job_status and cancel_job. It reads requests from stdin and
writes responses to stdout, so an AI application starts it: {"command": "ev", "args": ["mcp"]}. Each request is
answered within ten seconds. ev serve has the same tools at /mcp.

With --url, it uses a service and the API key in EV_KEY. Without it, it contacts mail servers from this machine.`

export function defineMcp(mcp: Command, context: CliContext, setExitCode: SetExitCode): void {
  worksWithoutData(mcp)
  mcp
    .option('--url <url>', 'URL of the service to use (default: verify from this machine)')
    .option('--sandbox', 'simulate results; the prefix of an address selects its result')
    .addHelpText('after', MCP_EXAMPLES)
    .action(async flags => {
      const { mcpCommand } = await import('../mcp.ts')
      setExitCode(await mcpCommand(context, flags))
    })
  addSettings(mcp, context)
}

export function defineVersion(
  version: Command,
  context: CliContext,
  setExitCode: SetExitCode,
): void {
  worksWithoutData(version)
  version
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev version\n  ev version --json')
    .action(async flags => {
      const { versionCommand } = await import('../version.ts')
      setExitCode(versionCommand(context, flags))
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

export function defineSimulate(
  simulate: Command,
  context: CliContext,
  setExitCode: SetExitCode,
): void {
  worksWithoutData(simulate)
  simulate
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
