import type { Command } from 'commander'
import type { CliContext, SetExitCode } from '../context.ts'
import { addSettings } from '../settings.ts'

const EXAMPLES = `
Examples:
  ev mcp
  EV_KEY=ev_live_… ev mcp --url https://ev.example.com

The server has the tools verify, verify_list, job_status and explain. It reads requests from stdin and writes
responses to stdout, so an AI application starts it: {"command": "ev", "args": ["mcp"]}. It needs the package
@modelcontextprotocol/server: npm install @modelcontextprotocol/server

With --url it uses a service, with the API key in EV_KEY; otherwise it contacts mail servers from this machine.`

export function addMcp(ev: Command, context: CliContext, setExitCode: SetExitCode): void {
  const mcp = ev
    .command('mcp')
    .description('run a Model Context Protocol server on stdin and stdout')
    .option('--url <url>', 'use the service at this URL')
    .option('--sandbox', 'simulated results, chosen by the prefix of the address')
    .addHelpText('after', EXAMPLES)
    .action(async flags => {
      const { mcpCommand } = await import('../mcp/mcp.ts')
      setExitCode(await mcpCommand(context, flags))
    })
  addSettings(mcp, context)
}
