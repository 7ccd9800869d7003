import { isoTime } from '../../platform/format.ts'
import { sanitizeText } from '../../platform/text.ts'
import { isFault } from '../address/address.ts'
import { retryAfterSeconds } from '../probe/retry-policy.ts'
import type { RecipientOutcome } from '../smtp/classify-reply.ts'
import { describeOutcome } from '../smtp/outcome-text.ts'
import { type Action, type ActionPolicy, DEFAULT_ACTION_POLICY, decide } from './action.ts'
import { SOURCE_TITLES } from './external.ts'
import { type Evidence, type Result, toClass } from './verdict.ts'

/** Optional parts of a presented result. */
export type Include = 'flags' | 'evidence'

type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json }

/**
 * Returns a single result for `--json`, and for the HTTP API with optional parts. The policy decides
 * about `action`.
 */
export function presentResult(
  result: Result,
  include: readonly Include[] = [],
  policy: ActionPolicy = DEFAULT_ACTION_POLICY,
) {
  const retryAfter = retryAfterSeconds(result)
  const { external } = result.evidence
  return {
    ...plainResult(result, policy),
    ...(retryAfter === null ? {} : { retry_after: retryAfter }),
    ...(include.includes('flags') ? presentFlags(result) : {}),
    ...(include.includes('evidence') ? { evidence: presentEvidence(result.evidence) } : {}),
    ...(external === undefined ? {} : { checked_by: external.by }),
    ...(isSimulated(result) ? { sandbox: true } : {}),
  } satisfies Json
}

/**
 * Returns a single result of the HTTP API with exactly these fields, which are defined only here.
 */
export function plainResult(result: Result, policy: ActionPolicy) {
  const { verdict } = result
  const { action, sentence } = decide(result, policy)
  return {
    email: result.email,
    valid: verdict.valid,
    deliverable: verdict.deliverable,
    risk_level: verdict.risk,
    provider: result.provider ?? '',
    response_time: result.tookMs,
    confidence: verdict.confidence,
    details: {
      syntax_valid: verdict.details.syntaxValid,
      domain_exists: verdict.details.domainExists,
      mx_record: verdict.details.mxRecord,
      smtp_valid: verdict.details.smtpValid,
    },
    reason: verdict.reason,
    cached: result.cached,
    class: toClass(verdict),
    action,
    action_reason: sentence,
  } satisfies Json
}

/** Returns the flags of an address; `is_catch_all` is null if the domain was not tested. */
export const presentAddressFlags = (evidence: Evidence) => ({
  is_disposable: isDisposable(evidence),
  is_role: evidence.flags?.role ?? false,
  is_catch_all: evidence.catchAll,
  is_free: evidence.flags?.free ?? false,
  is_relay: evidence.flags?.relay ?? false,
})

export type PresentedFlags = ReturnType<typeof presentFlags>

function presentFlags({ evidence, checkedAt }: Result) {
  return {
    flags: presentAddressFlags(evidence),
    did_you_mean: evidence.suggestion,
    canonical: evidence.flags?.canonical ?? null,
    mx_host: getMxHost(evidence),
    checked_at: isoTime(checkedAt),
  }
}

export type PresentedEvidence = ReturnType<typeof presentEvidence>

/** `api/schemas/evidence.ts` describes it. */
function presentEvidence(evidence: Evidence) {
  const { address, flags, answer, timings } = evidence
  const fault = isFault(address) ? address : null
  return {
    syntax: fault === null ? null : { at: fault.at, message: fault.message, rule: fault.rule },
    canonical: flags?.canonical ?? null,
    operator: evidence.operator?.name ?? null,
    route: presentRoute(evidence),
    // Results stored by earlier versions have no egress.
    egress: evidence.egress ?? null,
    host: evidence.host,
    ip: evidence.ip,
    tls: evidence.tls,
    answer: answer === null ? null : presentOutcome(answer),
    catch_all: evidence.catchAll,
    skipped: evidence.skipped,
    failure: evidence.failure,
    dns_ms: timings.dnsMs,
    connect_ms: timings.connectMs,
    ...(evidence.dialogue === null
      ? {}
      : { dialogue: evidence.dialogue.map(line => sanitizeText(line, 512)) }),
    ...(evidence.signals === undefined ? {} : { signals: presentSignals(evidence.signals) }),
    ...presentExternal(evidence),
    ...presentFeedback(evidence),
  }
}

