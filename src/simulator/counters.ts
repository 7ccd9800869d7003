import { type SessionCounters, SessionLog } from './session-log.ts'

/** What the mail world saw since it started or was reset: the measure of what `ev` does to others. */
export type SimulatorCounters = {
  /** All hosts together; peaks of sessions are those of the whole world. */
  readonly total: HostCounters
  readonly hosts: Readonly<Record<string, HostCounters>>
  /** The sessions in which a recipient of each domain was asked about. */
  readonly domains: Readonly<Record<string, SessionCounters>>
  readonly dns: DnsCounters
}

export type HostCounters = SessionCounters & {
  /** Sessions by the address that the client came from. */
  readonly clients: Readonly<Record<string, SessionCounters>>
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
  readonly outOfOrder: number
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
  readonly attendance = new SessionLog()
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

  /** Begins again; sessions that are open stay counted. */
  reset(): void {
    const { attendance } = this
    attendance.reset()
    Object.assign(this, new Tally(), { attendance })
  }

  /** What was counted so far, apart from what will be. */
  counters(): HostCounters {
    const { attendance, commands, recipients, ...counted } = this
    return {
      ...attendance.counters(),
      ...counted,
      commands: { ...commands },
      recipients: new Map(recipients),
    }
  }
}

/** Adds up the hosts. Peaks of sessions are no sums: only the whole world knows who was there at once. */
export function addUp(hosts: readonly HostCounters[], attendance: SessionLog): HostCounters {
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
  return { ...total.counters(), ...attendance.counters() }
}

const SUMS = ['transactions', 'tlsSessions', 'pregreet', 'outOfOrder', 'badLines'] as const
const PEAKS = ['recipientsPerConnectionMax', 'recipientsPerTransactionMax'] as const

/** Counters as JSON: maps become objects. */
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
