/** A client connection. */
export type Caller = {
  readonly client: string
  /** Number of the connection to this host, from 1. */
  readonly connection: number
  /** Ends the session for the counters, before the client receives the last reply. */
  end(): void
  /** Counts a RCPT for a domain. */
  addDomain(domain: string): void
}

/** A session that can be destroyed. */
export type DestroyableSession = { destroy(): void }

/** A point in a session at which the server replies; `ANY` matches all commands but not CONNECT. */
type Verb = (typeof VERBS)[number]

export const VERBS = [
  'CONNECT',
  'EHLO',
  'HELO',
  'STARTTLS',
  'MAIL',
  'RCPT',
  'RSET',
  'NOOP',
  'QUIT',
  'ANY',
] as const

/**
 * The reaction to `on` if all conditions match. Rules are checked in order; the first match
 * applies.
 */
export type Rule = {
  on: Verb
  /** Not interpreted. */
  comment?: string
  /** Condition: the recipient, as local parts or full addresses; `*` matches any characters. */
  to?: string | readonly string[]
  /** Condition: the sender, as `to`; the empty pattern matches the null sender. */
  from?: string | readonly string[]
  /** Matches the first n attempts of the same client, sender and recipient. */
  timesMax?: number
  /** Matches within this time after the first attempt of the same client, sender and recipient. */
  withinMs?: number
  /** Matches from the nth recipient of a transaction on, counted from 1. */
  recipientFrom?: number
  /** Matches after more than n recipients in this connection. */
  askedAbove?: number
  /** Matches the nth and later connections to this host, counted from 1. */
  connectionFrom?: number
  /** Matches up to the nth connection to this host. */
  connectionMax?: number
  /** Matches while this host has more than n sessions. */
  sessionsAbove?: number
  /** Condition: whether the session is encrypted. */
  secure?: boolean
  /** Condition: client IP addresses; `*` matches any characters. */
  client?: string | readonly string[]
  /**
   * Effect: the reply, with `\n` between lines and the placeholders `{to}`, `{from}`, `{host}` and
   * `{client}`. Undefined sends nothing.
   */
  reply?: string
  /**
   * Effect: raw bytes instead of a reply, one per character. The command succeeds if they start
   * with 2.
   */
  raw?: string
  /** Effect: a line that is repeated endlessly. */
  endless?: string
  /** Delay before the effect. */
  afterMs?: number
  /** Then closes the connection, resets it (RST), stops replying, or fails the TLS handshake. */
  end?: 'close' | 'reset' | 'hang' | 'tls-alert'
}

/** The state that rules are matched against. */
export type Moment = {
  readonly host: string
  readonly client: string
  readonly from: string
  readonly to: string
  readonly secure: boolean
  /** Recipients of this transaction, including the current one. */
  readonly inTransaction: number
  /** Recipients of this connection, including the current one. */
  readonly inConnection: number
  /** Number of this connection to this host, from 1. */
  readonly connection: number
  readonly sessions: number
  /** Attempts for this recipient and time since the first; recorded only if a rule needs them. */
  readonly times: number
  readonly sinceMs: number
}

/** Finds the first matching rule. */
export type RuleSet = {
  find(verb: string, moment: Moment): Rule | undefined
  /** Whether a rule needs recorded attempts. */
  readonly needsAttempts: boolean
}

/** Indexes rules by verb: a benchmark looks up 10,000 in a fraction of a second. */
export function createRuleSet(rules: readonly Rule[]): RuleSet {
  const byVerb = new Map<string, { rule: Rule; matches: (moment: Moment) => boolean }[]>()
  for (const rule of rules) {
    for (const verb of rule.on === 'ANY' ? COMMANDS : [rule.on]) {
      byVerb.set(verb, [...(byVerb.get(verb) ?? []), { rule, matches: condition(rule) }])
    }
  }
  return {
    find(verb, moment) {
      const entries = byVerb.get(verb) ?? (verb === 'CONNECT' ? undefined : byVerb.get('*'))
      return entries?.find(entry => entry.matches(moment))?.rule
    },
    needsAttempts: rules.some(rule => rule.timesMax !== undefined || rule.withinMs !== undefined),
  }
}

/** `*` stands for all other verbs. */
const COMMANDS = ['EHLO', 'HELO', 'STARTTLS', 'MAIL', 'RCPT', 'RSET', 'NOOP', 'QUIT', '*']

function condition(rule: Rule): (moment: Moment) => boolean {
  const tests = [
    rule.client !== undefined && matching('client', textMatcher(listOf(rule.client))),
    rule.to !== undefined && matching('to', addressMatcher(listOf(rule.to))),
    rule.from !== undefined && matching('from', addressMatcher(listOf(rule.from))),
    ...LIMITS.map(([name, matches]) => {
      const limit = rule[name]
      return limit !== undefined && ((moment: Moment) => matches(moment, limit))
    }),
    rule.secure !== undefined && ((moment: Moment) => moment.secure === rule.secure),
  ].filter(test => test !== false)
  return moment => tests.every(test => test(moment))
}

type LimitName =
  | 'timesMax'
  | 'withinMs'
  | 'recipientFrom'
  | 'askedAbove'
  | 'connectionFrom'
  | 'connectionMax'
  | 'sessionsAbove'

const LIMITS: readonly [LimitName, (moment: Moment, limit: number) => boolean][] = [
  ['timesMax', (moment, limit) => moment.times <= limit],
  ['withinMs', (moment, limit) => moment.sinceMs < limit],
  ['recipientFrom', (moment, limit) => moment.inTransaction >= limit],
  ['askedAbove', (moment, limit) => moment.inConnection > limit],
  ['connectionFrom', (moment, limit) => moment.connection >= limit],
  ['connectionMax', (moment, limit) => moment.connection <= limit],
  ['sessionsAbove', (moment, limit) => moment.sessions > limit],
]

const matching = (side: 'to' | 'from' | 'client', fits: (text: string) => boolean) => {
  return (moment: Moment) => fits(moment[side])
}

const listOf = (patterns: string | readonly string[]) =>
  typeof patterns === 'string' ? [patterns] : patterns

/**
 * Matches an address against patterns: exact ones by lookup, wildcards by one regular expression.
 */
export function addressMatcher(patterns: readonly string[]): (address: string) => boolean {
  if (patterns.includes('*')) return () => true
  // A pattern without `@` matches local parts.
  const isWild = (pattern: string) => pattern.includes('*')
  const exact = new Set(patterns.filter(pattern => !isWild(pattern)).map(lowered))
  const fits = textMatcher(
    patterns.filter(isWild).map(pattern => (pattern.includes('@') ? pattern : `${pattern}@*`)),
  )
  return address => {
    // The quotes of a quoted local part are not part of the mailbox name.
    const plain = lowered(address).replace(/^"(.*)"@/, '$1@')
    if (exact.has(plain) || exact.has(plain.slice(0, Math.max(0, plain.lastIndexOf('@')))))
      return true
    return fits(plain)
  }
}

/** Matches a lower-case string against patterns. */
function textMatcher(patterns: readonly string[]): (text: string) => boolean {
  if (patterns.length === 0) return () => false
  const wild = patterns.map(pattern => wildcard(lowered(pattern)))
  const expression = new RegExp(`^(?:${wild.join('|')})$`, 'u')
  return text => expression.test(text)
}

const wildcard = (pattern: string) =>
  pattern.replace(/[.+?^${}()|[\]\\/]/g, '\\$&').replaceAll('*', '.*')

const lowered = (text: string) => text.toLowerCase()
