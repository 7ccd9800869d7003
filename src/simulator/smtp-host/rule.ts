

/** Who calls. */
export type Caller = {
  readonly client: string
  /** Number of the connection at this host, from 1. */
  readonly connection: number
  /** The server has said its last word: for it the session is over, though the client has yet to hear it. */
  over(): void
  /** The client asks about a recipient of this domain. */
  asks(domain: string): void
}

/** Something that can be ended at once. */
export type Ending = { destroy(): void }

/** A moment of a conversation at which a server says something; `ANY` is each of the others but CONNECT. */
export type Verb = (typeof VERBS)[number]

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

/** When a client does `on` and all conditions hold, this happens. Rules are asked in order; the first that holds decides. */
export type Rule = {
  on: Verb
  /** For people. */
  comment?: string
  // Conditions.
  /** The recipient: local parts or whole addresses, `*` for any run of characters. */
  to?: string | readonly string[]
  /** The sender, alike. The empty sender is the empty pattern. */
  from?: string | readonly string[]
  /** Holds for the first n times that this client asks for this recipient from this sender. */
  timesMax?: number
  /** Holds until so long after this client asked first for this recipient from this sender. */
  withinMs?: number
  /** Holds from the nth recipient of a transaction on, counted from 1. */
  recipientFrom?: number
  /** Holds once more than n recipients were asked in this connection. */
  askedAbove?: number
  /** Holds for the nth connection to this host and later ones, counted from 1. */
  connectionFrom?: number
  /** Holds up to the nth connection to this host. */
  connectionMax?: number
  /** Holds while this host has more than n sessions. */
  sessionsAbove?: number
  /** Whether the conversation is encrypted. */
  secure?: boolean
  /** The client: IP addresses it connects from, `*` for any run of characters. */
  client?: string | readonly string[]
  // What happens.
  /** A reply, `\n` between its lines; `{to}`, `{from}`, `{host}` and `{client}` are filled in. None: nothing is said. */
  reply?: string
  /** Bytes instead of a reply, one for each character, sent as they are. They grant the command where they begin with 2. */
  raw?: string
  /** A line said again and again, for ever. */
  endless?: string
  /** Pause before it. */
  afterMs?: number
  /** And then: end the connection, break it (RST), never say anything again, or let the TLS handshake fail. */
  end?: 'close' | 'reset' | 'hang' | 'tls-alert'
}

/** What rules look at. */
export type Moment = {
  readonly host: string
  readonly client: string
  readonly from: string
  readonly to: string
  readonly secure: boolean
  /** Recipients asked in this transaction, with this one. */
  readonly inTransaction: number
  /** Recipients asked in this connection, with this one. */
  readonly inConnection: number
  /** Number of this connection at this host, from 1. */
  readonly connection: number
  readonly sessions: number
  /** How often, and how long ago first, this recipient was asked for; only kept where a rule wants it. */
  readonly times: number
  readonly sinceMs: number
}

/** Finds the first rule that holds. */
export type RuleSet = {
  find(verb: string, moment: Moment): Rule | undefined
  /** Whether some rule asks how often or how long ago. */
  readonly remembers: boolean
}

/** Makes a list of rules quick to ask: a benchmark asks 10,000 times in a fraction of a second. */
export function createRuleSet(rules: readonly Rule[]): RuleSet {
  const pages = new Map<string, { rule: Rule; holds: (moment: Moment) => boolean }[]>()
  for (const rule of rules) {
    for (const verb of rule.on === 'ANY' ? COMMANDS : [rule.on]) {
      pages.set(verb, [...(pages.get(verb) ?? []), { rule, holds: condition(rule) }])
    }
  }
  return {
    find(verb, moment) {
      const page = pages.get(verb) ?? (verb === 'CONNECT' ? undefined : pages.get('*'))
      return page?.find(entry => entry.holds(moment))?.rule
    },
    remembers: rules.some(rule => rule.timesMax !== undefined || rule.withinMs !== undefined),
  }
}

/** `*` stands for all verbs that are no verbs of a verifier. */
const COMMANDS = ['EHLO', 'HELO', 'STARTTLS', 'MAIL', 'RCPT', 'RSET', 'NOOP', 'QUIT', '*']

function condition(rule: Rule): (moment: Moment) => boolean {
  const tests = [
    rule.client !== undefined && matching('client', textMatcher(listOf(rule.client))),
    rule.to !== undefined && matching('to', addressMatcher(listOf(rule.to))),
    rule.from !== undefined && matching('from', addressMatcher(listOf(rule.from))),
    ...NUMBERS.map(([name, holds]) => {
      const limit = rule[name]
      return limit !== undefined && ((moment: Moment) => holds(moment, limit))
    }),
    rule.secure !== undefined && ((moment: Moment) => moment.secure === rule.secure),
  ].filter(test => test !== false)
  return moment => tests.every(test => test(moment))
}

type Counted =
  | 'timesMax'
  | 'withinMs'
  | 'recipientFrom'
  | 'askedAbove'
  | 'connectionFrom'
  | 'connectionMax'
  | 'sessionsAbove'

const NUMBERS: readonly [Counted, (moment: Moment, limit: number) => boolean][] = [
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

/** Whether an address fits one of the patterns: exact ones by look-up, those with `*` by one regular expression. */
export function addressMatcher(patterns: readonly string[]): (address: string) => boolean {
  if (patterns.includes('*')) return () => true
  // A pattern without `@` is one of local parts.
  const isWild = (pattern: string) => pattern.includes('*')
  const exact = new Set(patterns.filter(pattern => !isWild(pattern)).map(lowered))
  const fits = textMatcher(
    patterns.filter(isWild).map(pattern => (pattern.includes('@') ? pattern : `${pattern}@*`)),
  )
  return address => {
    // The quotes of a quoted local part are no part of the mailbox's name.
    const whole = lowered(address).replace(/^"(.*)"@/, '$1@')
    if (exact.has(whole) || exact.has(whole.slice(0, Math.max(0, whole.lastIndexOf('@')))))
      return true
    return fits(whole)
  }
}

/** Whether a text in small letters fits one of the patterns. */
function textMatcher(patterns: readonly string[]): (text: string) => boolean {
  if (patterns.length === 0) return () => false
  const wild = patterns.map(pattern => wildcard(lowered(pattern)))
  const expression = new RegExp(`^(?:${wild.join('|')})$`, 'u')
  return text => expression.test(text)
}

const wildcard = (pattern: string) =>
  pattern.replace(/[.+?^${}()|[\]\\/]/g, '\\$&').replaceAll('*', '.*')

const lowered = (text: string) => text.toLowerCase()
