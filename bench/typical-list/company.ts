import { type Clock, DAY, HOUR, MINUTE } from '../../src/platform/clock.ts'
import type { HarvestRule, Provider } from './providers.ts'

/** Refused connections within an hour after which the client is blocked. */
const REFUSED_MAX = 20
/** Rejected recipients after which a connection is ended (Postfix's smtpd_hard_error_limit). */
const ERRORS_MAX = 20
/** Companies that block the client within a day before the shared block list has it, for a day. */
const LISTED_FROM = 3

/** A list of clients that several providers use, such as Spamhaus. */
export class SharedBlockList {
  readonly #clock: Clock
  readonly #reportedAt: number[] = []
  #listedUntil = 0
  /** How often the client was listed. */
  listings = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get hasClient(): boolean {
    return this.#listedUntil > this.#clock.monotonicNow()
  }

  report(): void {
    const now = this.#clock.monotonicNow()
    this.#reportedAt.push(now)
    if (this.hasClient || countSince(this.#reportedAt, now - DAY) < LISTED_FROM) return
    this.listings++
    this.#listedUntil = now + DAY
  }
}

/** The mailboxes and settings of a domain. */
export type SimulatedDomain = { readonly isCatchAll: boolean; readonly greylistMs: number | null }

/** A company that runs mail servers: what it knows of the only client, over all connections. */
export class Company {
  readonly #provider: Provider
  readonly #clock: Clock
  readonly #blockList: SharedBlockList
  readonly #harvestRule: HarvestRule
  readonly #domains = new Map<string, SimulatedDomain>()
  readonly #firstSeenAt = new Map<string, number>()
  readonly #openedAt: number[] = []
  readonly #refusedAt: number[] = []
  /** Whether each of the last recipients was unknown. */
  #recent: boolean[] = []
  #blockedUntil = 0
  #connections = 0
  readonly counters = { connections: 0, connectionsPeak: 0, recipients: 0, refused: 0, blocks: 0 }

  constructor(
    provider: Provider,
    clock: Clock,
    blockList: SharedBlockList,
    harvestRule: HarvestRule,
  ) {
    this.#provider = provider
    this.#clock = clock
    this.#blockList = blockList
    this.#harvestRule = harvestRule
  }

  addDomain(name: string, domain: SimulatedDomain): void {
    this.#domains.set(name, domain)
  }

  /** Opens a connection. */
  open(): Session {
    this.#connections++
    this.counters.connections++
    this.counters.connectionsPeak = Math.max(this.counters.connectionsPeak, this.#connections)
    return new Session(this, this.#provider)
  }

  close(): void {
    this.#connections--
  }

  /** Returns the greeting of a new connection. */
  greet(): string {
    const now = this.#clock.monotonicNow()
    const { connections, connectionsPerMinute, usesBlockList } = this.#provider
    if (this.#blockedUntil > now) return this.#refuse('554 5.7.1 Your IP address is blocked')
    if (usesBlockList && this.#blockList.hasClient)
      return this.#refuse('554 5.7.1 Service unavailable; client blocked using a block list')
    this.#openedAt.push(now)
    if (this.#connections > connections)
      return this.#refuseFor(now, '421 4.7.0 Too many concurrent connections from your IP')
    if (countSince(this.#openedAt, now - MINUTE) > connectionsPerMinute)
      return this.#refuseFor(now, '421 4.7.0 Too many connections from your IP, slow down')
    return '220 ESMTP'
  }

  /** Returns the reply to a recipient. */
  answer(to: string): string {
    this.counters.recipients++
    const domain = this.#domains.get(to.slice(to.lastIndexOf('@') + 1))
    if (domain === undefined) return '550 5.7.1 Relay access denied'
    if (domain.greylistMs !== null && this.#isGreylisted(to, domain.greylistMs))
      return this.#provider.greylistReply.replace('{to}', to)
    const { unknownReply } = this.#provider
    const isUnknown = unknownReply !== null && !domain.isCatchAll && !exists(to)
    this.#countUnknown(isUnknown)
    return isUnknown ? unknownReply.replace('{to}', to) : '250 2.1.5 Ok'
  }

  #countUnknown(isUnknown: boolean): void {
    const { unknownMax, blockMs } = this.#provider
    const size = this.#harvestRule === 'row' ? unknownMax : 2 * unknownMax
    this.#recent = [...this.#recent, isUnknown].slice(-size)
    if (this.#recent.length < size || this.#recent.filter(Boolean).length < unknownMax) return
    this.#recent = []
    this.#block(blockMs)
  }

  get isBlocking(): boolean {
    return this.#blockedUntil > this.#clock.monotonicNow()
  }

  #isGreylisted(to: string, delayMs: number): boolean {
    const now = this.#clock.monotonicNow()
    const first = this.#firstSeenAt.get(to) ?? now
    this.#firstSeenAt.set(to, first)
    return now - first < delayMs
  }

  #refuseFor(now: number, reply: string): string {
    this.#refusedAt.push(now)
    if (countSince(this.#refusedAt, now - HOUR) >= REFUSED_MAX) this.#block(this.#provider.blockMs)
    return this.#refuse(reply)
  }

  #refuse(reply: string): string {
    this.counters.refused++
    return reply
  }

  #block(blockMs: number): void {
    if (this.isBlocking) return
    this.counters.blocks++
    this.#blockedUntil = this.#clock.monotonicNow() + blockMs
    this.#blockList.report()
  }
}

/** One connection: replies to commands, in their order (RFC 5321 §4.1.4 is not enforced). */
export class Session {
  readonly #company: Company
  readonly #provider: Provider
  #inConnection = 0
  #inTransaction = 0
  #errors = 0
  /** Whether the server ends the connection after the last reply. */
  isOver = false
  #isOpen = true

  constructor(company: Company, provider: Provider) {
    this.#company = company
    this.#provider = provider
  }

  greet(): string {
    return this.#endUnless('2', this.#company.greet())
  }

  reply(line: string): string {
    const [verb = ''] = line.toUpperCase().split(/[ :]/, 1)
    switch (verb) {
      case 'EHLO':
        return '250-server\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 ENHANCEDSTATUSCODES'
      case 'RCPT':
        return this.#recipient(/<(.*)>/.exec(line)?.[1]?.toLowerCase() ?? '')
      case 'QUIT':
        this.isOver = true
        return '221 2.0.0 Bye'
      default:
        if (verb === 'MAIL') this.#inTransaction = 0
        return '250 2.0.0 Ok'
    }
  }

  /** The client has closed the connection, or has read that it is over. */
  close(): void {
    if (this.#isOpen) this.#company.close()
    this.#isOpen = false
  }

  #recipient(to: string): string {
    const { recipientsPerConnection, recipientsPerTransaction } = this.#provider
    if (this.#company.isBlocking) return this.#end('421 4.7.0 Your IP address is blocked')
    if (++this.#inConnection > recipientsPerConnection)
      return this.#end('421 4.7.0 Too many messages for this session')
    if (++this.#inTransaction > recipientsPerTransaction)
      return '452 4.5.3 Too many recipients (AS780090)'
    const reply = this.#company.answer(to)
    if (reply.startsWith('5') && ++this.#errors >= ERRORS_MAX)
      return this.#end(`${reply}\n421 4.7.0 Error: too many errors`)
    return reply
  }

  #endUnless(first: string, reply: string): string {
    return reply.startsWith(first) ? reply : this.#end(reply)
  }

  #end(reply: string): string {
    this.isOver = true
    return reply
  }
}

/** Returns how many of the ascending times are later than this one; forgets the others. */
function countSince(times: number[], since: number): number {
  const first = times.findIndex(at => at > since)
  times.splice(0, first === -1 ? times.length : first)
  return times.length
}

/** Mailboxes have the names that the list gives to existing ones. */
export const exists = (address: string) => address.startsWith('member')
