import ora from 'ora'
import { shown } from '../config/fields.ts'
import { withoutPassword } from '../config/password.ts'
import type { Config } from '../config/settings.ts'
import { databaseUrl as checkUrl, Expected } from '../config/values.ts'
import { isPostgresUrl } from '../db/database.ts'
import { needsSecret } from '../db/service-secret.ts'
import {
  COPIED,
  type Copied,
  type CopiedTable,
  type CopyProgress,
} from '../maintenance/copy-data.ts'
import { migrate } from '../maintenance/migrate.ts'
import { SECOND } from '../platform/clock.ts'
import { EvError } from '../platform/error.ts'
import { pluralize } from '../platform/format.ts'
import { type CliContext, inCwd } from './context.ts'
import { fileOf, listsUrl } from './database.ts'
import { readConfig } from './settings.ts'
import { table } from './table.ts'

export type MigrateFlags = {
  readonly from?: string
  readonly to?: string
  readonly json?: boolean
  readonly [setting: string]: unknown
}

/** Runs `ev migrate` and returns the exit code. */
export async function migrateCommand(context: CliContext, flags: MigrateFlags): Promise<number> {
  const set = readConfig(context, flags)
  const to = flags.to ?? set.database
  if (!isPostgresUrl(checkedUrl(to))) throw noTarget(to)
  const dataDir = flags.from === undefined ? set.dataDir : inCwd(context, flags.from)
  const config = { ...set, dataDir }
  const fromUrl = listsUrl(flags.from === undefined ? set : { dataDir, database: '' })
  const { clock, random } = context
  const progress = copyProgress(context)
  const input = { from: fromUrl, to, place: config, onProgress: progress.show }
  const copied = await migrate({ clock, random }, input).finally(progress.end)
  const place: Place = { dataDir, file: fileOf(fromUrl), to, secret: secretOf(config) }
  context.stdout.write(
    flags.json
      ? `${JSON.stringify(migratedObject(copied, place), null, 2)}\n`
      : migratedText(copied, place),
  )
  return 0
}

/** Where the secret is that opens what was sealed; null: there is none, so nothing is sealed. */
function secretOf(config: Config): Place['secret'] {
  if (config.secret !== null) return 'EV_SECRET'
  return needsSecret(config) ? null : (config.secretFile ?? `${config.dataDir}/secret`)
}

function checkedUrl(given: string): string {
  try {
    return given === '' ? given : checkUrl(given)
  } catch (error) {
    if (!(error instanceof Expected)) throw error
    throw new EvError('usage', `--to is ${shown(given, true)}; it takes ${error.message}.`)
  }
}

const noTarget = (given: string) =>
  new EvError(
    'usage',
    `${given === '' ? 'There is no database to copy to' : 'What is copied to is a PostgreSQL database'}: name one that is empty with --to postgres://USER@HOST/NAME, or as EV_DATABASE in the environment, where its password is seen by nobody.`,
  )

const DRAW_EVERY_MS = 100
/** Where nobody watches live, a line now and then keeps logs short. */
const PLAIN_EVERY_MS = 5 * SECOND

/** How far a copy is, on stderr: one live line in a terminal, else plain lines. */
function copyProgress({ stderr, clock }: Pick<CliContext, 'stderr' | 'clock'>) {
  const terminal = stderr.isTTY === true && (stderr.columns ?? 0) > 0
  const spinner = terminal
    ? ora({ stream: stderr, text: 'copying', discardStdin: false }).start()
    : null
  let drawnAt = clock.monotonicNow()
  return {
    show({ table, copied, all }: CopyProgress): void {
      const now = clock.monotonicNow()
      if (now - drawnAt < (terminal ? DRAW_EVERY_MS : PLAIN_EVERY_MS)) return
      drawnAt = now
      const line = `copying ${named(table)}: ${copied} of ${all}`
      if (spinner !== null) spinner.text = line
      else stderr.write(`${line}\n`)
    },
    end(): void {
      spinner?.stop()
    },
  }
}

/** From where to where. */
type Place = {
  readonly dataDir: string
  readonly file: string
  /** URL of the PostgreSQL database. */
  readonly to: string
  /** Where the secret is that opens what was sealed: a file, or `EV_SECRET`; null: there is none. */
  readonly secret: string | null
}

const NAMES: Readonly<Record<CopiedTable, string>> = {
  account: 'accounts',
  api_key: 'keys',
  key_secret: 'texts of keys, as digests',
  session: 'sessions of the dashboard',
  credit: 'days of credits',
  usage: 'days of usage',
  replay: 'answers to Idempotency-Keys',
  webhook: 'webhooks',
  event: 'events',
  delivery: 'deliveries',
  attempt: 'attempts of deliveries',
  notice: 'notices',
  verification: 'verifications of the history',
  answer: 'remembered answers',
  job: 'lists',
  item: 'rows of lists',
}

/** What a table holds, for people. */
const named = (name: CopiedTable) => NAMES[name]

/** What was copied and what to do now, for people. */
function migratedText(copied: Copied, { dataDir, file, to, secret }: Place): string {
  const rows = COPIED.filter(name => copied.rows[name] > 0).map(name => [
    `  ${named(name)}`,
    `${copied.rows[name]}`,
  ])
  const head = `Copied ${file} to ${withoutPassword(to)}: every row was counted there.\n`
  const shown = rows.length === 0 ? '  It holds nothing yet.\n' : table(COLUMNS, rows)
  const notes = [...stayed(copied, dataDir), ...next(dataDir, secret)]
  return `${head}${shown}\n${notes.map(note => `${note}\n`).join('')}`
}

const COLUMNS = [{ title: '  WHAT' }, { title: 'ROWS', align: 'right' }] as const

function stayed({ loadingJobs, ownJobs, probingItems }: Copied, dataDir: string): string[] {
  return [
    ...(probingItems === 0
      ? []
      : [`${pluralize(probingItems, 'row')} that were being asked when ev ended are asked again.`]),
    ...(loadingJobs === 0
      ? []
      : [`${pluralize(loadingJobs, 'list')} that never arrived whole stay behind.`]),
    ...(ownJobs === 0
      ? []
      : [
          `${pluralize(ownJobs, 'list')} of “ev bulk” stay there too, where “ev bulk” and “ev jobs” find them.`,
        ]),
    `${dataDir} keeps all that it has. Lists that were uploaded to the dashboard and not yet started, and what rate limits`,
    'counted in the last hour, are not in the copy.',
  ]
}

const next = (dataDir: string, secret: string | null): string[] => [
  secret === null
    ? 'There is no secret yet: the first “ev serve” makes one, which all others need as EV_SECRET.'
    : `Give all that work on the copy the secret in ${secret}, as EV_SECRET or EV_SECRET_FILE: secrets of webhooks cannot be read without.`,
  `Then start “ev serve” with the same database as EV_DATABASE. If it has the data directory ${dataDir}, it has its secret too.`,
]

/** The same, for programs. */
const migratedObject = (copied: Copied, { dataDir, file, to, secret }: Place) => ({
  from: dataDir,
  file,
  to: withoutPassword(to),
  rows: copied.rows,
  loading_lists: copied.loadingJobs,
  lists_of_bulk: copied.ownJobs,
  rows_asked_again: copied.probingItems,
  secret,
})
