import type { Command } from 'commander'
import { EvError } from '../platform/error.ts'
import { sanitizeText } from '../platform/text.ts'
import type { CliContext } from './context.ts'
import { type DataFlags, openBackend, printTable, worksOnData } from './data-command.ts'
import { parseInteger, parseSince } from './flag-values.ts'
import { printJson, printMessage, timeText } from './print.ts'
import { getRemoteAudit, type ListAudit, type OwnedEntry } from './remote/audit.ts'

const EXAMPLES = `
Examples:
  ev audit
  ev audit --action key.created --since 7d
  ev audit --account shop --limit 1000 --json

The audit log records changes of keys, webhooks and accounts, sign-ins to the dashboard, downloads of results, and
requests that were refused for lack of rights. An entry has the actor, the IP address and the target. Entries are kept for a year.`

export function defineAudit(audit: Command, context: CliContext): void {
  audit
    .option('--account <account>', 'only entries of this account, by ID or name')
    .option('--action <name>', 'only entries with this action, such as key.created')
    .option('--since <time>', 'only entries since this time: 7d, 12h, or a date such as 2030-01-31')
    .option('--limit <n>', 'number of entries, up to 10000 (default: 50)')
    .option('--json', 'print JSON: an array of objects')
    .addHelpText('after', EXAMPLES)
    .action(flags => auditCommand(context, flags))
  worksOnData(audit, context)
}

type AuditFlags = DataFlags & {
  readonly action?: string
  readonly since?: string
  readonly limit?: string
}

const ROWS = 50
/** A page of this size is read into memory. */
const ROWS_MAX = 10_000

async function auditCommand(context: CliContext, flags: AuditFlags): Promise<void> {
  const max = parseInteger('--limit', flags.limit ?? `${ROWS}`, [1, ROWS_MAX])
  const action = await parseAction(flags.action)
  const now = context.clock.now()
  const since = flags.since === undefined ? undefined : parseSince(flags.since, now)
  const list = await openAudit(context, flags)
  const found = await list({ account: flags.account, action, since, max: max + 1 })
  const entries = found.slice(0, max)
  if (flags.json) {
    printJson(
      context,
      entries.map(({ account_id, ...entry }) => ({ account_id, ...entry })),
    )
    return
  }
  printTable(context, entries, { columns: COLUMNS, rowOf, none: 'No entries in the audit log.' })
  if (found.length > max) {
    printMessage(context, 'note', 'Older entries are not shown. To show more, set --limit.')
  }
}

const openAudit = (context: CliContext, flags: DataFlags): Promise<ListAudit> =>
  openBackend(context, flags, {
    remote: getRemoteAudit,
    loadLocal: async () => (await import('./local/audit.ts')).getLocalAudit,
  })

async function parseAction(value: string | undefined): Promise<OwnedEntry['action'] | undefined> {
  if (value === undefined) return undefined
  const { AUDIT_ACTIONS, isAuditAction } = await import('../audit.ts')
  if (isAuditAction(value)) return value
  throw new EvError(
    'usage',
    `Unknown action "${sanitizeText(value)}". Actions: ${AUDIT_ACTIONS.join(', ')}.`,
  )
}

const COLUMNS = [
  { title: 'TIME' },
  { title: 'ACTION' },
  { title: 'TARGET' },
  { title: 'NAME', dropRank: 3 },
  { title: 'BY', dropRank: 4 },
  { title: 'IP', dropRank: 2 },
  { title: 'CHANGED', dropRank: 1 },
]

const rowOf = (entry: OwnedEntry): string[] => [
  timeText(Date.parse(entry.created_at)),
  entry.action,
  entry.target_id ?? '–',
  sanitizeText(entry.target_name ?? '–'),
  actorText(entry),
  entry.ip ?? '–',
  entry.changed?.join(', ') ?? '–',
]

const actorText = ({ actor, key_id, session_id }: OwnedEntry) => {
  if (actor === 'command_line') return 'command line'
  return (actor === 'session' ? session_id : key_id) ?? actor
}
