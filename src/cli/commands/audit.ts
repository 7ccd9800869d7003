import type { Command } from 'commander'
import type { CliContext, SetExitCode } from '../context.ts'
import { addSettings, DATA_SETTINGS } from '../settings.ts'

const EXAMPLES = `
Examples:
  ev audit
  ev audit --action key.created --since 7d
  ev audit --account shop --limit 1000 --json

The audit log has the changes of keys, webhooks and accounts, dashboard sign-ins, and downloads of results. An entry
says who did it, from which address, and to what. Entries are kept for a year.`

export function addAudit(ev: Command, context: CliContext, setExitCode: SetExitCode): void {
  const audit = ev
    .command('audit')
    .description('show the audit log')
    .option('--account <id or name>', 'only entries of this account')
    .option('--action <name>', 'only entries with this action, such as key.created')
    .option('--since <time>', 'only entries since then: a duration such as 7d, or a date')
    .option('--limit <n>', 'number of entries, up to 10000 (default: 50)')
    .option('--json', 'print JSON: an array of objects')
    .addHelpText('after', EXAMPLES)
    .action(async flags => {
      const { auditCommand } = await import('../audit.ts')
      setExitCode(await auditCommand(context, flags))
    })
  addSettings(audit, context, DATA_SETTINGS)
}
