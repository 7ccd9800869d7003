/** What the mail world saw since it started or was reset: the measure of what `ev` does to others. */
export type WorldCounters = {
  /** All hosts together; `sessionsPeak` is that of the whole world. */
  readonly total: HostCounters
  readonly hosts: Readonly<Record<string, HostCounters>>
  readonly dns: DnsCounters
}

export type HostCounters = {
  readonly connections: number
  readonly sessionsNow: number
  readonly sessionsPeak: number
  /** Commands by verb; one that is no command of SMTP is counted under what stood there. */
  readonly commands: Readonly<Record<string, number>>
  /** Addresses as they were asked, with how often. */
  readonly recipients: ReadonlyMap<string, number>
  /** MAIL commands that were accepted. */
  readonly transactions: number
  readonly recipientsPerConnectionMax: number
  readonly recipientsPerTransactionMax: number
  readonly tlsSessions: number
  /** Bytes a client sent before it was greeted. */
  readonly pregreet: number
  /** Commands sent before the reply to one that must be waited for (RFC 2920 §3.1), or to a server without PIPELINING. */
  readonly outOfTurn: number
  /** Lines that were too long or did not end in CRLF. */
  readonly badLines: number
}

export type DnsCounters = {
  readonly total: number
  readonly byType: Readonly<Record<string, number>>
  /** Questions as `name type`, with how often. */
  readonly questions: ReadonlyMap<string, number>
}

/** Addresses that were asked more than once. */
export const askedTwice = (counters: HostCounters): string[] =>
  [...counters.recipients].filter(([, times]) => times > 1).map(([address]) => address)

/** Counts what happens at one host, or at all of them. */
export class Tally {
  connections = 0
  sessionsNow = 0
  sessionsPeak = 0
  commands: Record<string, number> = {}
  recipients = new Map<string, number>()
  transactions = 0
  recipientsPerConnectionMax = 0
  recipientsPerTransactionMax = 0
  tlsSessions = 0
  pregreet = 0
  outOfTurn = 0
  badLines = 0

  opened(): void {
    this.connections += 1
    this.sessionsNow += 1
    this.sessionsPeak = Math.max(this.sessionsPeak, this.sessionsNow)
  }

  closed(): void {
    this.sessionsNow -= 1
  }

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

  /** Begins again; sessions that are open stay counted. */
  reset(): void {
    const { sessionsNow } = this
    Object.assign(this, new Tally(), { sessionsNow, sessionsPeak: sessionsNow })
  }

  /** What was counted so far, apart from what will be. */
  counters(): HostCounters {
    return { ...this, commands: { ...this.commands }, recipients: new Map(this.recipients) }
  }
}

/** Adds up the hosts. `sessions` is what only the whole world knows. */
export function addUp(
  hosts: readonly HostCounters[],
  sessions: Pick<HostCounters, 'sessionsNow' | 'sessionsPeak'>,
): HostCounters {
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
  return { ...total.counters(), ...sessions }
}

const SUMS = [
  'connections',
  'transactions',
  'tlsSessions',
  'pregreet',
  'outOfTurn',
  'badLines',
] as const
const PEAKS = ['recipientsPerConnectionMax', 'recipientsPerTransactionMax'] as const

/** Counters as text for a pipe between processes: maps become lists. */
export const countersToJson = (counters: WorldCounters): string =>
  JSON.stringify(counters, (_, value) => (value instanceof Map ? { map: [...value] } : value))

export const countersFromJson = (text: string): WorldCounters =>
  JSON.parse(text, (_, value) => (Array.isArray(value?.map) ? new Map(value.map) : value))
