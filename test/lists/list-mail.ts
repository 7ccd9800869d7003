import type { EgressConfig } from '../../src/config/file-settings.ts'
import { REFERENCE_MX_HOSTS } from '../../src/engine/probe/outbound-reachability.ts'
import type { Dial, Target } from '../../src/engine/smtp/dial.ts'
import type { Clock } from '../../src/platform/clock.ts'
import { type MxScript, type MxSession, scriptedMx } from '../support/mx.ts'
import { isRandomRecipient, recipientOf } from '../support/recipients.ts'
import { type ZoneEntry, zone } from '../support/zone.ts'

/** DNS records and mail servers. */
export type MailPlan = {
  readonly zone: Readonly<Record<string, ZoneEntry>>
  /** The records that change after a time. */
  readonly later?: {
    readonly afterMs: number
    readonly zone: Readonly<Record<string, ZoneEntry>>
  }
  /** Creates the servers as clients of one egress see them. */
  readonly servers: (egress: string) => MxScript | NonNullable<MxScript['answer']>
}

export type CreateMail = (clock: Clock) => MailPlan

export type ListMail = ReturnType<typeof startMail>

/**
 * The address of the exchangers that ev tries when it reaches no other. They are reachable and not
 * counted, so that a server that is down does not look like a failure of the network.
 */
const REFERENCE_IP = '192.0.2.250'
const REFERENCE_ZONE = Object.fromEntries(
  REFERENCE_MX_HOSTS.map(host => [host, { A: [REFERENCE_IP] }]),
)

/** Plays the DNS and the mail servers of a list, and counts what they are asked. */
export function startMail(createMail: CreateMail, clock: Clock) {
  const plan = createMail(clock)
  const names = zone({ ...plan.zone, ...REFERENCE_ZONE })
  const { afterMs = 0, zone: changes = {} } = plan.later ?? {}
  clock.after(afterMs, () => {
    for (const [name, entry] of Object.entries(changes)) names.set(name, entry)
  })
  const byEgress = new Map<string, ReturnType<typeof scriptedMx>>()
  const dialled: Target[] = []
  const log = new ConnectionLog(clock)
  const serversFor = (egress: string) => {
    const servers = byEgress.get(egress) ?? scriptedMx(log.watch(plan.servers(egress)))
    byEgress.set(egress, servers)
    return servers
  }
  const sessions = () => [...byEgress.values()].flatMap(servers => servers.sessions)
  return {
    resolver: names,
    dial({ name }: Pick<EgressConfig, 'name'>): Dial {
      const servers = serversFor(name)
      return {
        secure: servers.secure,
        async connect(to, signal) {
          if (to.ip === REFERENCE_IP) return servers.connect(to, signal)
          dialled.push(to)
          const end = log.start(to.ip)
          try {
            const socket = await servers.connect(to, signal)
            log.sessions.set(servers.sessions.at(-1) as MxSession, end)
            socket.once('close', end)
            return socket
          } catch (error) {
            end()
            throw error
          }
        },
      }
    },
    sessions,
    /** The attempted connections, those that the server refused included. */
    dialled,
    /** The sessions of one egress. */
    sessionsOf: (egress: string) => byEgress.get(egress)?.sessions ?? [],
    /** Most connections at once to an IP address, dials in flight included. */
    peak: (ip: string) => log.peaks.get(ip) ?? 0,
    /** Open connections now, and the most at once. */
    open: () => log.openNow,
    openMax: () => log.openMax,
    /** Grows with each connection and DNS question. */
    activity: () => dialled.length + names.asked.length,
    /** Time from the first connection to the end of the last one, in ms. */
    tookMs: () => log.lastAt - (log.firstAt ?? log.lastAt),
    /** The recipients of all RCPT commands, in order, without random ones. */
    recipients: () => log.recipients.filter(to => !isRandomRecipient(to)),
    /** Number of RCPT commands by address, without random ones. */
    asked: () => countEach(log.recipients.filter(to => !isRandomRecipient(to))),
    /** Number of random recipients by domain. */
    randomAsked: () => countEach(log.recipients.filter(isRandomRecipient).map(domainOf)),
    /** Number of DNS questions by `type name`. */
    questions: () => countEach(names.asked),
  }
}

/** Counts open connections. One ends when its server receives QUIT, or when it is closed. */
class ConnectionLog {
  readonly peaks = new Map<string, number>()
  readonly sessions = new WeakMap<MxSession, () => void>()
  /** The recipients of all RCPT commands, in order. */
  readonly recipients: string[] = []
  openNow = 0
  openMax = 0
  firstAt: number | null = null
  lastAt = 0
  readonly #clock: Clock
  readonly #open = new Map<string, number>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Returns a function that ends the connection; it may be called twice. */
  start(ip: string): () => void {
    let hasEnded = false
    this.#count(ip, 1)
    return () => {
      if (!hasEnded) this.#count(ip, -1)
      hasEnded = true
    }
  }

  /** The same servers, which end their connections here at QUIT. */
  watch(given: MxScript | NonNullable<MxScript['answer']>): MxScript {
    const script = typeof given === 'function' ? { answer: given } : given
    return {
      ...script,
      answer: (line, session) => {
        if (line.startsWith('QUIT')) this.sessions.get(session)?.()
        const recipient = recipientOf(line)
        if (recipient !== '') this.recipients.push(recipient)
        return script.answer?.(line, session)
      },
    }
  }

  #count(ip: string, change: 1 | -1): void {
    const open = (this.#open.get(ip) ?? 0) + change
    this.#open.set(ip, open)
    this.peaks.set(ip, Math.max(this.peaks.get(ip) ?? 0, open))
    this.openNow += change
    this.openMax = Math.max(this.openMax, this.openNow)
    this.lastAt = this.#clock.monotonicNow()
    this.firstAt ??= this.lastAt
  }
}

function countEach(texts: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1)
  return counts
}

export const domainOf = (address: string) => address.slice(address.lastIndexOf('@') + 1)
