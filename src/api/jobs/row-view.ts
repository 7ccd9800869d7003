import {
  plainResult,
  presentAddressFlags,
  presentResult,
  presentRow,
} from '../../engine/verdict/present-result.ts'
import { VERDICT_BY_REASON } from '../../engine/verdict/reason.ts'
import { type Class, DEFAULT_REASON_BY_CLASS, type Result } from '../../engine/verdict/verdict.ts'
import type { JobRow } from './job-row.ts'

/** A row of `data.results` (spec 2.2) with its class and its submitted ID. */
export function presentItem(row: JobRow) {
  const { email, valid, deliverable, risk_level, reason, cached } = plainRow(row)
  return {
    ...(row.id === null ? {} : { id: row.id }),
    ...{ email, valid, deliverable, risk_level, reason, cached, class: row.class },
    ...erasedMark(row),
  }
}

/**
 * A row of a JSON download: the single result with flags, the operator and SMTP reply, and the
 * submitted ID and cells. `input` is JSON.
 */
export function rowJson(row: JobRow, input: string | null): string {
  const result = row.result === null ? plainRow(row) : presentFull(row.result)
  const head = { row: row.position, ...(row.id === null ? {} : { id: row.id }) }
  const text = JSON.stringify({ ...head, ...result, ...erasedMark(row) })
  return input === null ? text : `${text.slice(0, -1)},"input":${input}}`
}

function presentFull(result: Result) {
  const { operator, smtp_code, smtp_text } = presentRow(result)
  return { ...presentResult(result, ['flags']), operator, smtp_code, smtp_text }
}

/** The columns of a CSV download; the fields of a list row come first. */
export const ROW_COLUMNS = [
  ...['email', 'valid', 'deliverable', 'risk_level', 'reason', 'cached', 'class'],
  ...['confidence', 'provider', 'syntax_valid', 'domain_exists', 'mx_record', 'smtp_valid'],
  ...['is_disposable', 'is_role', 'is_catch_all', 'is_free', 'did_you_mean'],
  ...['operator', 'mx_host', 'smtp_code', 'smtp_text', 'checked_at'],
] as const

/** The values of `ROW_COLUMNS`, in the same order. */
export function rowValues(row: JobRow): (string | number | boolean | null)[] {
  const plain = plainRow(row)
  const { syntax_valid, domain_exists, mx_record, smtp_valid } = plain.details
  const flags = row.result === null ? null : presentAddressFlags(row.result.evidence)
  const shown = row.result === null ? null : presentRow(row.result)
  return [
    ...[plain.email, plain.valid, plain.deliverable, plain.risk_level, plain.reason, plain.cached],
    ...[row.class, plain.confidence, plain.provider],
    ...[syntax_valid, domain_exists, mx_record, smtp_valid],
    ...[flags?.is_disposable ?? null, flags?.is_role ?? null],
    ...[flags?.is_catch_all ?? null, flags?.is_free ?? null, shown?.did_you_mean ?? null],
    ...[shown?.operator ?? null, shown?.mx_host ?? null, shown?.smtp_code ?? null],
    ...[shown?.smtp_text ?? null, shown?.checked_at ?? null],
  ]
}

/** The plain result of a row; for an erased address it is derived from the class. */
export const plainRow = ({ result, class: klass }: JobRow): ReturnType<typeof plainResult> =>
  result === null ? erasedResult(klass) : plainResult(result)

const erasedMark = ({ result }: JobRow) => (result === null ? { erased: true as const } : {})

/** The result of an erased address, of which only the class is left. */
function erasedResult(klass: Class): ReturnType<typeof plainResult> {
  const reason = DEFAULT_REASON_BY_CLASS[klass]
  const { valid, deliverable, risk, details } = VERDICT_BY_REASON[reason]
  return {
    ...{ email: '', valid, deliverable, risk_level: risk, provider: '', response_time: 0 },
    confidence: 0,
    details: {
      syntax_valid: details.syntaxValid,
      domain_exists: details.domainExists,
      mx_record: details.mxRecord,
      smtp_valid: details.smtpValid ?? false,
    },
    ...{ reason, cached: false, class: klass },
  }
}
