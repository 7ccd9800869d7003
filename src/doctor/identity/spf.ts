import type { DnsAnswer, RecordOf, RecordType, Resolver } from '../../dns/resolver.ts'
import { isIpv6, isSameIp, isWithin, parseIp, reverseZoneName } from './ip.ts'
import { filledIn, type SpfQuestion } from './spf-macro.ts'
import { isSpf, type Mechanism, parseSpf, type SpfRecord } from './spf-record.ts'

/** What SPF says of a sender (RFC 7208 §2.6). */
export type SpfResult = {
  readonly result: 'pass' | 'fail' | 'softfail' | 'neutral' | 'none' | 'temperror' | 'permerror'
  /** The record of the domain itself; null where there is none. */
  readonly record: string | null
  /** What is wrong, for the two errors. */
  readonly fault: string | null
}

/** Whether `domain` lets this address send (check_host of RFC 7208 §4). */
export async function checkSpf(
  resolver: Resolver,
  domain: string,
  question: SpfQuestion,
  signal: AbortSignal,
): Promise<SpfResult> {
  const check = new SpfCheck(resolver, question, signal)
  try {
    const record = await check.recordOf(domain)
    if (record === null) return { result: 'none', record: null, fault: null }
    return { ...(await check.judged(domain, record)), record }
  } catch (error) {
    if (!(error instanceof SpfFault)) throw error
    return { result: error.result, record: null, fault: error.message }
  }
}

/** Ends an evaluation from any depth of includes. */
class SpfFault extends Error {
  readonly result: 'temperror' | 'permerror'

  constructor(result: SpfFault['result'], message: string) {
    super(message)
    this.result = result
  }
}

/** §4.6.4: terms that ask the DNS, over all records together. */
const LOOKUPS_MAX = 10
/** §4.6.4: questions of those that find nothing. */
const VOID_LOOKUPS_MAX = 2
/** §4.6.4: names of one MX or PTR answer. */
const NAMES_MAX = 10

class SpfCheck {
  readonly #resolver: Resolver
  readonly #question: SpfQuestion
  readonly #signal: AbortSignal
  #lookups = 0
  #voids = 0

  constructor(resolver: Resolver, question: SpfQuestion, signal: AbortSignal) {
    this.#resolver = resolver
    this.#question = question
    this.#signal = signal
  }

  /** §4.4 and §4.5. */
  async recordOf(domain: string): Promise<string | null> {
    const answer = await this.#resolver.resolve(domain, 'TXT', this.#signal)
    if (failed(answer)) throw new SpfFault('temperror', `the DNS could not tell of ${domain}`)
    const records = 'records' in answer ? answer.records.filter(isSpf) : []
    if (records.length > 1) throw new SpfFault('permerror', `${domain} has two SPF records`)
    return records[0] ?? null
  }

  /** A fault of this record or of one that it includes is a result. */
  async judged(domain: string, text: string): Promise<Omit<SpfResult, 'record'>> {
    try {
      return { result: await this.#judge(domain, text), fault: null }
    } catch (error) {
      if (!(error instanceof SpfFault)) throw error
      return { result: error.result, fault: error.message }
    }
  }

  async #judge(domain: string, text: string): Promise<Mechanism['result']> {
    const record = parseSpf(text)
    if (typeof record === 'string') {
      throw new SpfFault('permerror', `in the record of ${domain}, ${record}`)
    }
    for (const mechanism of record.mechanisms) {
      if (await this.#matches(mechanism, domain)) return mechanism.result
    }
    return record.redirect === null ? 'neutral' : this.#redirect(record, domain)
  }

  /** §6.1. */
  async #redirect({ redirect }: SpfRecord, domain: string): Promise<Mechanism['result']> {
    this.#countLookup()
    const target = this.#target(redirect, domain)
    const text = await this.recordOf(target)
    if (text === null) throw new SpfFault('permerror', `${target} has no SPF record`)
    return this.#judge(target, text)
  }

