import { type Command, Option } from 'commander'
import type { CliContext, SetExitCode } from '../context.ts'
import { addSettings } from '../settings.ts'

const EXAMPLES = `
Examples:
  ev verify ann@example.com
  ev verify --explain ann@example.com
  ev verify --json --include flags,evidence ann@example.com bob@example.org
  ev verify - --format csv < addresses.txt

Exit codes: 0 all deliverable, 1 at least one risky or undeliverable, 2 otherwise, if at least one is unknown.`

export function addVerify(ev: Command, context: CliContext, setExitCode: SetExitCode): void {
  const verify = ev
    .command('verify')
    .description('verify one or a few addresses')
    .argument('<address...>', 'addresses; - reads them from stdin, one per line')
    .addOption(
      new Option('--format <format>', 'output format (default: text)').choices([
        ...['text', 'json', 'ndjson', 'csv'],
      ]),
    )
    .addOption(
      new Option('--json', 'print JSON: one object, or an array for several addresses').conflicts(
        'format',
      ),
    )
    .addOption(
      new Option('--ndjson', 'print one JSON object per line, as results arrive').conflicts([
        ...['json', 'format'],
      ]),
    )
    .option('--include <what>', 'add fields to the JSON: flags,evidence')
    .option('--explain', 'show the SMTP dialogue with the mail server')
    .option('--no-smtp', 'skip the SMTP check')
    .option('--sandbox', 'simulated results, chosen by the prefix of the address')
    .addHelpText('after', EXAMPLES)
    .action(async (addresses: string[], flags) => {
      const { verifyCommand } = await import('../verify.ts')
      setExitCode(await verifyCommand(context, addresses, flags))
    })
  addSettings(verify, context)
}
