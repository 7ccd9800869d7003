
import type { Rule } from './rule.ts'

/** One mail server. */
export type HostPlan = {
  /** For people. */
  comment?: string
  behavior: BehaviorName
  /** Addresses, IPv4 or IPv6; those that are not of the loopback are only told by DNS. None given: one of 127.0.0.0/8 is allotted. */
  ip?: string | readonly string[]
  /** Who lives there: local parts or whole addresses, `*` for any run of characters. Default: those of the scenario, else `user*`. */
  mailboxes?: readonly string[]
  /** Asked before the rules of the behavior. */
  rules?: readonly Rule[]
  /** EHLO keywords instead of the usual ones; for STARTTLS see below. */
  extensions?: readonly string[]
  /** Whether STARTTLS is offered: `needs-starttls` does, the others do not. */
  starttls?: boolean
  /** How long `greylist` keeps a recipient waiting, and what `temporary` says of its trouble. */
  seconds?: number
  /** Pause before each reply (`slow`) or byte (`drip`). */
  ms?: number
  /** Recipients after which `throttles` says 421. */
  max?: number
  /** Spoken by the library of that name instead of by this one: an independent judge of our client. Greets after 100 ms. */
  engine?: 'smtp-server'
}


/** What a mail server is like: all that sets it apart from a plain one that takes everything. */
export type Behavior = {
  rules?: readonly Rule[]
  /** EHLO keywords instead of the usual ones. */
  extensions?: readonly string[]
  /** Whether STARTTLS is offered. */
  starttls?: boolean
  /** Whether a command sent before the reply to the last one ends the session, where PIPELINING is not offered. */
  strict?: boolean
  /** Pause before each reply. */
  replyMs?: number
  /** Pause before each single byte. */
  dripMs?: number
  /** Connections are refused (`refused`), or neither refused nor taken, as behind a firewall (`dropped`). */
  door?: 'refused' | 'dropped'
}

/** Tempers by the word for them. Most know their mailboxes (`polite`) and have one oddity. */
export const BEHAVIORS = {
  polite: plan => ({ rules: mailboxes(plan) }),
  'catch-all': () => ({}),
  'rejects-all': () => ({ rules: [{ on: 'RCPT', reply: UNKNOWN }] }),
  greylist: plan => ({ rules: [greylisted(plan.seconds ?? 4), ...mailboxes(plan)] }),
  'blocks-us': () => ({ rules: [{ on: 'CONNECT', reply: BLOCKED }] }),
  'blocks-at-rcpt': () => ({ rules: [{ on: 'RCPT', reply: BLOCKED }] }),
  'sender-refused': () => ({ rules: [{ on: 'MAIL', reply: BAD_SENDER }] }),
  temporary: plan => ({ rules: [{ on: 'RCPT', reply: lookupFailed(plan.seconds) }] }),
  full: plan => ({ rules: everyone(plan, FULL) }),
  disabled: plan => ({ rules: everyone(plan, DISABLED) }),
  'needs-starttls': plan => ({
    starttls: true,
    rules: [{ on: 'MAIL', secure: false, reply: TLS_FIRST }, ...mailboxes(plan)],
  }),
  'one-recipient': plan => ({
    rules: [{ on: 'RCPT', recipientFrom: 2, reply: TOO_MANY }, ...mailboxes(plan)],
  }),
  throttles: plan => ({
    rules: [{ on: 'RCPT', askedAbove: plan.max ?? 10, reply: SLOW_DOWN }, ...mailboxes(plan)],
  }),
  /** Hangs up after telling of an unknown user. */
  closes: plan => ({ rules: [...mailboxes(plan, { end: 'close' })] }),
  /** Hangs up in place of an answer. */
  'hangs-up': () => ({ rules: [{ on: 'RCPT', end: 'close' }] }),
  resets: () => ({ rules: [{ on: 'RCPT', end: 'reset' }] }),
  slow: plan => ({ replyMs: plan.ms ?? 200, rules: mailboxes(plan) }),
  drip: plan => ({ dripMs: plan.ms ?? 20, rules: mailboxes(plan) }),
  dead: () => ({ door: 'refused' }),
  drops: () => ({ door: 'dropped' }),
  silent: () => ({ rules: [{ on: 'CONNECT', end: 'hang' }] }),
  'helo-only': plan => ({
    rules: [{ on: 'EHLO', reply: '500 Command unrecognized' }, ...mailboxes(plan)],
  }),
  'no-pipelining': plan => ({
    extensions: without('PIPELINING'),
    strict: true,
    rules: mailboxes(plan),
  }),
  'no-smtputf8': plan => ({ extensions: without('SMTPUTF8'), rules: mailboxes(plan) }),
  /** Says all it will ever say before it was asked. */
  early: () => ({ rules: [{ on: 'CONNECT', raw: EARLY, end: 'hang' }] }),
  garbage: () => ({ rules: [{ on: 'CONNECT', raw: GARBAGE, end: 'hang' }] }),
  endless: () => ({ rules: [{ on: 'EHLO', endless: '250-and one more' }] }),
} satisfies Record<string, (plan: HostPlan) => Behavior>