  async #matches(mechanism: Mechanism, domain: string): Promise<boolean> {
    const { name, value } = mechanism
    const { ip } = this.#question
    if (name === 'all') return true
    if (name === 'ip4' || name === 'ip6') return this.#isIn(mechanism, [networkOf(mechanism)])
    this.#countLookup()
    const target = this.#target(value, domain)
    switch (name) {
      case 'include':
        return this.#included(target)
      case 'a':
        return this.#isIn(mechanism, await this.#addresses(target))
      case 'mx':
        return this.#isAnExchanger(mechanism, target)
      case 'ptr':
        return this.#isNamedBelow(target, ip)
      default:
        return (await this.#ask(target, 'A')).length > 0
    }
  }

  /** §5.2. */
  async #included(target: string): Promise<boolean> {
    const text = await this.recordOf(target)
    if (text === null) throw new SpfFault('permerror', `${target} has no SPF record`)
    return (await this.#judge(target, text)) === 'pass'
  }

  /** §5.4. */
  async #isAnExchanger(mechanism: Mechanism, target: string): Promise<boolean> {
    const exchangers = await this.#ask(target, 'MX')
    if (exchangers.length > NAMES_MAX) {
      throw new SpfFault('permerror', `${target} has more than ${NAMES_MAX} mail exchangers`)
    }
    const found = await Promise.all(exchangers.map(({ host }) => this.#addresses(host)))
    return this.#isIn(mechanism, found.flat())
  }

  /** §5.5: who is named so, and has that name back. */
  async #isNamedBelow(target: string, ip: string): Promise<boolean> {
    const names = (await this.#ask(reverseZoneName(ip), 'PTR'))
      .slice(0, NAMES_MAX)
      .map(name => name.toLowerCase().replace(/\.$/, ''))
      .filter(name => `.${name}`.endsWith(`.${target.toLowerCase()}`))
    const found = await Promise.all(names.map(name => this.#addresses(name)))
    return found.flat().some(address => isSameIp(address, ip))
  }

  #addresses(name: string): Promise<readonly string[]> {
    return this.#ask(name, isIpv6(this.#question.ip) ? 'AAAA' : 'A')
  }

  async #ask<T extends RecordType>(name: string, type: T): Promise<readonly RecordOf<T>[]> {
    const answer = await this.#resolver.resolve(name, type, this.#signal)
    if (failed(answer)) throw new SpfFault('temperror', `the DNS could not tell of ${name}`)
    if ('records' in answer) return answer.records
    this.#voids++
    if (this.#voids <= VOID_LOOKUPS_MAX) return []
    throw new SpfFault('permerror', `more than ${VOID_LOOKUPS_MAX} of its names do not exist`)
  }

  #isIn({ prefix4, prefix6 }: Mechanism, addresses: readonly string[]): boolean {
    const { ip } = this.#question
    const prefix = isIpv6(ip) ? prefix6 : prefix4
    return addresses.some(address => isWithin(ip, address, prefix))
  }

  #target(value: string | null, domain: string): string {
    const target = value === null ? domain : filledIn(value, domain, this.#question)
    if (target === null) throw new SpfFault('permerror', `“${value}” has a macro that is none`)
    return target.replace(/\.$/, '')
  }

  #countLookup(): void {
    this.#lookups++
    if (this.#lookups > LOOKUPS_MAX) {
      throw new SpfFault('permerror', `it takes more than ${LOOKUPS_MAX} DNS lookups`)
    }
  }
}

function networkOf({ name, value }: Mechanism): string {
  const network = value ?? ''
  if (parseIp(network)?.bits === (name === 'ip4' ? 32 : 128)) return network
  throw new SpfFault('permerror', `“${name}:${network}” names no address`)
}

const failed = (answer: DnsAnswer<RecordType>) =>
  'fault' in answer && (answer.fault === 'server' || answer.fault === 'timeout')
