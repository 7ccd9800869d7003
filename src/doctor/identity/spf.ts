import type { DnsFault, RecordOf, RecordType, Resolver } from '../../engine/dns/resolver.ts'
import { inRanges, isIpv6, isSameIp, plainIp, splitIp } from '../../platform/ip.ts'
import { reverseZoneName } from './reverse-name.ts'

/** Result of an SPF check (RFC 7208 §2.6). */
export type SpfResult = {
  readonly result: Directive['result'] | 'none' | 'temperror' | 'permerror'
  /** The SPF record of the domain; null if there is none. */
  readonly record: string | null
  /** The error text of `temperror` and `permerror`; null otherwise. */
  readonly fault: string | null
}

type SpfQuestion = { readonly ip: string; readonly sender: string; readonly helo: string }

/** Evaluates the SPF policy of the sender (`check_host` of RFC 7208 §4). */
export async function checkSpf(
  resolver: Resolver,
  question: SpfQuestion,
  signal: AbortSignal,
): Promise<SpfResult> {
  const check = new SpfCheck(resolver, question, signal)
  const domain = question.sender.slice(question.sender.lastIndexOf('@') + 1)
  try {
    const result = await check.evaluate(domain)
    return { result, record: check.record, fault: null }
  } catch (error) {
    if (!(error instanceof SpfError)) throw error
    return { result: error.result, record: check.record, fault: error.message }
  }
}

/** Ends the evaluation. */
class SpfError extends Error {
  readonly result: 'temperror' | 'permerror'

  constructor(result: SpfError['result'], message: string) {
    super(message)
    this.result = result
  }
}

/** Limits of RFC 7208 §4.6.4: terms with DNS lookups, lookups without a record, records of a name. */
const LOOKUPS_MAX = 10
const VOID_LOOKUPS_MAX = 2
const RECORDS_MAX = 10

const FAULT_TEXTS: Readonly<Record<DnsFault, string>> = {
  'no-name': 'the name does not exist',
  'no-data': 'the record does not exist',
  server: 'its DNS servers failed',
  timeout: 'the DNS lookup timed out',
}

class SpfCheck {
  /** The record of the sender's domain; null if there is none. */
  record: string | null = null
  readonly #resolver: Resolver
  readonly #question: SpfQuestion
  readonly #signal: AbortSignal
  readonly #client: string
  #lookups = 0
  #voidLookups = 0

  constructor(resolver: Resolver, question: SpfQuestion, signal: AbortSignal) {
    const client = plainIp(question.ip)
    if (client === null) throw new TypeError(`"${question.ip}" is not an IP address`)
    this.#resolver = resolver
    this.#question = question
    this.#signal = signal
    this.#client = client
  }

