import { type Command, Option } from 'commander'
import type { CliContext, SetExitCode } from '../context.ts'
import { MachineOption, worksOnService } from '../ev-command.ts'
import {
  deduplicateOption,
  metadataOption,
  OUTPUT_FORMATS,
  parseRate,
  vocabularyOption,
} from '../flag-values.ts'
import { addSettings } from '../settings.ts'

const EXAMPLES = `
Examples:
  ev bulk list.csv
  ev bulk list.csv -o good.csv --only deliverable
  ev bulk list.csv -o out.csv --split
  ev bulk list.csv -o send.csv --action send,send_with_care --fail-above 3%
  ev bulk customers.csv --column "Work email" -o out.csv
  ev bulk customers.xlsx --sheet Customers
  ev bulk list.csv.gz -o out.xlsx
  ev bulk https://files.example.com/list.csv
  ev bulk s3://bucket/list.csv
  cat list.txt | ev bulk - -o - --format ndjson

Without -o, the results of list.csv are written to list.verified.csv, and those of customers.xlsx to
customers.verified.xlsx. For s3:// URLs, set the variables of the AWS CLI.

Press Ctrl-C to stop, and again to stop without waiting for replies. To resume, run the same command again.

With --url, ev uploads the list to the service, waits for it and downloads the results. Ctrl-C stops only the waiting.
The same command continues with the same job for 24 hours; --fresh creates another one. The service downloads a list at
an https:// URL; if the job of an earlier run is completed, it downloads the list again.

Exit codes: 0 the output is complete; 1 it is complete, but its mail is expected to bounce above --fail-above.`

export function defineBulk(bulk: Command, context: CliContext, setExitCode: SetExitCode): void {
  bulk
    .argument('<file>', 'list to verify: a file, an https:// or s3:// URL, or - for stdin')
    .option(
      '-o, --output <file>',
      'output file, such as out.csv, out.csv.gz or out.xlsx; - for stdout (default: list.verified.csv)',
    )
    .option('--column <name|n>', 'column with the addresses, by name or number')
    .option('--sheet <name>', 'sheet of the workbook (default: the first visible one)')
    .option('--encoding <name>', 'encoding of the list, such as windows-1252 (default: detected)')
    .option('--no-header', 'treat the first row as data, not as a header')
    .option(
      '--all-addresses',
      'verify every address in a row, each as a separate row (default for lists without a header)',
    )
    .option('--no-all-addresses', 'verify one address per row, from the address column')
    .addOption(
      new Option(
        '--format <format>',
        'output format (default: from the name of the output file, otherwise csv)',
      ).choices(OUTPUT_FORMATS),
    )
    .option(
      '--only <class,…>',
      'write only these classes: deliverable, risky, undeliverable, unknown',
    )
    .option(
      '--action <action,…>',
      'write only rows with these actions: send, send_with_care, retry_later, suppress',
    )
    .addOption(vocabularyOption())
    .option(
      '--keep-external',
      'keep recent results of other services that the list has, and do not verify their rows',
    )
    .option(
      '--external-date <date>',
      'when the list with these results was exported, such as 2026-03-01, if it has no dates',
    )
    .option('--split', 'write one file per class: out.deliverable.csv, out.risky.csv, …')
    .addOption(deduplicateOption('write'))
    .option('--raw', 'do not escape cells that spreadsheets would run as formulas')
    .option(
      '--fail-above <rate>',
      'exit with 1 if more of the mail to the written rows is expected to bounce, such as 3%',
      (value: string) => parseRate('--fail-above', value),
    )
    .addOption(
      new MachineOption('--no-wait', 'finish without waiting for greylisting, pauses and blocks'),
    )
    .option('--force', 'replace an output file that ev did not write')
    .option('--fresh', 'discard an unfinished run of this list and start over')
    .addOption(metadataOption('attach a key and a value to the job'))
    .option('--sandbox', 'simulate results; the prefix of an address selects its result')
    .option('--json', 'print the summary as JSON on stdout')
    .addHelpText('after', EXAMPLES)
    .action(async (file: string, flags) => {
      if (flags.service === undefined) {
        const { bulkOnMachine } = await import('./bulk-on-machine.ts')
        setExitCode(await bulkOnMachine(context, file, flags))
      } else {
        const { bulkOnService } = await import('./bulk-on-service.ts')
        setExitCode(await bulkOnService(context, file, flags))
      }
    })
  addSettings(bulk, context)
  worksOnService(bulk)
}
