import { readFileSync } from 'node:fs'
import { isIP, isIPv4, isIPv6 } from 'node:net'
import { fileURLToPath } from 'node:url'
import { DAY } from '../platform/clock.ts'
import { EvError, errorMessage } from '../platform/error.ts'
import { sanitizeText } from '../platform/text.ts'
import { isLoopback } from './loopback-network.ts'
import { BEHAVIORS, type Behavior, type HostPlan } from './smtp-host/behaviors.ts'
import { type Rule, VERBS } from './smtp-host/rule.ts'

/** Simulated domains, mail servers and latency. Plain data, so that a JSON file can contain it. */
export type Scenario = {
  domains: Record<string, DomainPlan>
  hosts: Record<string, HostPlan>
  /** Not interpreted. */
  comment?: string
  /** Default mailboxes of hosts without their own; see `HostPlan`. */
  mailboxes?: readonly string[]
  /** Port of all mail servers; 0 or undefined selects a free one. */
  smtpPort?: number
  /** Port of the DNS server, UDP and TCP; 0 or undefined selects a free one. */
  dnsPort?: number
  /** Round-trip time to every mail server and to the DNS server. */
  roundTripMs?: number
  /** Whether MX answers include the addresses of the exchangers in the additional section. */
  dnsAdditional?: boolean
}

/** DNS records of a domain. Names that the scenario does not contain do not exist. */
export type DomainPlan = {
  /** Not interpreted. */
  comment?: string
  /** MX records; `null` is a null MX (RFC 7505); `none` (the default) means no MX records. */
  mx?: readonly (readonly [preference: number, host: string])[] | 'null' | 'none'
  /** A records of the domain. A domain that is also in `hosts` has the addresses of the host. */
  a?: readonly string[]
  aaaa?: readonly string[]
  /** TXT records, such as SPF. */
  txt?: readonly string[]
  /** PTR record, for a domain such as `9.0.0.127.in-addr.arpa`. */
  ptr?: string
  /** Error instead of an answer. `truncated` answers only over TCP. */
  fault?: DnsTrouble
}

export type DnsTrouble = 'nxdomain' | 'servfail' | 'refused' | 'silent' | 'garbage' | 'truncated'

export const EXAMPLE_FILE = fileURLToPath(new URL('./example.json', import.meta.url))

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    throw new EvError('no_input', `Cannot read the scenario ${file}: ${errorMessage(cause)}.`, {
      cause,
    })
  }
}

function parse(file: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    const sentence = `The scenario ${file} is not valid JSON: ${sanitizeText(errorMessage(cause))}.`
    throw new EvError('bad_input', sentence, { cause })
  }
}

/** Reads and validates a scenario from a JSON file; throws `no_input` or `bad_input`. */
export function readScenario(file: string): Scenario {
  return checkScenario(parse(file, readText(file)))
}

/** Validates a value of the scenario; throws Mismatch. `path` is the path of the value. */
type Shape = (value: unknown, path: string) => void

/** A validation error; `message` names the path, the value and what is allowed. */
class Mismatch extends Error {}

/** An object with these keys, optional unless `required`. */
const object =
  <T>(
    shapes: { readonly [K in keyof T]-?: Shape },
    required: readonly (keyof T & string)[] = [],
  ): Shape =>
  (value, path) => {
    const entries = entriesOf(value, path)
    const known = new Map(Object.entries<Shape>(shapes))
    for (const [key, one] of entries) {
      const shape = known.get(key)
      if (shape === undefined) {
        throw new Mismatch(`${path} has "${key}"; it takes ${[...known.keys()].join(', ')}.`)
      }
      shape(one, `${path}.${key}`)
    }
    const missing = required.find(key => !entries.some(([present]) => present === key))
    if (missing !== undefined) throw new Mismatch(`${path} has no "${missing}", which is required.`)
  }

/** An object with arbitrary keys that match `name`. */
const record =
  (name: RegExp, expected: string, shape: Shape): Shape =>
  (value, path) => {
    for (const [key, one] of entriesOf(value, path)) {
      if (!name.test(key)) throw new Mismatch(`${path} has "${key}"; it takes ${expected}.`)
      shape(one, `${path}[${JSON.stringify(key)}]`)
    }
  }

/** A list of values of this shape. */
const list =
  (shape: Shape, expected: string): Shape =>
  (value, path) => {
    if (!Array.isArray(value)) throw mismatch(value, path, expected)
    for (const [index, one] of value.entries()) shape(one, `${path}[${index}]`)
  }

