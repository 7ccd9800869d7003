import {
  CLASSES,
  type Class,
  type Reason,
  type Risk,
  toClass,
  VERDICT_BY_REASON,
} from './reason.ts'
import type { Result, Verdict } from './verdict.ts'

// What to do with an address. The class says what is known about an address, and the action what a
// sender should do with it. The same verdict has another action under another policy.

/**
 * `send`: mail it. `send_with_care`: mail it in small batches and watch the bounces. `retry_later`:
 * nothing is known yet, or the trouble passes; verify it again before you mail it. `suppress`: do
 * not mail it.
 */
export const ACTIONS = ['send', 'send_with_care', 'retry_later', 'suppress'] as const

export type Action = (typeof ACTIONS)[number]

/**
 * `strict`: only mailboxes that are confirmed, for a new domain or a source with a poor reputation.
 * `lenient`: everything but what is known to bounce or to do harm.
 */
export const ACTION_POLICIES = ['balanced', 'strict', 'lenient'] as const

export type ActionPolicy = (typeof ACTION_POLICIES)[number]

export const DEFAULT_ACTION_POLICY: ActionPolicy = 'balanced'

/** An action and its reason, a sentence. */
export type Decision = { readonly action: Action; readonly sentence: string }

/**
 * What an action depends on: the reason, and the risk where a reason has several. `complained`: the
 * newest report about the address is a complaint.
 */
export type ActionCase =
  | Reason
  | 'possible_typo/high'
  | 'catch_all/low'
  | 'catch_all/high'
  | 'complained'

type Row = {
  /** The first part of the sentence. */
  readonly because: string
  /** The second part, where the advice of the action does not fit. */
  readonly advice: Partial<Readonly<Record<Action, string>>>
} & Readonly<Record<ActionPolicy, Action>>

/** The second part of the sentence. */
const ADVICE: Readonly<Record<Action, string>> = {
  send: 'send',
  send_with_care: 'send in small batches and watch the bounces',
  retry_later: 'verify it again later',
  suppress: 'do not send',
}

type Choice = readonly [strict: Action, balanced: Action, lenient: Action]

const row = (
  because: string,
  [strict, balanced, lenient]: Choice,
  advice: Row['advice'] = {},
): Row => ({ because, advice, strict, balanced, lenient })

const SEND: Choice = ['send', 'send', 'send']
const RETRY: Choice = ['retry_later', 'retry_later', 'retry_later']
const SUPPRESS: Choice = ['suppress', 'suppress', 'suppress']
/** A mailbox that could not be confirmed. */
const UNCONFIRMED: Choice = ['suppress', 'send_with_care', 'send_with_care']

const ASK = { send_with_care: 'ask the person to confirm it before you send' }

/**
 * The actions under the policies `strict`, `balanced` and `lenient`. No row is more permissive under
 * a stricter policy, and a verdict that is unknown through trouble of the verifier, the DNS or a
 * mail server is never suppressed; the tests check both.
 */
