import type { Rule } from './rule.ts'

/** Configuration of a simulated mail server. */
export type HostPlan = {
  /** Not interpreted. */
  comment?: string
  behavior: BehaviorName
  /**
   * IPv4 or IPv6 addresses; defaults to an assigned address in 127.0.0.0/8. Addresses outside the
   * loopback range appear only in DNS.
   */
  ip?: string | readonly string[]
  /**
   * Mailboxes: local parts or full addresses, `*` matches any characters. Defaults to those of the
   * scenario, else `user*`.
   */
  mailboxes?: readonly string[]
  /** Checked before the rules of the behavior. */
  rules?: readonly Rule[]
  /** EHLO keywords instead of the default ones; for STARTTLS see below. */
  extensions?: readonly string[]
  /** Whether STARTTLS is offered; defaults to true only for `needs-starttls`. */
  starttls?: boolean
  /** Delay of `greylist`, and the retry time in the reply of `temporary`. */
  seconds?: number
  /** Pause before each reply (`slow`) or byte (`drip`). */
  ms?: number
  /** Number of recipients after which `throttles` replies 421. */
  max?: number
  /** Uses the library smtp-server, an independent implementation, which greets after 100 ms. */
  engine?: 'smtp-server'
}

/** Behavior of a mail server: its differences from a server that accepts everything. */
export type Behavior = {
  rules?: readonly Rule[]
  /** EHLO keywords instead of the default ones. */
  extensions?: readonly string[]
  /** Whether STARTTLS is offered. */
  starttls?: boolean
  /** Whether pipelining to a server without PIPELINING ends the session. */
  strict?: boolean
  /** Pause before each reply. */
  replyMs?: number
  /** Pause before each single byte. */
  dripMs?: number
  /** Connections are refused (`refused`) or time out, as behind a firewall (`dropped`). */
  unreachable?: 'refused' | 'dropped'
}

/** Behaviors by name. Most accept their mailboxes, as `polite` does, with one deviation. */
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
  /** Closes the connection after rejecting an unknown user. */
  closes: plan => ({ rules: [...mailboxes(plan, { end: 'close' })] }),
  /** Closes the connection instead of replying to RCPT. */
  'hangs-up': () => ({ rules: [{ on: 'RCPT', end: 'close' }] }),
  resets: () => ({ rules: [{ on: 'RCPT', end: 'reset' }] }),
  slow: plan => ({ replyMs: plan.ms ?? 200, rules: mailboxes(plan) }),
  drip: plan => ({ dripMs: plan.ms ?? 20, rules: mailboxes(plan) }),
  dead: () => ({ unreachable: 'refused' }),
  drops: () => ({ unreachable: 'dropped' }),
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
  /** Sends all its replies before the client sends a command. */
  early: () => ({ rules: [{ on: 'CONNECT', raw: EARLY, end: 'hang' }] }),
  garbage: () => ({ rules: [{ on: 'CONNECT', raw: GARBAGE, end: 'hang' }] }),
  endless: () => ({ rules: [{ on: 'EHLO', endless: '250-and one more' }] }),
} satisfies Record<string, (plan: HostPlan) => Behavior>

type BehaviorName = keyof typeof BEHAVIORS

/** EHLO keywords of a typical mail server. */
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

/**
 * Rules for the mailboxes: local parts with a special prefix, then the configured ones, then
 * unknown.
 */
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
