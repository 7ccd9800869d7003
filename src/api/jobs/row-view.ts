import { type ActionPolicy, decide } from '../../engine/verdict/action.ts'
import {
  type ColumnValues,
  columnValues,
  plainResult,
  presentResult,
  presentRow,
} from '../../engine/verdict/present-result.ts'
import { VERDICT_BY_REASON } from '../../engine/verdict/reason.ts'
import { type Class, DEFAULT_REASON_BY_CLASS, type Result } from '../../engine/verdict/verdict.ts'
import { decideStored } from '../../jobs/results/result-store.ts'
import type { SortedPosition, SortField } from '../../jobs/results/sorted-results.ts'
import { invalidRequest } from '../errors/request-errors.ts'
import { decodeCursor } from '../query.ts'
import type { JobRow } from './job-row.ts'

/** A row of `data.results` (spec 2.2) with its class and its submitted ID. */
export function presentItem(row: JobRow, policy: ActionPolicy) {
  const { email, valid, deliverable, risk_level, reason, cached, action } = plainRow(row, policy)
  return {
    ...(row.id === null ? {} : { id: row.id }),
    email,
    valid,
    deliverable,
    risk_level,
    reason,
    cached,
    class: row.class,
    action,
    ...erasedMark(row),
  }
}

/**
 * A row of a JSON download: the single result with flags, the operator and SMTP reply, and the
 * submitted ID and cells. `input` is JSON.
 */
export function rowJson(row: JobRow, input: string | null, policy: ActionPolicy): string {
  const result = row.result === null ? plainRow(row, policy) : presentFull(row.result, policy)
  const head = { row: row.position, ...(row.id === null ? {} : { id: row.id }) }
  const text = JSON.stringify({ ...head, ...result, ...previousFields(row), ...erasedMark(row) })
  return input === null ? text : `${text.slice(0, -1)},"input":${input}}`
}

const previousFields = ({ previous }: JobRow) =>
  previous === null ? {} : { previous_class: previous.class, previous_reason: previous.reason }

function presentFull(result: Result, policy: ActionPolicy) {
  const { operator, smtp_code, smtp_text } = presentRow(result, policy)
  return { ...presentResult(result, ['flags'], policy), operator, smtp_code, smtp_text }
}

/** The values of a row by column; those of an erased address are derived from its class. */
export function rowValues(row: JobRow, policy: ActionPolicy): ColumnValues {
  if (row.result !== null) return columnValues(row.result, decide(row.result, policy).action)
  const { details, action_reason, ...plain } = plainRow(row, policy)
  return { ...plain, ...details }
}

/** The plain result of a row; for an erased address it is derived from the class. */
export const plainRow = (
  { result, class: klass }: JobRow,
  policy: ActionPolicy,
): ReturnType<typeof plainResult> =>
  result === null ? erasedResult(klass, policy) : plainResult(result, policy)

const erasedMark = ({ result }: JobRow) => (result === null ? { erased: true as const } : {})

/** The result of an erased address, of which only the class is left. */
function erasedResult(klass: Class, policy: ActionPolicy): ReturnType<typeof plainResult> {
  const reason = DEFAULT_REASON_BY_CLASS[klass]
  const { valid, deliverable, risk, details } = VERDICT_BY_REASON[reason]
  const { action, sentence } = decideStored(null, klass, policy)
  return {
    email: '',
    valid,
    deliverable,
    risk_level: risk,
    provider: '',
    response_time: 0,
    confidence: 0,
    details: {
      syntax_valid: details.syntaxValid,
      domain_exists: details.domainExists,
      mx_record: details.mxRecord,
      smtp_valid: details.smtpValid ?? false,
    },
    reason,
    cached: false,
    class: klass,
    action,
    action_reason: sentence,
  }
}

/** Returns the row after which a page starts; 0 for the first page. Throws ApiError. */
export const parseRowCursor = (cursor: string | undefined): number => parseRowStart(cursor).after

/** Where a page in the order of the list starts. */
export type RowStart = {
  /** The row before the page; 0 for the first page. */
  readonly after: number
  /** Number of matching rows before the page; null if it was not counted. */
  readonly offset: number | null
}

/** Returns where a page in the order of the list starts. Throws ApiError. */
export function parseRowStart(cursor: string | undefined): RowStart {
  if (cursor === undefined) return { after: 0, offset: 0 }
  const text = Buffer.from(cursor, 'base64url').toString('utf8')
  const [, after, offset] = /^\[(\d{1,15})(?:,(\d{1,15}))?\]$/.exec(text) ?? []
  if (after !== undefined) {
    return { after: Number(after), offset: offset === undefined ? null : Number(offset) }
  }
  throw invalidRequest(
    '"cursor" must be the `next_cursor` of an earlier response; omit it to start with the first row',
  )
}

/**
 * Returns the position after which a page of rows that are sorted by `field` starts; null for the
 * first page. Throws ApiError.
 */
export function parseSortedCursor(
  field: SortField,
  cursor: string | undefined,
): SortedPosition | null {
  if (cursor === undefined) return null
  const [sortedBy, key, position] = decodeCursor(cursor)
  const isKey = key === null || typeof key === 'string'
  if (sortedBy === field && isKey && Number.isSafeInteger(position)) {
    return { key, position: Number(position) }
  }
  throw invalidRequest(
    `"cursor" must be the \`next_cursor\` of an earlier response with the same "sort", here "${field}". Omit it to start with the first row.`,
  )
}

/** Encodes the last row of a page that is sorted by `field` as an opaque cursor. */
export const toSortedCursor = (field: SortField, { key, position }: SortedPosition): string =>
  Buffer.from(JSON.stringify([field, key, position])).toString('base64url')

/**
 * Encodes the row after which the next page starts as an opaque cursor, with the number of matching
 * rows up to it if it is known.
 */
export const toRowCursor = (position: number, offset?: number): string =>
  Buffer.from(JSON.stringify(offset === undefined ? [position] : [position, offset])).toString(
    'base64url',
  )
