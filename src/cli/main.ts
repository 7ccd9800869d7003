import { readFileSync } from 'node:fs'
import { Command, CommanderError, Option } from 'commander'
import { EXIT_CODES, reportError, watchOutput } from './exit.ts'
import { addSettings } from './settings.ts'

const version = (): string =>
  JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version

/** The commands; each loads what it needs only when it runs. */
function program(): Command {
  const ev = new Command('ev')
    .description('Finds out whether an email address can receive mail, before anyone sends to it.')
    .version(version())
    .showHelpAfterError('(ev help shows what there is)')
    .exitOverride()
  const verify = ev
    .command('verify')
    .description('verify one or a few addresses')
    .argument('<address...>', 'addresses; - reads them from stdin, one a line')
    .option('--json', 'print JSON: one object, or an array when several addresses were given')
    .addOption(
      new Option('--ndjson', 'print one JSON object a line, as results ripen').conflicts('json'),
    )
    .option('--include <what>', 'more in the JSON: flags,evidence')
    .option('--explain', 'show the conversation with the mail server')
    .option('--no-smtp', 'everything but the mail server')
    .option('--sandbox', 'simulated results, by the prefix of the address')
    .addHelpText('after', VERIFY_EXAMPLES)
    .action(async (addresses: string[], flags) => {
      const { verifyCommand } = await import('./verify.ts')
      process.exitCode = await verifyCommand(addresses, flags)
    })
  const bulk = ev
    .command('bulk')
    .description('verify a list: CSV in, CSV out')
    .argument('<file>', 'the list; - reads stdin')
    .requiredOption('-o, --output <file>', 'where the results go; - writes to stdout')
    .option('--column <name|n>', 'the column of the addresses, by name or number')
    .option('--no-header', 'the first row is no header')
    .option('--raw', 'do not guard cells against being run as formulas by spreadsheets')
    .option('--no-wait', 'do not wait for greylisting and pauses')
    .option('--fresh', 'forget an earlier unfinished run of this list')
    .option('--sandbox', 'simulated results, by the prefix of the address')
    .option('--quiet', 'no progress and no summary')
    .option('--json', 'print the summary as JSON on stdout')
    .addHelpText('after', BULK_EXAMPLES)
    .action(async (file: string, flags) => {
      const { bulkCommand } = await import('./bulk.ts')
      process.exitCode = await bulkCommand(file, flags)
    })
  for (const command of [verify, bulk]) addSettings(command.exitOverride())
  return ev
}

const VERIFY_EXAMPLES = `
Examples:
  ev verify ann@example.com
  ev verify --explain ann@example.com
  ev verify --json --include flags,evidence ann@example.com bob@example.org

Exit codes: 0 all deliverable, 1 at least one not, 2 none of those but at least one unknown.`

const BULK_EXAMPLES = `
Examples:
  ev bulk list.csv -o out.csv
  ev bulk customers.csv --column "Work email" -o out.csv
  cat list.txt | ev bulk - -o -

Stop it with Ctrl-C; the same command again goes on where it stopped.`

const debug = process.argv.includes('--debug')
watchOutput(debug)
try {
  await program().parseAsync()
} catch (error) {
  // Commander has said its piece; help and version are no errors.
  if (error instanceof CommanderError)
    process.exitCode = error.exitCode === 0 ? 0 : EXIT_CODES.usage
  else process.exitCode = reportError(error, debug)
}
