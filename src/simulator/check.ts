import { readFileSync } from 'node:fs'
import { errorMessage, EvError } from '../platform/error.ts'
import { type DnsTrouble, type DomainPlan, type Scenario } from './scenario.ts'
import { type HostPlan, BEHAVIORS, type Behavior } from './smtp-host/behaviors.ts'
import { isIP, isIPv4, isIPv6 } from 'node:net'
import { DAY } from '../platform/clock.ts'
import { sanitizeText } from '../platform/text.ts'
import { isLoopback } from './loopback/loopback-network.ts'
import { type Rule, VERBS } from './smtp-host/rule.ts'

export function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    throw new EvError('no_input', `Cannot read the scenario ${file}: ${errorMessage(cause)}.`, {
      cause,
    })
  }
}

export function parse(file: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    const sentence = `The scenario ${file} is no JSON: ${sanitizeText(errorMessage(cause))}.`
    throw new EvError('bad_input', sentence, { cause })
  }
}


/** Reads a scenario from a JSON file; throws `no_input` or `bad_input`. */
export function readScenario(file: string): Scenario {
  return checkScenario(parse(file, readText(file)))
}


/** Says where plain data that a person wrote is not as it must be; `place` is its path from the top. */
type Shape = (value: unknown, place: string) => void

/** A mistake in such data, in a sentence. */
class Mismatch extends Error {}

/** An object with these keys; all may be left out but those that are needed. */
const object =
  <T>(
    shapes: { readonly [K in keyof T]-?: Shape },
    needed: readonly (keyof T & string)[] = [],
  ): Shape =>
  (value, place) => {
    const entries = entriesOf(value, place)
    const known = new Map(Object.entries<Shape>(shapes))
    for (const [key, one] of entries) {
      const shape = known.get(key)
      if (shape === undefined) {
        throw new Mismatch(`${place} has "${key}"; it takes ${[...known.keys()].join(', ')}.`)
      }
      shape(one, `${place}.${key}`)
    }
    const missing = needed.find(key => !entries.some(([given]) => given === key))
    if (missing !== undefined) throw new Mismatch(`${place} has no "${missing}", which it needs.`)
  }

/** An object whose keys are names. */
const record =
  (name: RegExp, expected: string, shape: Shape): Shape =>
  (value, place) => {
    for (const [key, one] of entriesOf(value, place)) {
      if (!name.test(key)) throw new Mismatch(`${place} has "${key}"; it takes ${expected}.`)
      shape(one, `${place}[${JSON.stringify(key)}]`)
    }
  }

/** A list, each of whose entries has this shape. */
const list =
  (shape: Shape, expected: string): Shape =>
  (value, place) => {
    if (!Array.isArray(value)) throw mismatch(value, place, expected)
    for (const [index, one] of value.entries()) shape(one, `${place}[${index}]`)
  }

/** One thing, or a list of such things. */
const oneOrMore =
  (shape: Shape): Shape =>
  (value, place) =>
    (Array.isArray(value) ? list(shape, '') : shape)(value, place)

/** A text that passes the test. */
const text = (expected = 'a text', fits: (given: string) => boolean = () => true): Shape =>
  only(expected, value => typeof value === 'string' && fits(value))

const oneOf = (words: readonly string[]): Shape =>
  only(`one of ${words.join(', ')}`, value => typeof value === 'string' && words.includes(value))

const whole = (from: number, to: number): Shape =>
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

/** Anything that holds. */
function only(expected: string, holds: (value: unknown) => boolean): Shape {
  return (value, place) => {
    if (!holds(value)) throw mismatch(value, place, expected)
  }
}

function entriesOf(value: unknown, place: string): [string, unknown][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw mismatch(value, place, 'an object: {…}')
  }
  return Object.entries(value)
}

const mismatch = (value: unknown, place: string, expected: string) =>
  new Mismatch(`${place} is ${shown(value)}; it takes ${expected}.`)

/** Of long data the beginning. */
function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value)
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text
}

/** As much as a person needs to find it again. */
const SHOWN_MAX = 80

/** Finds the mistakes that a person makes in writing a scenario; throws `bad_input` with the place and what it takes. */
export function checkScenario(given: unknown): Scenario {
  try {
    SCENARIO(given, 'scenario')
    const scenario = given as Scenario
    for (const [name, plan] of Object.entries(scenario.hosts)) checkEngine(name, plan)
    checkAddresses(scenario.hosts)
    return scenario
  } catch (error) {
    if (!(error instanceof Mismatch)) throw error
    throw new EvError('bad_input', sanitizeText(error.message, SENTENCE_MAX))
  }
}

/** Room for all keys and tempers. */
const SENTENCE_MAX = 1_000

