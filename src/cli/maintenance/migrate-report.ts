import { withoutPassword } from '../../config/password.ts'
import { COPIED, type Copied, type CopiedTable } from '../../maintenance/copy-data.ts'
import { pluralize } from '../../platform/format.ts'
import { table } from '../table.ts'

/** From where to where. */
export type Place = {
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
export const named = (name: CopiedTable) => NAMES[name]

/** What was copied and what to do now, for people. */
export function migratedText(copied: Copied, { dataDir, file, to, secret }: Place): string {
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
export const migratedObject = (copied: Copied, { dataDir, file, to, secret }: Place) => ({
  from: dataDir,
  file,
  to: withoutPassword(to),
  rows: copied.rows,
  loading_lists: copied.loadingJobs,
  lists_of_bulk: copied.ownJobs,
  rows_asked_again: copied.probingItems,
  secret,
})
