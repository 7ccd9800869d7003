import type { Command } from 'commander'
import type { CliContext, EndWith } from '../context.ts'

const EXAMPLES = `
Examples:
  ev simulate --example > world.json
  ev simulate world.json --smtp-port 2525 --dns-port 5353
  ev simulate world.json --json

Everything listens on loopback addresses alone: nobody else can reach it, and no mail leaves. Each server has
an address of its own in 127.0.0.0/8, which Linux has by itself. Ctrl-C ends it and shows what it saw.
With --json it answers the lines “counters” and “reset” on stdin.`

export function addSimulate(ev: Command, context: CliContext, end: EndWith): void {
  ev.command('simulate')
    .description('a small world of mail servers and DNS, to try ev and your own program on')
    .argument('[scenario]', 'a JSON file; none: the world of --example')
    .option('--smtp-port <N>', 'port of all mail servers (default: a free one)')
    .option('--dns-port <N>', 'port of the DNS (default: a free one)')
    .option('--example', 'print a scenario to start from')
    .option('--json', 'print where it listens, and at the end what it saw, as JSON')
    .option('--debug', 'show the stack of errors')
    .addHelpText('after', EXAMPLES)
    .action(async (scenario: string | undefined, flags) => {
      const { simulateCommand } = await import('../simulate.ts')
      end(await simulateCommand(context, scenario, flags))
    })
}
