import type { Command } from 'commander'
import type { CliContext, SetExitCode } from '../context.ts'

const EXAMPLES = `
Examples:
  ev simulate --example > world.json
  ev simulate world.json --smtp-port 2525 --dns-port 5353
  ev simulate world.json --json

The simulator listens on loopback addresses only, so other machines cannot reach it, and it sends no mail. Each mail
server has its own address in 127.0.0.0/8; Linux needs no setup for that. Press Ctrl-C to stop it and print the
counters. With --json, it reads the commands "counters" and "reset" from stdin, one per line.`

export function addSimulate(ev: Command, context: CliContext, setExitCode: SetExitCode): void {
  ev.command('simulate')
    .description('simulate mail servers and DNS on this machine, for tests')
    .argument('[scenario]', 'a JSON file (default: the scenario of --example)')
    .option('--smtp-port <N>', 'port of all mail servers (default: a free port)')
    .option('--dns-port <N>', 'port of the DNS server (default: a free port)')
    .option('--example', 'print an example scenario')
    .option('--json', 'print the endpoints, and at the end the counters, as JSON')
    .option('--debug', 'print stack traces')
    .addHelpText('after', EXAMPLES)
    .action(async (scenario: string | undefined, flags) => {
      const { simulateCommand } = await import('../simulate.ts')
      setExitCode(await simulateCommand(context, scenario, flags))
    })
}