function checkEngine(name: string, plan: HostPlan): void {
  const behavior: Behavior = BEHAVIORS[plan.behavior](plan)
  const rules = [...(plan.rules ?? []), ...(behavior.rules ?? [])]
  const tricks = behavior.dripMs !== undefined || behavior.strict === true || rules.some(isTrick)
  if (plan.engine !== undefined && tricks) {
    throw new Mismatch(
      `scenario.hosts[${JSON.stringify(name)}] has "engine": "smtp-server", which only gives replies; leave it out, or what is no reply.`,
    )
  }
}

const isTrick = (rule: Rule) =>
  rule.reply === undefined || rule.end !== undefined || !REFUSABLE.includes(rule.on)

/** Where the library asks our opinion. */
const REFUSABLE: readonly string[] = ['CONNECT', 'MAIL', 'RCPT']

/** Two servers cannot listen at one address; where nobody answers there may be many. */
function checkAddresses(hosts: Readonly<Record<string, HostPlan>>): void {
  const owners = new Map<string, { name: string; door: Behavior['door'] }>()
  for (const [name, plan] of Object.entries(hosts)) {
    const { door }: Behavior = BEHAVIORS[plan.behavior](plan)
    for (const ip of [plan.ip ?? []].flat().filter(isLoopback)) {
      const owner = owners.get(ip)
      if (owner !== undefined && (door === undefined || door !== owner.door)) {
        throw new Mismatch(
          `scenario.hosts gives ${ip} to ${owner.name} and to ${name}; each needs an address of its own.`,
        )
      }
      owners.set(ip, { name, door })
    }
  }
}

/** A pause longer than that is a mistake, and more than a timer holds. */
const pauseMs = number(0, DAY)
const nth = whole(1, 1_000_000_000)
const port = whole(0, 65_535)
const NAME = /^[^\s@]{1,253}$/
const hostName = text('a name such as mx.example.test', given => NAME.test(given))
const pattern = text('an address or a local part, * for any run of characters')
const patterns = list(pattern, 'a list such as ["ann", "bob.*"]')
const client = text('IP addresses such as 127.0.0.2 or 127.0.0.*', given =>
  /^[\da-f.:*]+$/i.test(given),
)
const ips = (what: string, holds: (given: string) => boolean) =>
  list(text(what, holds), `a list such as ["${what.split(' ').at(-1)}"]`)
const texts = list(text(), 'a list of texts')
const keywords = list(
  text('an EHLO keyword such as SIZE 1000', given => /^[!-~]+( [!-~]+)*$/.test(given)),
  'a list such as ["PIPELINING", "SIZE 1000"]',
)
/** RFC 5321 §4.2: three digits, of which the first is 2 to 5. What is none of that goes into `raw`. */
const reply = text(
  'a reply such as "550 5.1.1 No such user", "\\n" between its lines (for other bytes there is "raw")',
  given => given.split('\n').every(line => /^[2-5]\d\d(?:[ -][^\r]*)?$/.test(line)),
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
    askedAbove: whole(0, 1_000_000_000),
    connectionFrom: nth,
    connectionMax: nth,
    sessionsAbove: whole(0, 1_000_000_000),
    secure: flag,
    reply,
    raw: text('characters up to \\u00ff, one for each byte', given => /^[\0-\xff]*$/.test(given)),
    endless: text('one line', given => !/[\r\n]/.test(given)),
    afterMs: pauseMs,
    end: oneOf(['close', 'reset', 'hang', 'tls-alert']),
  },
  ['on'],
)

const HOST = object<HostPlan>(
  {
    comment: text(),
    behavior: oneOf(Object.keys(BEHAVIORS)),
    ip: oneOrMore(text('an IP address such as 127.0.0.25', given => isIP(given) !== 0)),
    mailboxes: patterns,
    rules: list(rule, 'a list of rules: [{"on": …}]'),
    extensions: keywords,
    starttls: flag,
    seconds: number(0, DAY / 1_000),
    ms: pauseMs,
    max: whole(0, 1_000_000_000),
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

/** What a scenario may hold. */
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

/** A rule that says and does nothing is most likely one that lacks its point. */
function rule(value: unknown, place: string): void {
  RULE(value, place)
  const { reply, raw, endless, end } = value as Rule
  if ([reply, raw, endless, end].every(effect => effect === undefined)) {
    throw new Mismatch(
      `${place} does nothing; it takes reply, raw, endless or end ("end": "hang" says nothing any more).`,
    )
  }
}

function exchangers(value: unknown, place: string): void {
  if (value === 'null' || value === 'none') return
  const expected = '"null", "none" or a list such as [[10, "mx.example.test"]]'
  const pair = only(
    'a preference from 0 to 65535 and a name, such as [10, "mx.example.test"]',
    one => Array.isArray(one) && one.length === 2,
  )
  list((one, at) => {
    pair(one, at)
    const [preference, host] = one as unknown[]
    whole(0, 65_535)(preference, `${at}[0]`)
    hostName(host, `${at}[1]`)
  }, expected)(value, place)
}