const presentSignals = (signals: NonNullable<Evidence['signals']>) =>
  signals.map(({ name, shift, detail }) => ({ name, shift, detail: sanitizeText(detail) }))

function presentExternal({ external }: Evidence) {
  if (external === undefined) return {}
  const { by, status, detail } = external
  const source = by === 'ev' ? 'An earlier export of ev' : SOURCE_TITLES[by]
  const summary = `${source} says "${status}". ev has not tested this address.`
  return { external: { summary, by, status, detail } }
}

/** Only results of an account that gives feedback have these fields. */
function presentFeedback({ feedback, domainFeedback, calibration }: Evidence) {
  return {
    ...(feedback === undefined
      ? {}
      : {
          feedback: {
            summary: `${feedback.kind} on ${isoTime(feedback.occurredAt).slice(0, 10)}`,
            kind: feedback.kind,
            occurred_at: isoTime(feedback.occurredAt),
            code: feedback.code,
            enhanced_code: feedback.enhancedCode,
            text: feedback.text,
            decides: feedback.decides,
          },
        }),
    ...(domainFeedback === undefined
      ? {}
      : {
          domain_feedback: {
            delivered: domainFeedback.delivered,
            bounced: domainFeedback.bounced,
            bounce_rate_min: round(domainFeedback.rateMin, 3),
            bounce_rate_max: round(domainFeedback.rateMax, 3),
          },
        }),
    ...(calibration === undefined
      ? {}
      : {
          calibration: {
            fixed_confidence: calibration.fixed,
            reason: presentLevel(calibration.reason),
            operator: calibration.operator === null ? null : presentLevel(calibration.operator),
            domain: calibration.domain == null ? null : presentLevel(calibration.domain),
          },
        }),
  }
}

/** Results stored by 0.2.0 have no weights and no trend. */
const presentLevel = (level: NonNullable<Evidence['calibration']>['reason']) => ({
  correct: round(level.correct, 1),
  total: round(level.total, 1),
  prior_weight: level.priorWeight === undefined ? null : round(level.priorWeight, 1),
  half_life_days: level.halfLifeDays == null ? null : Math.round(level.halfLifeDays),
  trend: level.trend == null ? null : round(level.trend, 3),
})

const round = (value: number, digits: number) => Number(value.toFixed(digits))

function presentRoute({ route }: Evidence) {
  if (route === null) return null
  const hosts =
    route.kind === 'mx' ? route.hosts.map(({ preference, host }) => ({ preference, host })) : []
  return {
    kind: route.kind,
    hosts: route.kind === 'implicit' ? [{ preference: 0, host: route.host }] : hosts,
    // The reason why an answer of the DNS server was not trusted.
    ...(route.kind === 'unknown' && route.detail !== undefined ? { detail: route.detail } : {}),
  }
}

function presentOutcome(answer: RecipientOutcome) {
  return {
    kind: answer.kind,
    why: answer.why,
    stage: answer.stage,
    code: smtpCode(answer),
    enhanced_code: answer.kind === 'no-response' ? null : answer.reply.enhanced,
    text: smtpText(answer),
    meaning: describeOutcome(answer),
    ...(answer.kind === 'rejected' && answer.learned !== undefined
      ? { learned: answer.learned }
      : {}),
  }
}

/** The columns of a result in CSV, for the command line and the service. */
export const RESULT_COLUMNS = [
  ...(['email', 'valid', 'deliverable', 'risk_level', 'reason', 'cached', 'class'] as const),
  ...(['action', 'confidence', 'provider', 'syntax_valid', 'domain_exists', 'mx_record'] as const),
  ...(['smtp_valid', 'is_disposable', 'is_role', 'is_catch_all', 'is_free'] as const),
  ...(['did_you_mean', 'operator', 'mx_host', 'smtp_code', 'smtp_text', 'checked_at'] as const),
  ...(['canonical', 'simulated', 'checked_by'] as const),
]

type ColumnName = (typeof RESULT_COLUMNS)[number]

const FILTER_COLUMNS = ['class', 'action'] as const satisfies ColumnName[]

/**
 * The columns of a result beside those of an uploaded list. The class and the action come first:
 * people filter by them, and they are next to their own columns.
 */
const ADDED_COLUMNS: readonly ColumnName[] = [
  ...FILTER_COLUMNS,
  ...RESULT_COLUMNS.filter(name => !FILTER_COLUMNS.some(one => one === name)),
]

/** Returns the name of a column beside those of an uploaded list. */
const toListColumn = (name: ColumnName) => `ev_${name}`