  /** Returns the result of the policy of a domain. Throws SpfError for errors. */
  async evaluate(domain: string): Promise<Directive['result'] | 'none'> {
    if (!isDomainName(domain)) return 'none'
    const texts = (await this.#ask(domain, 'TXT')).filter(isSpfRecord)
    const [text] = texts
    if (text === undefined) return 'none'
    if (texts.length > 1) throw new SpfError('permerror', `${domain} has several SPF records`)
    this.record ??= text
    const parsed = parseSpfRecord(text)
    if ('invalid' in parsed) throw new SpfError('permerror', `"${parsed.invalid}" of ${domain}`)
    for (const directive of parsed.directives) {
      if (await this.#matches(directive, domain)) return directive.result
    }
    if (parsed.redirect === null) return 'neutral'
    this.#countLookup()
    const target = await this.#expand(parsed.redirect, domain)
    return this.#evaluateOther(target)
  }

  async #matches(directive: Directive, domain: string): Promise<boolean> {
    const { mechanism, target } = directive
    switch (mechanism) {
      case 'all':
        return true
      case 'ip4':
        return this.#isIn(target, directive)
      case 'ip6':
        // An IPv4-mapped network would match IPv4 clients.
        return isIpv6(this.#client) && this.#isIn(target, directive)
      default:
    }
    this.#countLookup()
    const name = target === '' ? domain : await this.#expand(target, domain)
    if (mechanism === 'include') return (await this.#evaluateOther(name)) === 'pass'
    if (!isDomainName(name)) return false
    switch (mechanism) {
      case 'a':
        return this.#isAddressOf(name, directive)
      case 'mx':
        return this.#isMailServerOf(name, directive)
      case 'ptr': {
        const suffix = `.${name.toLowerCase()}`
        return (await this.#clientNames()).some(known => `.${known}`.endsWith(suffix))
      }
      case 'exists':
        return (await this.#ask(name, 'A', { isCounted: true })).length > 0
      default:
        return mechanism satisfies never
    }
  }

  /** Evaluates the policy of `include` or `redirect`, which must exist (RFC 7208 §5.2, §6.1). */
  async #evaluateOther(name: string): Promise<Directive['result']> {
    const result = await this.evaluate(name)
    if (result !== 'none') return result
    throw new SpfError('permerror', `${name} has no SPF record`)
  }

  async #isAddressOf(name: string, directive: Directive): Promise<boolean> {
    const addresses = await this.#ask(name, this.#addressType(), { isCounted: true })
    return addresses.some(address => this.#isIn(address, directive))
  }

  async #isMailServerOf(name: string, directive: Directive): Promise<boolean> {
    const servers = await this.#ask(name, 'MX', { isCounted: true })
    if (servers.length > RECORDS_MAX) {
      throw new SpfError('permerror', `${name} has more than ${RECORDS_MAX} MX records`)
    }
    for (const { host } of servers) {
      const addresses = await this.#ask(host, this.#addressType())
      if (addresses.some(address => this.#isIn(address, directive))) return true
    }
    return false
  }

  /** The PTR names of the client that resolve back to it (RFC 7208 §5.5), in lower case. */
  async #clientNames(): Promise<string[]> {
    const found = await this.#resolver.resolve(
      reverseZoneName(this.#question.ip),
      'PTR',
      this.#signal,
    )
    if ('fault' in found) return []
    const confirmed: string[] = []
    for (const name of found.records.slice(0, RECORDS_MAX)) {
      const back = await this.#resolver.resolve(name, this.#addressType(), this.#signal)
      if ('fault' in back || !back.records.some(ip => isSameIp(ip, this.#question.ip))) continue
      confirmed.push(name.toLowerCase().replace(/\.$/, ''))
    }
    return confirmed
  }

  #isIn(network: string, { bits4, bits6 }: Directive): boolean {
    const bits = isIpv6(network) ? bits6 : bits4
    return inRanges([`${plainIp(network)}/${bits}`])(this.#client)
  }

  async #expand(spec: string, domain: string): Promise<string> {
    const { ip, sender, helo } = this.#question
    const at = sender.lastIndexOf('@')
    const local = sender.slice(0, Math.max(at, 0)) || 'postmaster'
    const senderDomain = sender.slice(at + 1)
    return expandMacros(spec, {
      s: `${local}@${senderDomain}`,
      l: local,
      o: senderDomain,
      d: domain,
      h: helo,
      i: (splitIp(ip) ?? []).join('.'),
      v: isIpv6(ip) ? 'ip6' : 'in-addr',
      p: hasPtrMacro(spec) ? await this.#clientName(domain) : '',
    })
  }

  /** Returns the name for the macro `p`: preferably the domain or a name below it. */
  async #clientName(domain: string): Promise<string> {
    this.#countLookup()
    const names = await this.#clientNames()
    const plain = domain.toLowerCase()
    const below = names.find(name => name.endsWith(`.${plain}`))
    return names.find(name => name === plain) ?? below ?? names[0] ?? 'unknown'
  }

  #addressType(): 'A' | 'AAAA' {
    return isIpv6(this.#client) ? 'AAAA' : 'A'
  }

  #countLookup(): void {
    this.#lookups += 1
    if (this.#lookups > LOOKUPS_MAX) {
      throw new SpfError('permerror', `more than ${LOOKUPS_MAX} DNS lookups`)
    }
  }

  /** Returns the records of a name, without any if it does not exist. */
  async #ask<T extends RecordType>(
    name: string,
    type: T,
    { isCounted = false } = {},
  ): Promise<readonly RecordOf<T>[]> {
    const answer = await this.#resolver.resolve(name, type, this.#signal)
    if (!('fault' in answer)) return answer.records
    if (answer.fault === 'server' || answer.fault === 'timeout') {
      throw new SpfError('temperror', `${name}: ${FAULT_TEXTS[answer.fault]}`)
    }
    if (isCounted) this.#voidLookups += 1
    if (this.#voidLookups > VOID_LOOKUPS_MAX) {
      throw new SpfError('permerror', `more than ${VOID_LOOKUPS_MAX} DNS lookups without a record`)
    }
    return []
  }
}

/** Whether a name can have records of its own: at least two labels of at most 63 characters. */
const isDomainName = (name: string) =>
  name.length <= 253 && /^[^.]{1,63}(\.[^.]{1,63})+\.?$/.test(name)

/** A directive of an SPF record (RFC 7208 §4.6.1). */
type Directive = {
  readonly result: 'pass' | 'fail' | 'softfail' | 'neutral'
  readonly mechanism: 'all' | 'include' | 'a' | 'mx' | 'ptr' | 'ip4' | 'ip6' | 'exists'
  /** A domain with macros, or the network of `ip4` and `ip6`; empty if omitted. */
  readonly target: string
  /** Lengths of the network prefixes, in bits. */
  readonly bits4: number
  readonly bits6: number
}

type SpfRecord = {
  readonly directives: readonly Directive[]
  /** The domain of the modifier `redirect`, with macros; null if there is none. */
  readonly redirect: string | null
}

const RESULTS = { '+': 'pass', '-': 'fail', '~': 'softfail', '?': 'neutral' } as const
type Qualifier = keyof typeof RESULTS

const MACRO = '%(?:\\{[slodiphv](?:[1-9]\\d*)?r?[-.+,/_=]*\\}|[%_-])'
const MACRO_STRING = new RegExp(`^(?:${MACRO}|[!-$&-~])*$`, 'i')
const ENDS_WITH_MACRO = new RegExp(`${MACRO}$`, 'i')
/** A last label with at least one character that is not a digit. */
const ENDS_WITH_LABEL = /\.(?!\d+\.?$)[a-z\d](?:[a-z\d-]*[a-z\d])?\.?$/i
const BITS = '(?:/(0|[1-9]\\d?))?'
const DUAL_BITS = new RegExp(`^(.*?)${BITS}(?://(0|[1-9]\\d{0,2}))?$`)
const MODIFIER = /^([a-z][\w.-]*)=(.*)$/i
const DIRECTIVE = /^([-+~?]?)(all|include|a|mx|ptr|ip4|ip6|exists)(?:(:)(.*)|(\/.*))?$/i

const isSpfRecord = (text: string): boolean => /^v=spf1(?: |$)/i.test(text)

/** Parses a record. Returns the first term that is invalid as `{ invalid }`. */
function parseSpfRecord(text: string): SpfRecord | { readonly invalid: string } {
  const directives: Directive[] = []
  const unique = new Map<string, string>()
  for (const term of text.split(' ').slice(1)) {
    if (term === '') continue
    const [, name, value] = MODIFIER.exec(term) ?? []
    if (name !== undefined && value !== undefined) {
      const modifier = name.toLowerCase()
      const isKnown = modifier === 'redirect' || modifier === 'exp'
      if (isKnown ? unique.has(modifier) || !isDomainSpec(value) : !MACRO_STRING.test(value)) {
        return { invalid: term }
      }
      unique.set(modifier, value)
      continue
    }
    const directive = parseDirective(term)
    if (directive === null) return { invalid: term }
    directives.push(directive)
  }
  return { directives, redirect: unique.get('redirect') ?? null }
}

function parseDirective(term: string): Directive | null {
  const [, qualifier = '', name, colon, afterColon, slash] = DIRECTIVE.exec(term) ?? []
  if (name === undefined) return null
  const mechanism = name.toLowerCase() as Directive['mechanism']
  const result = RESULTS[(qualifier || '+') as Qualifier]
  const argument = afterColon ?? slash ?? ''
  const parsed = parseArgument(mechanism, argument, colon !== undefined)
  return parsed && { result, mechanism, ...parsed }
}

/** Parses the text behind the name of a mechanism (RFC 7208 §5). Returns null if it is invalid. */
function parseArgument(
  mechanism: Directive['mechanism'],
  text: string,
  hasColon: boolean,
): Pick<Directive, 'target' | 'bits4' | 'bits6'> | null {
  const whole = { target: text, bits4: 32, bits6: 128 }
  switch (mechanism) {
    case 'all':
      return text === '' && !hasColon ? whole : null
    case 'include':
    case 'exists':
      return hasColon && isDomainSpec(text) ? whole : null
    case 'ptr':
      return hasColon ? (isDomainSpec(text) ? whole : null) : text === '' ? whole : null
    case 'ip4':
    case 'ip6':
      return hasColon ? parseNetwork(mechanism, text) : null
    case 'a':
    case 'mx': {
      const [, target = '', bits4 = '32', bits6 = '128'] = DUAL_BITS.exec(text) ?? []
      if (hasColon ? !isDomainSpec(target) : target !== '') return null
      return withBits(target, Number(bits4), Number(bits6))
    }
    default:
      return mechanism satisfies never
  }
}

function parseNetwork(mechanism: 'ip4' | 'ip6', text: string) {
  const [, target = '', bits] = /^([\da-f:.]+)(?:\/(0|[1-9]\d{0,2}))?$/i.exec(text) ?? []
  if (plainIp(target) === null || target.includes(':') !== (mechanism === 'ip6')) return null
  return mechanism === 'ip4'
    ? withBits(target, Number(bits ?? 32), 128)
    : withBits(target, 32, Number(bits ?? 128))
}

const withBits = (target: string, bits4: number, bits6: number) =>
  bits4 > 32 || bits6 > 128 ? null : { target, bits4, bits6 }

/** Whether a text is a `domain-spec` (RFC 7208 §7.1). */
const isDomainSpec = (text: string) =>
  MACRO_STRING.test(text) && (ENDS_WITH_LABEL.test(text) || ENDS_WITH_MACRO.test(text))

/** The values of macro letters (RFC 7208 §7.2). */
type MacroValues = Readonly<Record<'s' | 'l' | 'o' | 'd' | 'i' | 'p' | 'h' | 'v', string>>

const EXPANSION = /%(?:\{([slodiphv])(\d*)(r?)([-.+,/_=]*)\}|([%_-]))/gi
const LITERALS: Readonly<Record<string, string>> = { '%': '%', _: ' ', '-': '%20' }

/** Whether the name of the client, which takes DNS lookups, is among the macros. */
const hasPtrMacro = (text: string): boolean => /%\{p/i.test(text.replaceAll('%%', ''))

/**
 * Expands macros (RFC 7208 §7.3) to a domain name. Removes leading labels if it is longer than 253
 * characters.
 */
function expandMacros(text: string, values: MacroValues): string {
  let name = text.replace(EXPANSION, (_, letter, digits, reverse, delimiters, literal) => {
    if (literal !== undefined) return LITERALS[literal] ?? ''
    const value = values[letter.toLowerCase() as keyof MacroValues]
    const parts = value.split(new RegExp(`[${delimiters.replace(/[-/]/g, '\\$&') || '.'}]`))
    const ordered = reverse === '' ? parts : parts.toReversed()
    const kept = (digits === '' ? ordered : ordered.slice(-Number(digits))).join('.')
    return letter === letter.toLowerCase() ? kept : escapeUrl(kept)
  })
  name = name.replace(/\.$/, '')
  while (name.length > NAME_MAX && name.includes('.')) name = name.slice(name.indexOf('.') + 1)
  return name
}

const NAME_MAX = 253

/** Escapes all but the unreserved characters of RFC 3986 §2.3. */
const escapeUrl = (text: string) =>
  encodeURIComponent(text).replace(
    /[!'()*]/g,
    char => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )
