import { type Command, Option } from 'commander'
import type { CliContext, EndWith } from '../context.ts'
import { addSettings } from '../settings.ts'

const EXAMPLES = `
Examples:
  ev bulk list.csv -o out.csv
  ev bulk customers.csv --column "Work email" -o out.csv
  ev bulk list.csv -o good.csv --only deliverable
  ev bulk list.csv -o out.csv --split        (out.deliverable.csv, out.risky.csv, …)
  cat list.txt | ev bulk - -o - --format ndjson

Stop it with Ctrl-C; the same command again goes on where it stopped.`

export function addBulk(ev: Command, context: CliContext, end: EndWith): void {
  const bulk = ev
    .command('bulk')
    .description('verify a list: CSV in, CSV or JSON out')
    .argument('<file>', 'the list; - reads stdin')
    .requiredOption('-o, --output <file>', 'where the results go; - writes to stdout')
    .option('--column <name|n>', 'the column of the addresses, by name or number')
    .option(
      '--encoding <name>',
      'the encoding of the list, such as windows-1252; found if left out',
    )
    .option('--no-header', 'the first row is no header')
    .addOption(
      new Option('--format <format>', 'how the rows are written')
        .choices(['csv', 'ndjson', 'json'])
        .default('csv'),
    )
    .option('--only <classes>', 'only rows of these: deliverable,risky,undeliverable,unknown')
    .option('--split', 'a file for each class: out.deliverable.csv, out.risky.csv, …')
    .option('--raw', 'do not guard cells against being run as formulas by spreadsheets')
    .option('--no-wait', 'do not wait for greylisting, pauses and the end of refusals')
    .option('--fresh', 'forget an earlier unfinished run of this list')
    .option('--sandbox', 'simulated results, by the prefix of the address')
    .option('--quiet', 'no progress and no summary')
    .option('--json', 'print the summary as JSON on stdout')
    .addHelpText('after', EXAMPLES)
    .action(async (file: string, flags) => {
      const { bulkCommand } = await import('../bulk/bulk.ts')
      end(await bulkCommand(context, file, flags))
    })
  addSettings(bulk, context)
}
