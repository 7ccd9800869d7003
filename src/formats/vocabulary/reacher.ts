import { isFault } from '../../engine/address/address.ts'
import type { Route } from '../../engine/dns/route.ts'
import type { RecipientOutcome } from '../../engine/smtp/classify-reply.ts'
import { presentAddressFlags } from '../../engine/verdict/present-result.ts'
import { REASON_TEXTS } from '../../engine/verdict/reason.ts'
import { type Class, type Evidence, type Result, toClass } from '../../engine/verdict/verdict.ts'
import { SECOND } from '../../platform/clock.ts'
import { isoTime } from '../../platform/format.ts'
import { sanitizeText } from '../../platform/text.ts'

// Results in the form of Reacher's `CheckEmailOutput`: `core/src/util/input_output.rs` and the types
// that it names, at version 0.11.7.

/** `is_reachable` by the class of a result. */
const REACHABLE = {
  deliverable: 'safe',
  risky: 'risky',
  undeliverable: 'invalid',
  unknown: 'unknown',
} as const satisfies Record<Class, string>

export type CheckOutput = ReturnType<typeof presentCheck>

/** Presents a result. `input` is the text that was sent. */
export function presentCheck(result: Result, input: string) {
  const { evidence, verdict } = result
  const { is_disposable, is_role, is_free } = presentAddressFlags(evidence)
  return {
    input,
    is_reachable: REACHABLE[toClass(verdict)],
    misc: { ...NO_MISC, is_disposable, is_role_account: is_role, is_b2c: is_free },
    mx: presentMx(result),
    smtp: presentSmtp(result),
    syntax: presentSyntax(evidence),
    debug: presentDebug(result),
  }
}

/**
 * Presents a row without a result: its address was erased, or its list ended before its turn. Of an
 * erased one the class is left.
 */
export function presentMissing(input: string, klass: Class | null): CheckOutput {
  const message =
    klass === null ? 'The list ended before this address was verified.' : 'The address was erased.'
  return {
    input,
    is_reachable: REACHABLE[klass ?? 'unknown'],
    misc: NO_MISC,
    mx: NO_MX,
    smtp: { error: { type: 'AnyhowError', message } },
    syntax: NO_SYNTAX,
    debug: { ...BACKEND, ...presentTimes(0, 0), smtp: SKIPPED },
  }
}

const NO_MISC = {
  is_disposable: false,
  is_role_account: false,
  is_b2c: false,
  // The engine looks for a profile, whose URL it does not keep, and asks no breach database.
  gravatar_url: null,
  haveibeenpwned: null,
}

type Mx =
  | { readonly accepts_mail: boolean; readonly records: readonly string[] }
  | { readonly error: { readonly type: string; readonly message: string } }

const NO_MX: Mx = { accepts_mail: false, records: [] }

/** A domain without MX records that has an address is its own mail server, and counts as one. */
function presentMx({ evidence: { route }, verdict }: Result): Mx {
  // A simulated result has no route.
  if (route === null) return { accepts_mail: verdict.details.mxRecord, records: [] }
  if (route.kind === 'unknown') {
    const message = route.fault === 'timeout' ? 'the DNS query timed out' : 'the DNS query failed'
    return { error: { type: 'ResolveError', message: route.detail ?? message } }
  }
  const records = getHosts(route).map(host => `${host}.`)
  return { accepts_mail: records.length > 0, records }
}

function getHosts(route: Route): string[] {
  if (route.kind === 'mx') return route.hosts.map(({ host }) => host)
  return route.kind === 'implicit' ? [route.host] : []
}

type Smtp =
  | {
      readonly can_connect_smtp: boolean
      readonly has_full_inbox: boolean
      readonly is_catch_all: boolean
      readonly is_deliverable: boolean
      readonly is_disabled: boolean
    }
  | {
      readonly error: { readonly type: string; readonly message: string }
      readonly description?: 'IpBlacklisted' | 'NeedsRDNS'
    }

/**
 * Presents what the mail server said. A result that is unknown has an error: fields that are all
 * false would say that the mailbox does not exist.
 */