/** A single value or a list of values. */
const oneOrMore =
  (shape: Shape): Shape =>
  (value, path) =>
    (Array.isArray(value) ? list(shape, '') : shape)(value, path)

/** A string that passes the test. */
const text = (expected = 'a string', fits: (value: string) => boolean = () => true): Shape =>
  only(expected, value => typeof value === 'string' && fits(value))

const oneOf = (values: readonly string[]): Shape =>
  only(`one of ${values.join(', ')}`, value => typeof value === 'string' && values.includes(value))

const integer = (from: number, to: number): Shape =>
  only(
    `a whole number from ${from} to ${to}`,
    value => Number.isInteger(value) && Number(value) >= from && Number(value) <= to,
  )

const number = (from: number, to: number): Shape =>
  only(
    `a number from ${from} to ${to}`,
    value => typeof value === 'number' && value >= from && value <= to,
  )

const flag: Shape = only('true or false', value => typeof value === 'boolean')

/** A value that passes the test. */
function only(expected: string, holds: (value: unknown) => boolean): Shape {
  return (value, path) => {
    if (!holds(value)) throw mismatch(value, path, expected)
  }
}

function entriesOf(value: unknown, path: string): [string, unknown][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw mismatch(value, path, 'an object: {…}')
  }
  return Object.entries(value)
}

const mismatch = (value: unknown, path: string, expected: string) =>
  new Mismatch(`${path} is ${shown(value)}; it takes ${expected}.`)

/** Formats a value, truncated. */
function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value)
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text
}

/** Enough to find the value in the file. */
const SHOWN_MAX = 80

/**
 * Validates a scenario; throws `bad_input` with the path of the mistake and what is allowed there.
 */
export function checkScenario(input: unknown): Scenario {
  try {
    SCENARIO(input, 'scenario')
    const scenario = input as Scenario
    for (const [name, plan] of Object.entries(scenario.hosts)) checkEngine(name, plan)
    checkAddresses(scenario.hosts)
    return scenario
  } catch (error) {
    if (!(error instanceof Mismatch)) throw error
    throw new EvError('bad_input', sanitizeText(error.message, SENTENCE_MAX))
  }
}

/** Enough to list all keys or behaviors. */
const SENTENCE_MAX = 1_000

function checkEngine(name: string, plan: HostPlan): void {
  const behavior: Behavior = BEHAVIORS[plan.behavior](plan)
  const rules = [...(plan.rules ?? []), ...(behavior.rules ?? [])]
  const tricks = behavior.dripMs !== undefined || behavior.strict === true || rules.some(isTrick)
  if (plan.engine !== undefined && tricks) {
    throw new Mismatch(
      `scenario.hosts[${JSON.stringify(name)}] has "engine": "smtp-server", which only gives replies; remove "engine", or the rules and behavior that do more than reply.`,
    )
  }
}

const isTrick = (rule: Rule) =>
  rule.reply === undefined || rule.end !== undefined || !REJECTABLE.includes(rule.on)

/** Commands that the library lets us reject. */
const REJECTABLE: readonly string[] = ['CONNECT', 'MAIL', 'RCPT']

/** Rejects two servers at one address, unless both are unreachable in the same way. */
function checkAddresses(hosts: Readonly<Record<string, HostPlan>>): void {
  const owners = new Map<string, { name: string; unreachable: Behavior['unreachable'] }>()
  for (const [name, plan] of Object.entries(hosts)) {
    const { unreachable }: Behavior = BEHAVIORS[plan.behavior](plan)
    for (const ip of [plan.ip ?? []].flat().filter(isLoopback)) {
      const owner = owners.get(ip)
      const isShareable = unreachable !== undefined && unreachable === owner?.unreachable
      if (owner !== undefined && !isShareable) {
        throw new Mismatch(
          `scenario.hosts gives ${ip} to ${owner.name} and to ${name}; each needs its own address.`,
        )
      }
      owners.set(ip, { name, unreachable })
    }
  }
}

/** Longer pauses are mistakes; a timer holds at most 24.8 days. */
const pauseMs = number(0, DAY)
const nth = integer(1, 1_000_000_000)
const port = integer(0, 65_535)
const NAME = /^[^\s@]{1,253}$/
const hostName = text('a name such as mx.example.test', value => NAME.test(value))
const pattern = text('an address or a local part, * for any run of characters')
const patterns = list(pattern, 'a list such as ["ann", "bob.*"]')
const client = text('IP addresses such as 127.0.0.2 or 127.0.0.*', value =>
  /^[\da-f.:*]+$/i.test(value),
)
const ips = (what: string, holds: (value: string) => boolean) =>
  list(text(what, holds), `a list such as ["${what.split(' ').at(-1)}"]`)
