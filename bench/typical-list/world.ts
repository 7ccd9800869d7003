import type { DnsAnswer, RecordOf, RecordType, Resolver } from '../../src/engine/dns/resolver.ts'
import type { Dial, Target } from '../../src/engine/smtp/dial.ts'
import { type Clock, sleep } from '../../src/platform/clock.ts'
import { xorshift } from '../../test/support/random.ts'
import { Company, SharedBlockList } from './company.ts'
import { type HarvestRule, PROVIDERS, type Provider } from './providers.ts'
import { SessionSocket } from './session-socket.ts'

/** The list of the published figures. */
export const [SIZE, SEED] = [10_000, 20_261_128]
/** Round trip to every mail server, ms. */
export const ROUND_TRIP_MS = 100
/** Time of a DNS answer, ms. */
const DNS_MS = 20
/** Share of addresses whose mailbox is gone. */
const UNKNOWN_SHARE = 0.1
/** Share of addresses whose domain does not exist any more. */
const DEAD_SHARE = 0.005

export type WorldPlan = {
  /** Number of addresses. */
  readonly size: number
  readonly seed: number
  readonly harvestRule: HarvestRule
}

/** The addresses of a list, and the providers that answer for them. */
export class World implements Resolver, Dial {
  readonly blockList: SharedBlockList
  readonly addresses: readonly string[]
  readonly companies: { readonly provider: Provider; readonly company: Company }[] = []
  readonly #clock: Clock
  readonly #harvestRule: HarvestRule
  readonly #random: () => number
  readonly #exchangers = new Map<string, string>()
  readonly #ips = new Map<string, string>()
  readonly #companyByIp = new Map<string, Company>()

  constructor({ size, seed, harvestRule }: WorldPlan, clock: Clock) {
    this.#clock = clock
    this.#harvestRule = harvestRule
    this.#random = xorshift(seed)
    this.blockList = new SharedBlockList(clock)
    const all = PROVIDERS.flatMap(provider =>
      this.#addProvider(provider, Math.round((size * provider.share) / 100)),
    )
    const dead = range(Math.round(size * DEAD_SHARE)).map(n => `former${n}@gone${n}.example`)
    this.addresses = this.#shuffle([...all, ...dead])
  }

  /** Looks up MX and A records; other types have no data. */
  async resolve<T extends RecordType>(name: string, type: T): Promise<DnsAnswer<T>> {
    await sleep(this.#clock, DNS_MS)
    const found = this.#lookUp(name.toLowerCase(), type)
    if (found === null) return { fault: this.#has(name) ? 'no-data' : 'no-name' }
    return { records: [found] as readonly unknown[] as readonly RecordOf<T>[] }
  }

  async connect({ ip }: Target, signal: AbortSignal) {
    await sleep(this.#clock, ROUND_TRIP_MS, signal)
    signal.throwIfAborted()
    return new SessionSocket(this.companyAt(ip).open(), this.#clock, ROUND_TRIP_MS)
  }

  async secure(): Promise<never> {
    throw new Error('No server offers STARTTLS.')
  }

  /** Returns the company that answers for a domain, null if the domain does not exist. */
  companyOf(domain: string): Company | null {
    const exchanger = this.#exchangers.get(domain)
    return exchanger === undefined ? null : this.companyAt(this.#ips.get(exchanger) ?? '')
  }

  companyAt(ip: string): Company {
    const company = this.#companyByIp.get(ip)
    if (company === undefined) throw new Error(`No company has ${ip}.`)
    return company
  }

  #lookUp(name: string, type: RecordType) {
    const exchanger = this.#exchangers.get(name)
    if (type === 'MX' && exchanger !== undefined) return { preference: 10, host: exchanger }
    return type === 'A' ? (this.#ips.get(name) ?? null) : null
  }

  #has(name: string): boolean {
    return this.#exchangers.has(name) || this.#ips.has(name)
  }

  /** Adds the domains of a provider, and returns its addresses. */
  #addProvider(provider: Provider, size: number): string[] {
    const { domains } = provider
    const names =
      'addressesPerDomain' in domains
        ? range(Math.ceil(size / domains.addressesPerDomain)).map(n => this.#ownDomain(n))
        : domains
    const companies = range(Math.min(provider.companies, names.length)).map(
      () => new Company(provider, this.#clock, this.blockList, this.#harvestRule),
    )
    for (const company of companies) this.companies.push({ provider, company })
    for (const [n, name] of names.entries()) {
      const number = n % companies.length
      const company = companies[number] as Company
      const isGreylisting = this.#random() < provider.greylistShare
      company.addDomain(name, {
        isCatchAll: this.#random() < provider.catchAllShare,
        greylistMs: isGreylisting ? provider.greylistMs : null,
      })
      this.#addExchanger(name, provider.exchanger(name, number), company)
    }
    return range(size).map(n => {
      const word = this.#random() < UNKNOWN_SHARE ? 'former' : 'member'
      return `${word}${n}@${names[n % names.length]}`
    })
  }

  /** Domains of customers have names that no list of ev contains. */
  #ownDomain(n: number): string {
    return `customer${this.#exchangers.size}-${n}.example`
  }

  #addExchanger(domain: string, exchanger: string, company: Company): void {
    this.#exchangers.set(domain, exchanger)
    if (this.#ips.has(exchanger)) return
    // Each in a separate network: two companies rarely have neighboring addresses.
    const number = this.#ips.size
    const ip = `10.${number >> 8}.${number & 255}.1`
    this.#ips.set(exchanger, ip)
    this.#companyByIp.set(ip, company)
  }

  /** Shuffles in place (Fisher-Yates). */
  #shuffle(items: string[]): string[] {
    for (let at = items.length - 1; at > 0; at -= 1) {
      const other = Math.floor(this.#random() * (at + 1))
      const item = items[at] as string
      items[at] = items[other] as string
      items[other] = item
    }
    return items
  }
}

const range = (length: number) => Array.from({ length }, (_, n) => n)
