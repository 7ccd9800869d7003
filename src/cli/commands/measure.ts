import type { Command } from 'commander'
import type { CliContext, SetExitCode } from '../context.ts'
import { worksWithoutData } from '../ev-command.ts'
import { collect } from '../flag-values.ts'
import { addSettings } from '../settings.ts'

const EXAMPLES = `
Examples:
  ev measure truth.csv
  ev measure truth.csv --tool 'other=./other-tool --json' -o accuracy.md
  ev measure truth.csv --results zerobounce=all_results.csv --no-ev

The list has a column with addresses and a column "truth": exists or missing. A tool reads addresses
from stdin, one per line, and writes CSV or JSON lines with the columns email and class, or in the
words of another service.`

export function defineMeasure(
  measure: Command,
  context: CliContext,
  setExitCode: SetExitCode,
): void {
  worksWithoutData(measure)
  measure
    .argument('<file>', 'list of addresses with their truth')
    .option(
      '--tool <name=command>',
      'also measure a command that reads addresses from stdin; repeat it for several',
      collect,
    )
    .option(
      '--results <name=file>',
      'also measure results that a tool or a service has written; repeat it for several',
      collect,
    )
    .option('--no-wait', 'do not retry greylisted and deferred addresses, which can take hours')
    .option('--no-ev', 'do not verify the addresses with ev')
    .option('-o, --output <file>', 'write a page to publish: .md or .html')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', EXAMPLES)
    .action(async (file: string, flags) => {
      const { measureCommand } = await import('../measure/measure.ts')
      setExitCode(await measureCommand(context, file, flags))
    })
  addSettings(measure, context)
}
