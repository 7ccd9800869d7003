import type { Command } from 'commander'
import { formatValue } from '../config/fields.ts'
import type { Config } from '../config/settings.ts'
import { databaseUrl as checkUrl, Expected, withoutPassword } from '../config/values.ts'
import { fileOf, isPostgresUrl } from '../db/database-url.ts'
import { needsSecret } from '../db/service-secret.ts'
import type { Copied, CopiedTable, CopyProgress } from '../maintenance/migrate.ts'
import { SECOND } from '../platform/clock.ts'
import { EvError } from '../platform/error.ts'
import { formatNumber, pluralize } from '../platform/format.ts'
import { type CliContext, inCwd } from './context.ts'
import { listsUrl } from './database-location.ts'
import { openLiveOutput } from './live-output.ts'
import { printJson } from './print.ts'
import { addSettings, readConfig } from './settings.ts'
import { table } from './table.ts'
import { wrapText } from './width.ts'

const EXAMPLES = `
Examples:
  EV_DATABASE=postgres://ev:…@db.example.com/ev ev migrate
  EV_DATABASE=postgres://ev:…@db.example.com/ev ev migrate --from /var/lib/ev
  ev migrate --from /var/lib/ev --to postgres://ev@db.example.com/ev --json

Stop "ev serve" first. The PostgreSQL database must be empty. The copy is atomic, and the data directory is not
changed. Set EV_SECRET to the secret of the data directory for every process that uses the copy.`

export function defineMigrate(migrate: Command, context: CliContext): void {
  migrate
    .option(
      '--from <dir>',
      'data directory to copy (default: EV_DATA_DIR, otherwise ~/.local/share/ev)',
    )
    .option('--to <url>', 'target database: postgres://… (default: EV_DATABASE)')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', EXAMPLES)
    .action(flags => migrateCommand(context, flags))
  addSettings(migrate, context, ['secret', 'secretFile'])
}

type MigrateFlags = {
  readonly from?: string
  readonly to?: string
  readonly json?: boolean
  readonly [setting: string]: unknown
}

async function migrateCommand(context: CliContext, flags: MigrateFlags): Promise<void> {
  const set = readConfig(context, flags)
  const to = flags.to ?? set.database
  if (!isPostgresUrl(checkedUrl(to))) throw noTarget(to)
  const dataDir = flags.from === undefined ? set.dataDir : inCwd(context, flags.from)
  const config = { ...set, dataDir }
  const fromUrl = listsUrl(flags.from === undefined ? set : { dataDir, database: '' })
  const { clock, random } = context
  const { migrate } = await import('../maintenance/migrate.ts')
  const progress = await createCopyProgress(context)
  const input = { from: fromUrl, to, place: config, onProgress: progress.show }
  const copied = await migrate({ clock, random }, input).finally(progress.end)
  const report = { dataDir, file: fileOf(fromUrl), to, secret: secretLocation(config) }
  if (flags.json) printJson(context, migratedObject(copied, report))
  else context.stdout.write(migratedText(copied, report))
}

/** Returns the location of the secret that decrypts stored values; null if there is no secret. */
function secretLocation(config: Config): MigrationReport['secret'] {
  if (config.secret !== null) return 'EV_SECRET'
  return needsSecret(config) ? null : (config.secretFile ?? `${config.dataDir}/secret`)
}

function checkedUrl(url: string): string {
  try {
    return url === '' ? url : checkUrl(url)
  } catch (error) {
    if (!(error instanceof Expected)) throw error
    throw new EvError('usage', `--to is ${formatValue(url, true)}; it takes ${error.message}.`)
  }
}

const noTarget = (url: string) =>
  new EvError(
    'usage',
    `${url === '' ? 'No target database is set' : 'The target must be a PostgreSQL database'}. Set an empty one with --to postgres://USER@HOST/NAME, or with EV_DATABASE in the environment, which hides its password from other users.`,
  )

const DRAW_EVERY_MS = 100
/** Interval of plain lines when stderr is not a terminal, long enough to keep logs short. */
const PLAIN_EVERY_MS = 5 * SECOND