const texts = list(text(), 'a list of strings')
const keywords = list(
  text('an EHLO keyword such as SIZE 1000', value => /^[!-~]+( [!-~]+)*$/.test(value)),
  'a list such as ["PIPELINING", "SIZE 1000"]',
)
/** An SMTP reply (RFC 5321 §4.2): three digits, the first from 2 to 5. Other bytes need `raw`. */
const reply = text(
  'a reply such as "550 5.1.1 No such user", with "\\n" between lines (use "raw" for other bytes)',
  value => value.split('\n').every(line => /^[2-5]\d\d(?:[ -][^\r]*)?$/.test(line)),
)

const RULE = object<Rule>(
  {
    comment: text(),
    on: oneOf(VERBS),
    to: oneOrMore(pattern),
    from: oneOrMore(pattern),
    client: oneOrMore(client),
    timesMax: nth,
    withinMs: pauseMs,
    recipientFrom: nth,
    askedAbove: integer(0, 1_000_000_000),
    connectionFrom: nth,
    connectionMax: nth,
    sessionsAbove: integer(0, 1_000_000_000),
    secure: flag,
    reply,
    raw: text('characters up to \\u00ff, one for each byte', value => /^[\0-\xff]*$/.test(value)),
    endless: text('one line', value => !/[\r\n]/.test(value)),
    afterMs: pauseMs,
    end: oneOf(['close', 'reset', 'hang', 'tls-alert']),
  },
  ['on'],
)

const HOST = object<HostPlan>(
  {
    comment: text(),
    behavior: oneOf(Object.keys(BEHAVIORS)),
    ip: oneOrMore(text('an IP address such as 127.0.0.25', value => isIP(value) !== 0)),
    mailboxes: patterns,
    rules: list(rule, 'a list of rules: [{"on": …}]'),
    extensions: keywords,
    starttls: flag,
    seconds: number(0, DAY / 1_000),
    ms: pauseMs,
    max: integer(0, 1_000_000_000),
    engine: oneOf(['smtp-server']),
  },
  ['behavior'],
)

const TROUBLES: Readonly<Record<DnsTrouble, true>> = {
  nxdomain: true,
  servfail: true,
  refused: true,
  silent: true,
  garbage: true,
  truncated: true,
}

const DOMAIN = object<DomainPlan>({
  comment: text(),
  mx: exchangers,
  a: ips('IPv4 addresses such as 192.0.2.1', isIPv4),
  aaaa: ips('IPv6 addresses such as 2001:db8::1', isIPv6),
  txt: texts,
  ptr: hostName,
  fault: oneOf(Object.keys(TROUBLES)),
})

/** The shape of a scenario. */
const SCENARIO = object<Scenario>(
  {
    comment: text(),
    domains: record(NAME, 'names of domains such as example.test', DOMAIN),
    hosts: record(NAME, 'names of mail servers such as mx.example.test', HOST),
    mailboxes: patterns,
    smtpPort: port,
    dnsPort: port,
    roundTripMs: number(0, 60_000),
    dnsAdditional: flag,
  },
  ['domains', 'hosts'],
)

/** Rejects rules without an effect, which are most likely incomplete. */
function rule(value: unknown, path: string): void {
  RULE(value, path)
  const { reply, raw, endless, end } = value as Rule
  if ([reply, raw, endless, end].every(effect => effect === undefined)) {
    throw new Mismatch(
      `${path} does nothing; it takes reply, raw, endless or end ("end": "hang" stops replying).`,
    )
  }
}

function exchangers(value: unknown, path: string): void {
  if (value === 'null' || value === 'none') return
  const expected = '"null", "none" or a list such as [[10, "mx.example.test"]]'
  const pair = only(
    'a preference from 0 to 65535 and a name, such as [10, "mx.example.test"]',
    one => Array.isArray(one) && one.length === 2,
  )
  list((one, at) => {
    pair(one, at)
    const [preference, host] = one as unknown[]
    integer(0, 65_535)(preference, `${at}[0]`)
    hostName(host, `${at}[1]`)
  }, expected)(value, path)
}
