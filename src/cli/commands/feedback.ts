import type { Command } from 'commander'
import { YES } from '../confirm.ts'
import type { CliContext, SetExitCode } from '../context.ts'
import { addSettings, DATA_SETTINGS } from '../settings.ts'
import { noSuchCommand } from './help.ts'

const EXAMPLES = `
Examples:
  ev feedback import bounces.csv
  ev feedback import ~/Maildir
  ev feedback report
  ev feedback sources create postmark`

export function defineFeedback(
  feedback: Command,
  context: CliContext,
  setExitCode: SetExitCode,
): void {
  feedback.addHelpText('after', EXAMPLES)
  addImport(feedback, context, setExitCode)
  addReport(feedback, context, setExitCode)
  addSources(feedback, context, setExitCode)
}

function addImport(feedback: Command, context: CliContext, setExitCode: SetExitCode): void {
  const command = feedback
    .command('import')
    .description('import bounces, deliveries and complaints')
    .argument('<path>', 'file, Maildir or folder of messages; - for stdin')
    .option('--kind <kind>', 'kind of rows that have none: delivered, bounced or complained')
    .option('--account <account>', 'account, by ID or name; optional if there is only one')
    .option('--json', 'print JSON: one object')
    .addHelpText(
      'after',
      `
Examples:
  ev feedback import events.csv
  ev feedback import bounces.csv --kind bounced
  ev feedback import returned.mbox
  ev feedback import ~/Maildir

The format is detected: CSV, NDJSON, an mbox file, or one message. In messages, ev reads delivery status notifications
(RFC 3464, RFC 6533) and abuse reports (RFC 5965). Feedback that was imported before is not counted again.`,
    )
    .action(async (path: string, flags) => {
      const { importCommand } = await import('../feedback.ts')
      setExitCode(await importCommand(context, path, flags))
    })
  addSettings(command, context, DATA_SETTINGS)
}

function addReport(feedback: Command, context: CliContext, setExitCode: SetExitCode): void {
  const command = feedback
    .command('report')
    .description('compare confidence with reported outcomes')
    .option('--account <account>', 'account, by ID or name; optional if there is only one')
    .option('--json', 'print JSON: one object')
    .addHelpText(
      'after',
      `
Examples:
  ev feedback report
  ev feedback report --json

PREDICTED is the mean confidence, and OBSERVED is the share of verdicts that were correct. BRIER is the mean squared
error, and ECE is the expected calibration error; for both, 0 is best.

The report ends with the replies that feedback of the last 180 days contradicts: a mail server accepted an address whose
mail then bounced, or rejected an address whose mail arrived. AT LEAST is the lower end of the 95% interval of the
contradicted share.`,
    )
    .action(async flags => {
      const { reportCommand } = await import('../feedback.ts')
      setExitCode(await reportCommand(context, flags))
    })
  addSettings(command, context, DATA_SETTINGS)
}

/** Commands for the URLs to which email providers send events. */
function addSources(feedback: Command, context: CliContext, setExitCode: SetExitCode): void {
  const sources = feedback
    .command('sources')
    .description('manage the URLs to which email providers send bounces and deliveries')
    .addHelpText('after', SOURCES_EXAMPLES)
  const list = sources
    .command('list', { isDefault: true })
    .description('list feedback sources, oldest first')
    .allowExcessArguments()
    .option('--account <account>', 'only sources of this account, by ID or name')
    .option('--json', 'print JSON: an array of objects')
    .addHelpText('after', '\nExamples:\n  ev feedback sources list\n  ev feedback sources --json')
    .action(async (flags, { args: [unknown] }: Command) => {
      if (unknown !== undefined) throw noSuchCommand(unknown, sources)
      const { listSourcesCommand } = await import('../feedback-sources.ts')
      setExitCode(await listSourcesCommand(context, flags))
    })
  addSettings(list, context, ['baseUrl', ...DATA_SETTINGS])
  const create = sources
    .command('create')
    .description('create a feedback source and show its URL')
    .argument('<provider>', 'provider: ses, sendgrid, mailgun, postmark or sparkpost')
    .option('--key <key>', 'key that authenticates the provider; - reads it from stdin')
    .option('--account <account>', 'account, by ID or name; optional if there is only one')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', CREATE_EXAMPLES)
    .action(async (provider: string, flags) => {
      const { createSourceCommand } = await import('../feedback-sources.ts')
      setExitCode(await createSourceCommand(context, provider, flags))
    })
  addSettings(create, context, ['baseUrl', 'secret', 'secretFile', ...DATA_SETTINGS])
  const remove = sources
    .command('delete')
    .description('delete a feedback source; its feedback is kept')
    .argument('<source>', 'ID of the source')
    .option(...YES)
    .addHelpText('after', '\nExamples:\n  ev feedback sources delete fbs_4kq2')
    .action(async (id: string, flags) => {
      const { deleteSourceCommand } = await import('../feedback-sources.ts')
      setExitCode(await deleteSourceCommand(context, id, flags))
    })
  addSettings(remove, context, DATA_SETTINGS)
}

const SOURCES_EXAMPLES = `
Examples:
  ev feedback sources
  ev feedback sources create postmark
  ev feedback sources delete fbs_4kq2`

const CREATE_EXAMPLES = `
Examples:
  ev feedback sources create ses --key arn:aws:sns:us-east-1:123456789012:ses-feedback
  ev feedback sources create mailgun --key - < signing-key.txt
  ev feedback sources create postmark

The key is the ARN of the SNS topic (ses), the verification key of the Event Webhook (sendgrid), or the HTTP webhook
signing key (mailgun). For postmark and sparkpost, ev creates a password.`
