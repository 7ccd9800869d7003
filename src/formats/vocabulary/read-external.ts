import type { ListDialect } from '../../csv/csv.ts'
import type { ExternalReason, ExternalResult } from '../../engine/verdict/external.ts'
import { EXTERNAL_SOURCES, type ExternalSource } from '../../engine/verdict/verdict.ts'
import { sanitizeText } from '../../platform/text.ts'

// Recognizes the columns of result exports of ZeroBounce, NeverBounce, Kickbox, Reacher and ev in a
// list, and reads the result of a row. Words that are not in these tables are not a result.

/** The columns of the results in a list, as indexes from 0; null where the list has none. */
export type ExternalColumns = {
  readonly source: ExternalSource
  readonly status: number
  readonly detail: number | null
  /** When the row was checked. */
  readonly date: number | null
  readonly disposable: number | null
  /** Who obtained a result that ev exported. */
  readonly checkedBy: number | null
  readonly simulated: number | null
  readonly action: number | null
}

/** A result of a row; `checkedAt` is null if the row does not say when it was checked. */
type ReadResult = Omit<ExternalResult, 'checkedAt'> & { readonly checkedAt: number | null }

type Signature = {
  /** Names of the column of the status, without case and punctuation. */
  readonly status: readonly string[]
  /** A list has one of these too, or the status is a word of another program; empty for none. */
  readonly beside: readonly string[]
  readonly detail: readonly string[]
  readonly date: readonly string[]
}

/** Names of a date that people and programs add. */
const DATES = ['checkedat', 'processedat', 'verifiedat', 'validatedat', 'verificationdate']

/** Exports first, then fields of the APIs, which programs write to files of their own. */
const SIGNATURES: readonly (readonly [ExternalSource, Signature])[] = [
  [
    'ev',
    { status: ['evclass'], beside: ['evreason'], detail: ['evreason'], date: ['evcheckedat'] },
  ],
  ['ev', { status: ['class'], beside: ['risklevel'], detail: ['reason'], date: ['checkedat'] }],
  [
    'zerobounce',
    {
      status: ['zbstatus'],
      beside: [],
      detail: ['zbsubstatus'],
      date: ['zbprocessedat', ...DATES],
    },
  ],
  ['zerobounce', { status: ['status'], beside: ['substatus'], detail: ['substatus'], date: DATES }],
  ['neverbounce', { status: ['emailstatus'], beside: [], detail: [], date: DATES }],
  [
    'kickbox',
    {
      status: ['kickboxresult'],
      beside: [],
      detail: ['kickboxreason'],
      date: ['kickboxverificationdate', ...DATES],
    },
  ],
  [
    'kickbox',
    { status: ['result'], beside: ['sendex', 'acceptall'], detail: ['reason'], date: DATES },
  ],
  ['reacher', { status: ['isreachable'], beside: [], detail: [], date: DATES }],
]

/**
 * Finds the columns of results in a list; null if it has none. A row with several addresses has a
 * result for one of them, and does not say for which, so such lists have none.
 */
export function findExternalColumns({
  header,
  allAddresses,
}: Pick<ListDialect, 'header' | 'allAddresses'>): ExternalColumns | null {
  if (header === null || allAddresses !== undefined) return null
  const names = header.map(toPlainName)
  const find = (candidates: readonly string[]) => {
    const found = candidates.find(name => names.includes(name))
    return found === undefined ? null : names.indexOf(found)
  }
  for (const [source, { status, beside, detail, date }] of SIGNATURES) {
    const at = find(status)
    if (at === null || (beside.length > 0 && find(beside) === null)) continue
    return {
      source,
      status: at,
      detail: find(detail),
      date: find(date),
      disposable: find(['disposable', 'kickboxdisposable', 'miscisdisposable']),
      checkedBy: find(source === 'ev' ? ['evcheckedby', 'checkedby'] : ['checkedby']),
      simulated: find(['evsimulated', 'simulated']),
      action: source === 'ev' ? find(['evaction', 'action']) : null,
    }
  }
  return null
}

const toPlainName = (name: string) => name.toLowerCase().replace(/[^a-z0-9]/g, '')

