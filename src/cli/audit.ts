import {
  AUDIT_ACTIONS,
  type AuditAction,
  type AuditTable,
  getAuditPage,
  isAuditAction,
  presentEntry,
} from '../audit.ts'
import { EvError } from '../platform/error.ts'
import { sanitizeText } from '../platform/text.ts'
import type { CliContext } from './context.ts'
import { parseInteger, parseSince } from './flag-values.ts'
import { withAccounts } from './local/with-accounts.ts'
import { printJson, printMessage, printText, timeText } from './print.ts'
import { selectAccount } from './select-account.ts'
import { readConfig } from './settings.ts'
import { table } from './table.ts'
import { widthOf } from './width.ts'

export type AuditFlags = {
  readonly account?: string
  readonly action?: string
  readonly since?: string
  readonly limit?: string
  readonly json?: boolean
  readonly [setting: string]: unknown
}

const ROWS = 50
/** A page of this size is read into memory. */
const ROWS_MAX = 10_000

/** Runs `ev audit` and returns the exit code. */
export function auditCommand(context: CliContext, flags: AuditFlags): Promise<number> {
  const max = parseInteger('--limit', flags.limit ?? `${ROWS}`, [1, ROWS_MAX])
  const action = parseAction(flags.action)
  const now = context.clock.now()
  const since = flags.since === undefined ? undefined : parseSince(flags.since, now)
  return withAccounts(context, readConfig(context, flags), async (database, accounts) => {
    const account = flags.account === undefined ? null : selectAccount(accounts, flags.account)
    const query = { accountId: account?.id ?? null, action, since, before: null }
    const found = await getAuditPage(database, { ...query, max: max + 1 })
    const rows = found.slice(0, max)
    if (flags.json) {
      printJson(
        context,
        rows.map(row => ({ account_id: row.account_id, ...presentEntry(row) })),
      )
    } else if (rows.length === 0) {
      printText(context, 'No entries in the audit log.')
    } else {
      context.stdout.write(table(COLUMNS, rows.map(rowOf), widthOf(context, context.stdout)))
      if (found.length > max) {
        printMessage(context, 'note', 'Older entries are not shown. To show more, set --limit.')
      }
    }
    return 0
  })
}

function parseAction(value: string | undefined): AuditAction | undefined {
  if (value === undefined || isAuditAction(value)) return value
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

const rowOf = (row: AuditTable): string[] => [
  timeText(row.created_at),
  row.action,
  row.target_id ?? '–',
  row.target_name ?? '–',
  actorText(row),
  row.ip ?? '–',
  presentEntry(row).changed?.join(', ') ?? '–',
]

const actorText = ({ actor, key_id, session_id }: AuditTable) => {
  if (actor === 'command_line') return 'command line'
  return (actor === 'session' ? session_id : key_id) ?? actor
}
