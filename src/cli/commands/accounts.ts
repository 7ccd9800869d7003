import type { Command } from 'commander'
import type { CliContext, SetExitCode } from '../context.ts'
import { addSettings, DATA_SETTINGS } from '../settings.ts'

const AUDIT_EXAMPLES = `
Examples:
  ev audit
  ev audit --action key.created --since 7d
  ev audit --account shop --limit 1000 --json

The audit log records changes of keys, webhooks and accounts, sign-ins to the dashboard, and downloads of results.
An entry has the actor, the IP address and the target. Entries are kept for a year.`

export function defineAudit(audit: Command, context: CliContext, setExitCode: SetExitCode): void {
  audit
    .option('--account <account>', 'only entries of this account, by ID or name')
    .option('--action <name>', 'only entries with this action, such as key.created')
    .option('--since <time>', 'only entries since this time: 7d, 12h, or a date such as 2030-01-31')
    .option('--limit <n>', 'number of entries, up to 10000 (default: 50)')
    .option('--json', 'print JSON: an array of objects')
    .addHelpText('after', AUDIT_EXAMPLES)
    .action(async flags => {
      const { auditCommand } = await import('../audit.ts')
      setExitCode(await auditCommand(context, flags))
    })
  addSettings(audit, context, DATA_SETTINGS)
}
