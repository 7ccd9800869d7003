import type { Command } from 'commander'
import type { CliContext, SetExitCode } from '../context.ts'
import { addSettings, DATA_SETTINGS } from '../settings.ts'

const EXAMPLES = `
Examples:
  ev feedback import bounces.csv
  ev feedback import ~/Maildir
  ev feedback report`

export function addFeedback(ev: Command, context: CliContext, setExitCode: SetExitCode): void {
  const feedback = ev
    .command('feedback')
    .description('import bounces and deliveries; compare them with verdicts')
    .addHelpText('after', EXAMPLES)
  addImport(feedback, context, setExitCode)
  addReport(feedback, context, setExitCode)
}

function addImport(feedback: Command, context: CliContext, setExitCode: SetExitCode): void {
  const command = feedback
    .command('import')
    .description('import bounces, deliveries and complaints')
    .argument('<path>', 'file, Maildir, folder of messages, or - for stdin')
    .option('--kind <kind>', 'for rows without one: delivered, bounced or complained')
    .option('--account <account>', 'ID or name; optional if there is only one account')
    .option('--json', 'print JSON: one object')
    .addHelpText(
      'after',
      `
Examples:
  ev feedback import events.csv
  ev feedback import bounces.csv --kind bounced
  ev feedback import returned.mbox
  ev feedback import ~/Maildir

The format is detected: CSV, NDJSON, an mbox file, or one message. Of messages, delivery status notifications
(RFC 3464) and abuse reports (RFC 5965) are read. A piece of feedback that was imported before is not counted again.`,
    )
    .action(async (path: string, flags) => {
      const { importCommand } = await import('../feedback-import.ts')
      setExitCode(await importCommand(context, path, flags))
    })
  addSettings(command, context, DATA_SETTINGS)
}

function addReport(feedback: Command, context: CliContext, setExitCode: SetExitCode): void {
  const command = feedback
    .command('report')
    .description('compare confidence with the reported outcomes')
    .option('--account <account>', 'ID or name; optional if there is only one account')
    .option('--json', 'print JSON: one object')
    .addHelpText(
      'after',
      `
Examples:
  ev feedback report
  ev feedback report --json

PREDICTED is the mean confidence, OBSERVED the share of verdicts that were correct. BRIER is the mean squared error
and ECE the expected calibration error: both are 0 at best.`,
    )
    .action(async flags => {
      const { reportCommand } = await import('../feedback-report.ts')
      setExitCode(await reportCommand(context, flags))
    })
  addSettings(command, context, DATA_SETTINGS)
}