/** Prints the progress of a copy to stderr: one live line in a terminal, otherwise plain lines. */
async function createCopyProgress(context: Pick<CliContext, 'stderr' | 'clock' | 'env'>) {
  const { clock } = context
  const live = await openLiveOutput(context)
  let drawnAt = clock.monotonicNow()
  return {
    show({ table, copied, all }: CopyProgress): void {
      const now = clock.monotonicNow()
      if (now - drawnAt < (live.width === null ? PLAIN_EVERY_MS : DRAW_EVERY_MS)) return
      drawnAt = now
      const line = `Copying ${NAMES[table]}: ${formatNumber(copied)} of ${formatNumber(all)}`
      if (live.width === null) live.print(`${line}\n`)
      else live.show(width => wrapText(line, width - 1))
    },
    end: () => live.end(),
  }
}

type MigrationReport = {
  readonly dataDir: string
  readonly file: string
  /** URL of the PostgreSQL database. */
  readonly to: string
  /** Location of the secret that decrypts stored values: a path or `EV_SECRET`; null if none. */
  readonly secret: string | null
}

const NAMES: Readonly<Record<CopiedTable, string>> = {
  account: 'accounts',
  api_key: 'keys',
  key_secret: 'hashes of keys',
  person: 'people',
  recovery_code: 'recovery codes',
  session: 'dashboard sessions',
  credit: 'days of credits',
  usage: 'days of usage',
  replay: 'responses to Idempotency-Keys',
  webhook: 'webhooks',
  event: 'events',
  delivery: 'deliveries',
  attempt: 'delivery attempts',
  notice: 'alerts',
  verification: 'verifications in the history',
  audit: 'entries of the audit log',
  answer: 'cached answers',
  schedule: 'schedules',
  job: 'lists',
  item: 'rows of lists',
  feedback: 'pieces of feedback',
  feedback_account: 'accounts with feedback',
  feedback_address: 'addresses with feedback or a verdict',
  feedback_count: 'counts of verdicts',
  feedback_domain: 'counts of domains',
  feedback_day: 'counts of feedback',
  feedback_source: 'feedback sources',
  feedback_reply: 'counts of replies',
}

const TABLES = Object.keys(NAMES) as CopiedTable[]

/** Formats what was copied and what to do next. */
function migratedText(copied: Copied, { dataDir, file, to, secret }: MigrationReport): string {
  const rows = TABLES.filter(name => copied.rows[name] > 0).map(name => [
    `  ${NAMES[name]}`,
    formatNumber(copied.rows[name]),
  ])
  const head = `Copied ${file} to ${withoutPassword(to)} and verified the row counts.\n`
  const shown = rows.length === 0 ? '  The database is empty.\n' : table(COLUMNS, rows)
  const notes = [...notCopied(copied, dataDir), ...nextSteps(dataDir, secret)]
  return `${head}${shown}\n${notes.map(note => `${note}\n`).join('')}`
}

const COLUMNS = [{ title: '  WHAT' }, { title: 'ROWS', align: 'right' }] as const

function notCopied({ loadingJobs, ownJobs, probingItems }: Copied, dataDir: string): string[] {
  return [
    ...(probingItems === 0
      ? []
      : [
          `Rows in flight when ev stopped, which will be re-verified: ${formatNumber(probingItems)}.`,
        ]),
    ...(loadingJobs === 0
      ? []
      : [`Incomplete uploads, not copied: ${pluralize(loadingJobs, 'list')}.`]),
    ...(ownJobs === 0
      ? []
      : [
          `Lists of "ev bulk", not copied: ${formatNumber(ownJobs)}. "ev bulk" and "ev jobs" still find them in the data directory.`,
        ]),
    `${dataDir} is unchanged. Dashboard uploads that were not started and rate limit counters of the last hour`,
    'are not copied.',
  ]
}

const nextSteps = (dataDir: string, secret: string | null): string[] => [
  secret === null
    ? 'There is no secret yet. The first "ev serve" creates one; set it as EV_SECRET for all other processes.'
    : `Set EV_SECRET or EV_SECRET_FILE to the secret in ${secret} for every process that uses the copy. It decrypts the secrets of webhooks.`,
  `Then start "ev serve" with EV_DATABASE set to the new database. If its data directory is ${dataDir}, it already has the secret.`,
]

const migratedObject = (copied: Copied, { dataDir, file, to, secret }: MigrationReport) => ({
  from: dataDir,
  file,
  to: withoutPassword(to),
  rows: copied.rows,
  loading_lists: copied.loadingJobs,
  lists_of_bulk: copied.ownJobs,
  rows_in_flight: copied.probingItems,
  secret,
})