function presentSmtp({ evidence, verdict }: Result): Smtp {
  const { answer, catchAll } = evidence
  const klass = toClass(verdict)
  if (klass === 'unknown' && evidence.route?.kind !== 'unknown') {
    return answer === null
      ? { error: { type: 'AnyhowError', message: REASON_TEXTS[verdict.reason].means } }
      : presentError(answer)
  }
  // A simulated result has no answer.
  const isReached = answer === null ? verdict.details.smtpValid : answer.kind !== 'no-response'
  const isAccepted =
    answer === null ? catchAll === true : answer.kind === 'accepted' && answer.why !== 'restricted'
  return {
    can_connect_smtp: isReached,
    has_full_inbox: verdict.reason === 'mailbox_full',
    is_catch_all: catchAll ?? false,
    is_deliverable: klass !== 'undeliverable' && (isAccepted || verdict.deliverable),
    is_disabled: verdict.reason === 'mailbox_disabled',
  }
}

/** Presents an outcome that says nothing about the mailbox. */
function presentError(answer: RecipientOutcome): Smtp {
  if (answer.kind === 'no-response') {
    const type = answer.why === 'timeout' ? 'Timeout' : 'IOError'
    return { error: { type, message: sanitizeText(answer.detail) } }
  }
  const { code, enhanced, text } = answer.reply
  const message = `${code < 500 ? 'transient' : 'permanent'}: ${enhanced ?? code} ${sanitizeText(text)}`
  const error = { type: 'AsyncSmtpError', message }
  if (answer.kind !== 'blocked') return { error }
  return answer.why === 'rdns'
    ? { error, description: 'NeedsRDNS' }
    : answer.why === 'blocklist'
      ? { error, description: 'IpBlacklisted' }
      : { error }
}

type Syntax = {
  readonly address: string | null
  readonly domain: string
  readonly is_valid_syntax: boolean
  readonly username: string
  readonly normalized_email: string | null
  readonly suggestion: string | null
}

const NO_SYNTAX: Syntax = {
  address: null,
  domain: '',
  is_valid_syntax: false,
  username: '',
  normalized_email: null,
  suggestion: null,
}

function presentSyntax({ address, flags, suggestion }: Evidence): Syntax {
  if (isFault(address)) return { ...NO_SYNTAX, suggestion }
  return {
    address: address.text,
    domain: address.domain.ascii,
    is_valid_syntax: true,
    username: address.local,
    normalized_email: flags?.canonical ?? address.text,
    suggestion,
  }
}

const BACKEND = { backend_name: 'ev' }
const SKIPPED = { verif_method: { type: 'Skipped' as const } }

/** The identity of the egress is not part of the response. */
function presentDebug({ checkedAt, tookMs, evidence: { host } }: Result) {
  const times = presentTimes(checkedAt - tookMs, tookMs)
  const smtp = host === null ? SKIPPED : { verif_method: { type: 'Smtp' as const, host } }
  return { ...BACKEND, ...times, smtp }
}

const NANOS_PER_MS = 1_000_000

const presentTimes = (startedAt: number, tookMs: number) => ({
  start_time: isoTime(startedAt),
  end_time: isoTime(startedAt + tookMs),
  duration: {
    secs: Math.floor(tookMs / SECOND),
    nanos: Math.round((tookMs % SECOND) * NANOS_PER_MS),
  },
})

/** The columns of results as CSV; the first one has the address. */
export const REACHER_COLUMNS = [
  ...(['input', 'is_reachable', 'misc.is_disposable', 'misc.is_role_account'] as const),
  ...(['misc.gravatar_url', 'mx.accepts_mail', 'smtp.can_connect', 'smtp.has_full_inbox'] as const),
  ...(['smtp.is_catch_all', 'smtp.is_deliverable', 'smtp.is_disabled'] as const),
  ...(['syntax.is_valid_syntax', 'syntax.domain', 'syntax.username', 'error'] as const),
]

/** Returns the values of `REACHER_COLUMNS`. */
export function toReacherValues({ input, is_reachable, misc, mx, smtp, syntax }: CheckOutput) {
  const checked = 'error' in smtp ? NO_SMTP : smtp
  return [
    input,
    is_reachable,
    misc.is_disposable,
    misc.is_role_account,
    misc.gravatar_url,
    'accepts_mail' in mx && mx.accepts_mail,
    checked.can_connect_smtp,
    checked.has_full_inbox,
    checked.is_catch_all,
    checked.is_deliverable,
    checked.is_disabled,
    syntax.is_valid_syntax,
    syntax.domain,
    syntax.username,
    'error' in smtp ? smtp.error.message : 'error' in mx ? mx.error.message : null,
  ]
}

const NO_SMTP = {
  can_connect_smtp: false,
  has_full_inbox: false,
  is_catch_all: false,
  is_deliverable: false,
  is_disabled: false,
}