/** The names of the columns beside those of an uploaded list. */
export const LIST_COLUMNS = ADDED_COLUMNS.map(toListColumn)

const WORDS = [
  'class',
  'action',
  'risk_level',
  'reason',
  'checked_at',
  'checked_by',
] as const satisfies ColumnName[]

/**
 * The columns, in both sets of names, whose texts are words and times of ev: none contains text of
 * a user, a mail server or a DNS server.
 */
export const WORD_COLUMNS: ReadonlySet<string> = new Set([...WORDS, ...WORDS.map(toListColumn)])

type ColumnValue = string | number | boolean | null

/** The values of a result by column; a missing one is empty. */
export type ColumnValues = Partial<Record<ColumnName, ColumnValue>>

/**
 * Returns the values of all columns. `valid` is empty where the class is unknown: in a table, false
 * would be read as "invalid".
 */
export function columnValues(result: Result, action: Action): ColumnValues {
  const { verdict, evidence } = result
  return {
    ...commonValues(result),
    email: result.email,
    valid: getValid(result),
    class: toClass(verdict),
    action,
    provider: result.provider ?? '',
    syntax_valid: verdict.details.syntaxValid,
    domain_exists: verdict.details.domainExists,
    mx_record: verdict.details.mxRecord,
    smtp_valid: verdict.details.smtpValid,
    is_disposable: isDisposable(evidence),
    is_role: evidence.flags?.role ?? false,
    is_catch_all: evidence.catchAll,
    is_free: evidence.flags?.free ?? false,
    canonical: evidence.flags?.canonical ?? null,
    simulated: isSimulated(result),
  } satisfies Record<ColumnName, ColumnValue>
}

/** Returns the fields that CSV columns and displayed rows share. */
function commonValues(result: Result) {
  const { verdict, evidence } = result
  return {
    deliverable: verdict.deliverable,
    risk_level: verdict.risk,
    reason: verdict.reason,
    cached: result.cached,
    confidence: verdict.confidence,
    did_you_mean: evidence.suggestion,
    operator: evidence.operator?.name ?? null,
    mx_host: getMxHost(evidence),
    smtp_code: evidence.answer === null ? null : smtpCode(evidence.answer),
    smtp_text: evidence.answer === null ? null : smtpText(evidence.answer),
    checked_at: isoTime(result.checkedAt),
    checked_by: presentCheckedBy(result),
  }
}

/** Orders values by `RESULT_COLUMNS`. */
export const toResultColumns = (values: ColumnValues): ColumnValue[] =>
  RESULT_COLUMNS.map(name => values[name] ?? null)

/** Orders values by `LIST_COLUMNS`. */
export const toListColumns = (values: ColumnValues): ColumnValue[] =>
  ADDED_COLUMNS.map(name => values[name] ?? null)

/** Returns whether an address is valid; null if that is unknown. */
const getValid = ({ verdict }: Result): boolean | null =>
  toClass(verdict) === 'unknown' ? null : verdict.valid

/** Whether a result comes from the sandbox: no mail server was contacted. */
export const isSimulated = ({ evidence }: Result): boolean => evidence.skipped === 'sandbox'

/**
 * Returns who obtained a result: `ev`, the service of an external result, or `sandbox` for one that
 * is simulated.
 */
export const presentCheckedBy = (result: Result): string =>
  result.evidence.external?.by ?? (isSimulated(result) ? 'sandbox' : 'ev')

/** Returns a result as a table row for display. */
export function presentRow(result: Result, policy: ActionPolicy) {
  const { action, sentence } = decide(result, policy)
  return {
    class: toClass(result.verdict),
    action,
    action_reason: sentence,
    valid: result.verdict.valid,
    ...commonValues(result),
  } satisfies Json
}

const isDisposable = (evidence: Evidence) =>
  (evidence.flags?.disposable ?? false) || evidence.disposableHost

/** Returns the probed host, else the first host of the route. */
export function getMxHost({ host, route }: Evidence): string | null {
  if (host !== null) return host
  if (route?.kind === 'mx') return route.hosts[0]?.host ?? null
  return route?.kind === 'implicit' ? route.host : null
}

const smtpCode = (answer: RecipientOutcome) =>
  answer.kind === 'no-response' ? null : answer.reply.code

/** Returns the sanitized reply text; without a reply, the observed failure. */
const smtpText = (answer: RecipientOutcome) =>
  sanitizeText(answer.kind === 'no-response' ? answer.detail : answer.reply.text)