export const ACTION_ROWS: Readonly<Record<ActionCase, Row>> = {
  complained: row('The recipient reported earlier mail as spam', SUPPRESS),

  accepted_email: row('The mail server accepts mail for this address', SEND),
  role_account: row(
    'The address belongs to a function, not to a person',
    ['suppress', 'send_with_care', 'send'],
    { send_with_care: 'send only what it asked for' },
  ),
  possible_typo: row(
    'The domain looks like a misspelling of a well-known one',
    ['suppress', 'send_with_care', 'send_with_care'],
    ASK,
  ),
  'possible_typo/high': row(
    'The domain is a misspelling that accepts mail for every name',
    SUPPRESS,
  ),
  catch_all: row('The domain accepts mail for every name, which confirms no mailbox', UNCONFIRMED),
  'catch_all/low': row('Earlier mail to this address or its catch-all domain arrived', SEND),
  'catch_all/high': row(
    'The domain accepts mail for every name, and bounces or other signals speak against it',
    ['suppress', 'suppress', 'send_with_care'],
  ),
  low_deliverability: row(
    'The mail server accepts mail for this address, but did not confirm the mailbox',
    UNCONFIRMED,
  ),
  low_quality: row('The address looks made up', ['suppress', 'send_with_care', 'send'], ASK),
  disposable_email: row(
    'The address belongs to a disposable email service',
    ['suppress', 'suppress', 'send_with_care'],
    { send_with_care: 'send soon, because it expires' },
  ),
  mailbox_full: row('The mailbox is full', ['suppress', 'retry_later', 'retry_later'], {
    retry_later: 'verify it again in a few days',
  }),
  spam_trap: row('The address is on a list of spam traps', SUPPRESS),
  blocklisted: row('The address is on your blocklist', SUPPRESS),

  mailbox_disabled: row('The mailbox is disabled', SUPPRESS),
  rejected_email: row('The mailbox does not exist', SUPPRESS),
  invalid_email: row('The text is not an email address', SUPPRESS),
  invalid_domain: row('The domain does not exist', SUPPRESS),
  no_mx_record: row('The domain has no mail server', SUPPRESS),
  does_not_accept_mail: row('The domain declares that it accepts no mail', SUPPRESS),

  dns_error: row('The DNS lookup failed, which says nothing about the mailbox', RETRY),
  no_connect: row('No mail server was reached, which says nothing about the mailbox', RETRY),
  timeout: row('The mail server did not answer in time', RETRY),
  unavailable_smtp: row('The mail server is temporarily unavailable', RETRY),
  invalid_smtp: row('The mail server sent an invalid reply', RETRY),
  greylisted: row('The mail server asks unknown senders to retry', RETRY),
  probe_blocked: row('The mail server blocked the verifier, not the address', RETRY),
  smtp_skipped: row('The mail server was not contacted', RETRY),
  unexpected_error: row('The verification failed with an internal error', RETRY),
  external_deliverable: row(
    'Another service found the address deliverable, and ev has not tested it',
    ['retry_later', 'send_with_care', 'send'],
    { retry_later: 'verify it' },
  ),
  external_risky: row(
    'Another service found the address risky, and ev has not tested it',
    UNCONFIRMED,
  ),
  external_do_not_mail: row('Another service advises against mail to the address', SUPPRESS),
  external_undeliverable: row('Another service found the address undeliverable', SUPPRESS),
  external_unknown: row('Another service could not check the address', RETRY, {
    retry_later: 'verify it',
  }),
  no_address: row('The row has no address', SUPPRESS, { suppress: 'there is nothing to send to' }),
}

/** Returns the case of a verdict by the reason and its risk. */
export const toCase = ({ reason, risk }: Pick<Verdict, 'reason' | 'risk'>): ActionCase => {
  if (reason === 'catch_all' && (risk === 'low' || risk === 'high')) return `catch_all/${risk}`
  return reason === 'possible_typo' && risk === 'high' ? 'possible_typo/high' : reason
}

/** Returns what to do in a case. */
export const decideCase = (which: ActionCase, policy: ActionPolicy): Decision =>
  DECISIONS[policy][which]

function buildDecision({ because, advice, ...actions }: Row, policy: ActionPolicy): Decision {
  const action = actions[policy]
  return { action, sentence: `${because}, so ${advice[action] ?? ADVICE[action]}.` }
}

/** The decisions of all cases, built once: a list asks for one per row. */
const DECISIONS = Object.fromEntries(
  ACTION_POLICIES.map(policy => [
    policy,
    Object.fromEntries(
      Object.entries(ACTION_ROWS).map(([which, one]) => [which, buildDecision(one, policy)]),
    ),
  ]),
) as Readonly<Record<ActionPolicy, Readonly<Record<ActionCase, Decision>>>>

/** Returns the case of a result. */
export const getActionCase = ({
  verdict,
  evidence,
}: Pick<Result, 'verdict' | 'evidence'>): ActionCase =>
  evidence.feedback?.kind === 'complained' ? 'complained' : toCase(verdict)

/** Returns what to do with an address. A pure function, also of results that are stored. */
export const decide = (
  result: Pick<Result, 'verdict' | 'evidence'>,
  policy: ActionPolicy,
): Decision => decideCase(getActionCase(result), policy)

/** Returns what to do by the verdict alone, as for a visitor, who must not learn of complaints. */
export const decideVerdict = (
  verdict: Pick<Verdict, 'reason' | 'risk'>,
  policy: ActionPolicy,
): Decision => decideCase(toCase(verdict), policy)

/** Returns the classes that addresses with one of these actions can have. */
export function listClasses(actions: readonly Action[], policy: ActionPolicy): Class[] {
  const cases = Object.keys(ACTION_ROWS) as ActionCase[]
  const classes = cases
    .filter(which => actions.includes(decideCase(which, policy).action))
    .flatMap(toClasses)
  return CLASSES.filter(one => classes.includes(one))
}

function toClasses(which: ActionCase): readonly Class[] {
  if (which === 'complained') return CLASSES
  const [reason, risk] = which.split('/') as [Reason, Risk?]
  const { valid, risk: usualRisk } = VERDICT_BY_REASON[reason]
  return [toClass({ valid, risk: risk ?? usualRisk })]
}