export type BehaviorName = keyof typeof BEHAVIORS

/** What a mail server of today offers. */
export const EXTENSIONS = [
  'PIPELINING',
  'SIZE 35882577',
  'ENHANCEDSTATUSCODES',
  '8BITMIME',
  'SMTPUTF8',
] as const

const without = (name: string) => EXTENSIONS.filter(extension => extension !== name)

const UNKNOWN =
  '550 5.1.1 <{to}>: Recipient address rejected: User unknown in local recipient table'
const BLOCKED =
  '554 5.7.1 Service unavailable; Client host [{client}] blocked using zen.blocklist.example; https://blocklist.example/query/{client}'
const BAD_SENDER = '550 5.1.8 <{from}>: Sender address rejected: Domain not found'
const FULL = '552 5.2.2 <{to}>: Recipient address rejected: mailbox full, quota exceeded'
const FULL_FOR_NOW = '452 4.2.2 <{to}>: mailbox full, over quota'
const DISABLED =
  '550 5.2.1 <{to}>: Recipient address rejected: this mailbox is disabled and takes no mail'
const MOVED = '551 5.1.6 <{to}>: user has moved, please try another address'
const MEMBERS =
  '550 5.7.133 <{to}>: sender not authenticated for group, only members may write here'
const TLS_FIRST = '530 5.7.0 Must issue a STARTTLS command first'
const TOO_MANY = '452 4.5.3 <{to}>: Recipient address rejected: Too many recipients'
const SLOW_DOWN = '421 4.7.0 {host} Error: too many recipients from {client}, slow down'
const EARLY =
  '220 mx.early.test ESMTP\r\n250-mx.early.test\r\n250 PIPELINING\r\n250 2.1.0 Ok\r\n250 2.1.5 Ok\r\n250 2.1.5 Ok\r\n'
const GARBAGE =
  '\u0000\u00ff\u001b[31mHTTP/1.1 400 Bad Request\r\n25\u0000 what\r\n\r\n2500 ok\r\n=cmd|x\r\n'

const lookupFailed = (seconds: number | undefined) =>
  `451 4.3.0 <{to}>: Temporary lookup failure${seconds === undefined ? '' : `, try again in ${seconds} seconds`}`

const greylisted = (seconds: number): Rule => ({
  on: 'RCPT',
  withinMs: seconds * 1000,
  reply: `450 4.2.0 <{to}>: Recipient address rejected: Greylisted, try again in ${seconds} seconds`,
})

/** Who lives at a host: first those whose local part begins with a word for their misfortune, then the plain ones; nobody else. */
function mailboxes(plan: HostPlan, afterUnknown: Pick<Rule, 'end'> = {}): Rule[] {
  return [
    { on: 'RCPT', to: 'full.*', reply: FULL },
    { on: 'RCPT', to: 'full-for-now.*', reply: FULL_FOR_NOW },
    { on: 'RCPT', to: 'disabled.*', reply: DISABLED },
    { on: 'RCPT', to: 'moved.*', reply: MOVED },
    { on: 'RCPT', to: 'members.*', reply: MEMBERS },
    ...everyone(plan, '250 2.1.5 Ok', afterUnknown),
  ]
}

const everyone = (plan: HostPlan, reply: string, afterUnknown: Pick<Rule, 'end'> = {}): Rule[] => [
  { on: 'RCPT', to: plan.mailboxes ?? ['user*'], reply },
  { on: 'RCPT', reply: UNKNOWN, ...afterUnknown },
]