type Words = Readonly<Record<string, ExternalReason>>

/** The statuses of each service, as `toPlainWord` returns them. */
const WORDS: Readonly<Record<ExternalSource, Words>> = {
  zerobounce: {
    valid: 'external_deliverable',
    invalid: 'external_undeliverable',
    catch_all: 'external_risky',
    unknown: 'external_unknown',
    spamtrap: 'external_do_not_mail',
    abuse: 'external_do_not_mail',
    do_not_mail: 'external_do_not_mail',
  },
  neverbounce: {
    valid: 'external_deliverable',
    invalid: 'external_undeliverable',
    disposable: 'external_do_not_mail',
    catchall: 'external_risky',
    catch_all: 'external_risky',
    accept_all: 'external_risky',
    unknown: 'external_unknown',
  },
  kickbox: {
    deliverable: 'external_deliverable',
    undeliverable: 'external_undeliverable',
    risky: 'external_risky',
    unknown: 'external_unknown',
  },
  reacher: {
    safe: 'external_deliverable',
    invalid: 'external_undeliverable',
    risky: 'external_risky',
    unknown: 'external_unknown',
  },
  ev: {
    deliverable: 'external_deliverable',
    undeliverable: 'external_undeliverable',
    risky: 'external_risky',
    unknown: 'external_unknown',
  },
}

/** Sub-statuses of `do_not_mail` that speak of a role: mail to a company may go to one. */
const ROLES: ReadonlySet<string> = new Set([
  ...['role_based', 'role_based_catch_all', 'role_based_accept_all'],
])

/** Reads the result of a row; null if it has none, or one that is simulated. */
export function readExternal(
  columns: ExternalColumns,
  cells: readonly string[],
): ReadResult | null {
  const get = (column: number | null) => (column === null ? '' : (cells[column] ?? '').trim())
  const status = toPlainWord(get(columns.status))
  const word = WORDS[columns.source][status]
  const checkedBy = toPlainWord(get(columns.checkedBy))
  if (word === undefined || checkedBy === 'sandbox') return null
  if (isTrue(get(columns.simulated))) return null
  const detail = get(columns.detail)
  return {
    by: EXTERNAL_SOURCES.find(one => one === checkedBy) ?? columns.source,
    reason: refine(word, {
      detail: toPlainWord(detail),
      isDisposable: isTrue(get(columns.disposable)),
      isSuppressed: get(columns.action) === 'suppress',
    }),
    status: get(columns.status),
    detail: detail === '' ? null : sanitizeText(detail, DETAIL_LENGTH_MAX),
    checkedAt: parseCheckTime(get(columns.date)),
  }
}

const DETAIL_LENGTH_MAX = 60

type Details = {
  readonly detail: string
  readonly isDisposable: boolean
  readonly isSuppressed: boolean
}

function refine(word: ExternalReason, { detail, isDisposable, isSuppressed }: Details) {
  if (word === 'external_do_not_mail' && ROLES.has(detail)) return 'external_risky'
  const isHarmful = isDisposable || isSuppressed
  return word === 'external_risky' && isHarmful ? 'external_do_not_mail' : word
}

const toPlainWord = (word: string) => word.toLowerCase().replace(/[\s-]+/g, '_')

const isTrue = (cell: string) => /^(?:true|1|yes|y)$/i.test(cell)

/**
 * A date, with or without a time, as exports write it: `2026-03-01`, `2026-03-01 14:30:00.123`,
 * `2026-03-01T14:30:00Z`. Others, such as `03/04/2026`, have several readings.
 */
const CHECK_TIME =
  /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?) ?(Z|UTC|[+-]\d\d:?\d\d)?)?$/i

/** Parses a date as epoch ms; null if it has another form. A time without a zone is UTC. */
export function parseCheckTime(text: string): number | null {
  const [, day, time = '00:00', zone = 'Z'] = CHECK_TIME.exec(text) ?? []
  if (day === undefined) return null
  const parsed = Date.parse(`${day}T${time}${/^[+-]/.test(zone) ? zone : 'Z'}`)
  return Number.isNaN(parsed) ? null : parsed
}
