import { Option } from 'commander'
import { ACTIONS, type Action } from '../engine/verdict/action.ts'
import { CLASSES, type Class } from '../engine/verdict/reason.ts'
import { VOCABULARIES, type Vocabulary } from '../formats/vocabulary/names.ts'
import type { DeduplicateBy } from '../jobs/import/import-counter.ts'
import type { Metadata } from '../jobs/job-store.ts'
import { checkMetadata } from '../jobs/metadata.ts'
import { DAY, HOUR, MINUTE, SECOND } from '../platform/clock.ts'
import { EvError } from '../platform/error.ts'
import { sanitizeText } from '../platform/text.ts'

/** Collects the values of an option that may be repeated. */
export const collect = (value: string, previous: readonly string[] = []) => [...previous, value]

/** Parses the value of a flag as a whole number in a range. Throws EvError('usage'). */
export function parseInteger(
  flag: string,
  value: string,
  [min, max]: readonly [min: number, max: number],
): number {
  const number = Number(value)
  if (/^\d+$/.test(value) && number >= min && number <= max) return number
  throw new EvError(
    'usage',
    `${flag} is "${sanitizeText(value)}"; it takes a whole number from ${min} to ${max}.`,
  )
}

/** Parses a percentage, such as `3%`, as a share from 0 to 1. Throws EvError('usage'). */
export function parseRate(flag: string, value: string): number {
  const [, digits] = /^(\d{1,3}(?:\.\d{1,4})?)%$/.exec(value) ?? []
  if (digits !== undefined && Number(digits) <= 100) return Number(digits) / 100
  throw new EvError(
    'usage',
    `${flag} is "${sanitizeText(value, 40)}"; it takes a percentage from 0% to 100%, such as 3%.`,
  )
}

/** Parses a port to listen on; 0 for a free port. */
export const parsePort = (flag: string, value: string): number =>
  parseInteger(flag, value, [0, 65_535])

/** Parses a comma-separated list of known names, in the order of `known`. Throws EvError('usage'). */
function parseNames<Name extends string>(
  flag: string,
  known: readonly Name[],
  value: string,
): Name[] {
  const names = value.split(',').map(name => name.trim())
  const unknown = names.find(name => !known.some(one => one === name))
  if (unknown !== undefined) {
    throw new EvError(
      'usage',
      `${flag} has "${sanitizeText(unknown, 40)}"; it takes a comma-separated list of ${known.join(', ')}.`,
    )
  }
  return known.filter(name => names.includes(name))
}

/** Parses the value of `--only`. Throws EvError('usage'). */
export const parseClasses = (value: string): Class[] => parseNames('--only', CLASSES, value)

/** Parses the value of `--action`. Throws EvError('usage'). */
export const parseActions = (value: string): Action[] => parseNames('--action', ACTIONS, value)

/** The formats of results, in the order of help. */
export const OUTPUT_FORMATS = ['csv', 'xlsx', 'ndjson', 'json'] as const

const DEDUPLICATE_CHOICES = ['address', 'canonical'] as const satisfies DeduplicateBy[]

/** `--deduplicate`; without a value it compares addresses. */
export const deduplicateOption = (verb: string) =>
  new Option(
    '--deduplicate [by]',
    // Help inserts the choices before the default.
    `${verb} only the first row of each (default: address; with canonical, ann+news@gmail.com is ann@gmail.com)`,
  )
    .choices(DEDUPLICATE_CHOICES)
    .preset('address')

/** `--vocabulary`. */
export const vocabularyOption = () =>
  new Option(
    '--vocabulary <service>',
    'write the columns and words of another service (default: those of ev)',
  ).choices(VOCABULARIES)

/** Throws EvError('usage') if the format has no columns, which a vocabulary needs. */
export function checkVocabulary(
  vocabulary: Vocabulary | undefined,
  format: (typeof OUTPUT_FORMATS)[number],
): void {
  if (vocabulary === undefined || format === 'csv' || format === 'xlsx') return
  throw new EvError(
    'usage',
    `--vocabulary sets the columns of csv and xlsx, but the format is ${format}. Name a file with -o, such as out.csv, or omit --vocabulary.`,
  )
}

/** `--metadata`, which may be repeated. */
export const metadataOption = (help: string) =>
  new Option('--metadata <key=value>', `${help}; repeat it for several`).argParser(collect)

/** Parses the values of `--metadata`. Throws EvError('usage'). */
export function parseMetadataFlags(values: readonly string[] = []): Metadata {
  const pairs = values.map(value => {
    const equals = value.indexOf('=')
    if (equals > 0) return [value.slice(0, equals), value.slice(equals + 1)] as const
    throw invalid(`is "${sanitizeText(value)}"; give a key and a value, as in "customer=42".`)
  })
  const repeated = pairs.find(([key], n) => pairs.findIndex(([other]) => other === key) < n)
  if (repeated !== undefined) {
    throw invalid(`has the key "${sanitizeText(repeated[0])}" twice; give each key once.`)
  }
  const checked = checkMetadata(Object.fromEntries(pairs))
  if ('fault' in checked) throw invalid(checked.fault)
  return checked.metadata
}

const invalid = (fault: string) => new EvError('usage', `--metadata ${fault}`)

const UNITS = { s: SECOND, m: MINUTE, h: HOUR, d: DAY } as const

/** Ten years; a key that must live longer needs no expiry. */
const EXPIRY_MAX_MS = 3_650 * DAY

/** Parses `--expires`, a duration from now (`90d`) or a date. Returns epoch ms. Throws EvError. */
export function parseExpiry(value: string | undefined, now: number): number | null {
  if (value === undefined) return null
  const at = DATE.test(value) ? parseDate(value) : now + (parseDuration(value) ?? Number.NaN)
  if (at > now && at <= now + EXPIRY_MAX_MS) return at
  throw new EvError(
    'usage',
    `--expires is "${sanitizeText(value)}"; it takes a future time within ten years, such as 90d, 12h or 2030-01-31. Omit it for a key that does not expire.`,
  )
}

/** Parses `--grace`, a duration such as `24h`, `30m` or `0`. Returns ms. Throws EvError. */
export function parseGrace(value: string, maxMs: number): number {
  const grace = value === '0' ? 0 : parseDuration(value)
  if (grace !== null && grace <= maxMs) return grace
  throw new EvError(
    'usage',
    `--grace is "${sanitizeText(value)}"; it takes a duration from 0 to ${maxMs / DAY}d, such as 24h or 30m.`,
  )
}

/** Parses `--since`, a duration ago (`2d`) or a date. Returns epoch ms. Throws EvError. */
export function parseSince(value: string, now: number): number {
  const at = DATE.test(value) ? parseDate(value) : now - (parseDuration(value) ?? Number.NaN)
  if (at <= now) return at
  throw new EvError(
    'usage',
    `--since is "${sanitizeText(value)}"; it takes a past time, such as 2h, 3d or 2030-01-31.`,
  )
}

/** ISO 8601. A date without a time is its midnight in UTC. */
const DATE = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2}))?$/

/** Returns NaN for a day that does not exist, which Date.parse would move to the next month. */
function parseDate(value: string): number {
  const day = value.slice(0, 10)
  const isReal = new Date(Date.parse(day) || 0).toISOString().startsWith(day)
  return isReal ? Date.parse(value) : Number.NaN
}

function parseDuration(value: string): number | null {
  const [, count, unit] = /^(\d{1,9})([smhd])$/.exec(value) ?? []
  return unit === undefined ? null : Number(count) * UNITS[unit as keyof typeof UNITS]
}
