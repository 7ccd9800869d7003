import { type Clock, SECOND, systemClock } from '../platform/clock.ts'

/** Traffic that the simulator received since it started or was reset. */
export type SimulatorCounters = {
  /** All hosts together; session peaks are simultaneous across all hosts. */
  readonly total: HostCounters
  readonly hosts: Readonly<Record<string, HostCounters>>
  /** Sessions with a RCPT for each domain. */
  readonly domains: Readonly<Record<string, SessionCounters>>
  readonly dns: DnsCounters
}

export type HostCounters = SessionCounters & {
  /** Sessions by client IP address. */
  readonly clients: Readonly<Record<string, SessionCounters>>
  /** Commands by verb; unknown commands by their first word. */
  readonly commands: Readonly<Record<string, number>>
  /** RCPT commands by address. */
  readonly recipients: ReadonlyMap<string, number>
  /** Accepted MAIL commands. */
  readonly transactions: number
  readonly recipientsPerConnectionMax: number
  readonly recipientsPerTransactionMax: number
  readonly tlsSessions: number
  /** Bytes sent before the greeting. */
  readonly pregreet: number
  /**
   * Commands pipelined without PIPELINING, or after a command that ends a group (RFC 2920 §3.1).
   */
  readonly outOfOrder: number
  /** Lines that were too long or did not end with CRLF. */
  readonly badLines: number
}

export type DnsCounters = {
  readonly total: number
  readonly byType: Readonly<Record<string, number>>
  /** Queries by `name type`. */
  readonly questions: ReadonlyMap<string, number>
}

/** Returns the addresses with more than one RCPT. */
export const askedTwice = (counters: HostCounters): string[] =>
  [...counters.recipients].filter(([, times]) => times > 1).map(([address]) => address)

/** Mutable counters of one host, or of all hosts. */
export class Tally {
  readonly sessionLog = new SessionLog()
  commands: Record<string, number> = {}
  recipients = new Map<string, number>()
  transactions = 0
  recipientsPerConnectionMax = 0
  recipientsPerTransactionMax = 0
  tlsSessions = 0
  pregreet = 0
  outOfOrder = 0
  badLines = 0

  command(verb: string): void {
    this.commands[verb] = (this.commands[verb] ?? 0) + 1
  }

  recipient(address: string, inConnection: number, inTransaction: number): void {
    this.recipients.set(address, (this.recipients.get(address) ?? 0) + 1)
    if (inConnection > this.recipientsPerConnectionMax)
      this.recipientsPerConnectionMax = inConnection
    if (inTransaction > this.recipientsPerTransactionMax)
      this.recipientsPerTransactionMax = inTransaction
  }

  /** Resets all counters except open sessions. */
  reset(): void {
    const { sessionLog } = this
    sessionLog.reset()
    Object.assign(this, new Tally(), { sessionLog })
  }

  /** Returns a snapshot. */
  counters(): HostCounters {
    const { sessionLog, commands, recipients, ...counts } = this
    return {
      ...sessionLog.counters(),
      ...counts,
      commands: { ...commands },
      recipients: new Map(recipients),
    }
  }
}

/** Sums the counters of all hosts. Session peaks cannot be summed: they come from `sessionLog`. */
export function sumCounters(hosts: readonly HostCounters[], sessionLog: SessionLog): HostCounters {
  const total = new Tally()
  for (const host of hosts) {
    for (const name of SUMS) total[name] += host[name]
    for (const name of PEAKS) total[name] = Math.max(total[name], host[name])
    for (const [verb, times] of Object.entries(host.commands)) {
      total.commands[verb] = (total.commands[verb] ?? 0) + times
    }
    for (const [address, times] of host.recipients) {
      total.recipients.set(address, (total.recipients.get(address) ?? 0) + times)
    }
  }
  return { ...total.counters(), ...sessionLog.counters() }
}

const SUMS = ['transactions', 'tlsSessions', 'pregreet', 'outOfOrder', 'badLines'] as const
const PEAKS = ['recipientsPerConnectionMax', 'recipientsPerTransactionMax'] as const

/** Serializes counters to JSON; maps become objects. */
export const countersToJson = (counters: SimulatorCounters): string =>
  JSON.stringify(counters, (_, value) => (value instanceof Map ? Object.fromEntries(value) : value))

export function countersFromJson(text: string): SimulatorCounters {
  const { total, hosts, domains, dns } = JSON.parse(text)
  return {
    total: withMap(total, 'recipients'),
    hosts: Object.fromEntries(
      Object.entries<HostCounters>(hosts).map(([name, host]) => [
        name,
        withMap(host, 'recipients'),
      ]),
    ),
    domains,
    dns: withMap(dns, 'questions'),
  }
}

const withMap = <T>(counters: T, key: keyof T): T => ({
  ...counters,
  [key]: new Map(Object.entries(counters[key] as object)),
})

/** Session counts in total, of one client, or with recipients of one domain. */
export type SessionCounters = {
  readonly connections: number
  /** Maximum number of connections opened within one second. */
  readonly connectionsPerSecondPeak: number
  readonly sessionsNow: number
  readonly sessionsPeak: number
}

/** Counts open and past sessions, in total and by key (client address or domain). */
export class SessionLog {
  readonly #clock: Clock
  #all: Count
  #byClient = new Map<string, Count>()

  constructor(clock: Clock = systemClock) {
    this.#clock = clock
    this.#all = new Count(clock)
  }

  get sessionsNow(): number {
    return this.#all.sessionsNow
  }

  opened(client: string): void {
    this.#all.opened()
    const count = this.#byClient.get(client) ?? new Count(this.#clock)
    this.#byClient.set(client, count)
    count.opened()
  }

  closed(client: string): void {
    this.#all.sessionsNow -= 1
    const count = this.#byClient.get(client)
    if (count !== undefined) count.sessionsNow -= 1
  }

  /** Resets all counts except open sessions. */
  reset(): void {
    this.#all = this.#all.restarted()
    const open = [...this.#byClient].filter(([, count]) => count.sessionsNow > 0)
    this.#byClient = new Map(open.map(([client, count]) => [client, count.restarted()]))
  }

  /** Returns a snapshot. */
  counters(): SessionCounters & { readonly clients: Readonly<Record<string, SessionCounters>> } {
    const clients = [...this.#byClient].map(([client, count]) => [client, { ...count }] as const)
    return { ...this.#all, clients: Object.fromEntries(clients) }
  }
}

class Count implements SessionCounters {
  connections = 0
  connectionsPerSecondPeak = 0
  sessionsNow = 0
  sessionsPeak = 0
  readonly #clock: Clock
  /** Times of opened sessions; those of the last second start at index `#recent`. */
  #openedAt: number[] = []
  #recent = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  opened(): void {
    const now = this.#clock.monotonicNow()
    this.#openedAt.push(now)
    while (now - (this.#openedAt[this.#recent] as number) >= SECOND) this.#recent += 1
    const inLastSecond = this.#openedAt.length - this.#recent
    this.connectionsPerSecondPeak = Math.max(this.connectionsPerSecondPeak, inLastSecond)
    if (this.#recent > inLastSecond) {
      this.#openedAt = this.#openedAt.slice(this.#recent)
      this.#recent = 0
    }
    this.connections += 1
    this.sessionsNow += 1
    this.sessionsPeak = Math.max(this.sessionsPeak, this.sessionsNow)
  }

  restarted(): Count {
    const { sessionsNow } = this
    return Object.assign(new Count(this.#clock), { sessionsNow, sessionsPeak: sessionsNow })
  }
}
