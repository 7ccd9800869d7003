import { createSocket, type RemoteInfo, type Socket as UdpSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import packet, { type Answer, type Packet, type Question } from 'dns-packet'
import { type DnsCounters, SessionLog, type SimulatorCounters, sumCounters } from './counters.ts'
import { assignAddresses, cannotListen, openLoopbackNetwork } from './loopback-network.ts'
import { checkScenario, type Scenario } from './scenario.ts'
import { MailHost } from './smtp-host/host.ts'
import { createZone, type Zone, type ZoneAnswer, type ZoneRecord } from './zone.ts'

export type { Scenario } from './scenario.ts'

/** A running simulator, which listens on loopback addresses only. */
export type Simulator = {
  /** `127.0.0.1:5353`, the value for `--dns`. */
  readonly dnsAddress: string
  /** Port of all mail servers, the value for `--smtp-port`. */
  readonly smtpPort: number
  /** Configured or assigned addresses of each host. */
  readonly addresses: ReadonlyMap<string, readonly string[]>
  counters(): SimulatorCounters
  resetCounters(): void
  /** Ends all sessions and listeners. */
  close(): Promise<void>
}

/** Starts the DNS and mail servers; throws `bad_input` or, if a port cannot be opened, `io`. */
export async function startSimulator(scenario: Scenario): Promise<Simulator> {
  checkScenario(scenario)
  const addresses = assignAddresses(scenario.hosts)
  const common = scenario.mailboxes === undefined ? {} : { mailboxes: scenario.mailboxes }
  const hosts = Object.entries(scenario.hosts).map(
    ([name, plan]) => new MailHost(name, { ...common, ...plan }),
  )
  const sessionLog = new SessionLog()
  const byDomain = new SessionLog()
  const network = await openLoopbackNetwork({
    hosts,
    addresses,
    port: scenario.smtpPort ?? 0,
    hostDeps: { roundTripMs: scenario.roundTripMs ?? 0, sessionLog, byDomain },
  })
  const zone = createZone(scenario.domains, addresses, scenario.dnsAdditional)
  const dns = await startDnsServer(zone, scenario.dnsPort, scenario.roundTripMs).catch(
    async error => {
      await network.close()
      throw cannotListen(scenario.dnsPort ?? 0, error)
    },
  )
  return {
    dnsAddress: `127.0.0.1:${dns.port}`,
    smtpPort: network.port,
    addresses,
    counters() {
      const counted = hosts.map(host => [host.name, host.tally.counters()] as const)
      const total = sumCounters(
        counted.map(([, counters]) => counters),
        sessionLog,
      )
      const { clients: domains } = byDomain.counters()
      return { total, hosts: Object.fromEntries(counted), domains, dns: dns.counters() }
    },
    resetCounters() {
      for (const host of hosts) host.tally.reset()
      sessionLog.reset()
      byDomain.reset()
      dns.resetCounters()
    },
    async close() {
      await Promise.all([network.close(), dns.close()])
    },
  }
}

/** Maximum UDP response size without EDNS (RFC 1035 §4.2.1). */
const UDP_SIZE = 512
const TTL_S = 60
const HEADER = { servfail: 2, nxdomain: 3, refused: 5 }

/** An authoritative DNS server on loopback, UDP and TCP. */
type DnsServer = {
  readonly port: number
  counters(): DnsCounters
  resetCounters(): void
  close(): Promise<void>
}

/** Starts the DNS server on 127.0.0.1; port 0 selects a free one. Answers take a round trip. */
async function startDnsServer(zone: Zone, port = 0, roundTripMs = 0): Promise<DnsServer> {
  const tally = new QuestionTally()
  const { udp, tcp } = await bindBoth(port)
  const sockets = new Set<Socket>()
  let open = true
  const delayed = (respond: () => void) => {
    if (roundTripMs === 0) respond()
    else setTimeout(() => open && respond(), roundTripMs)
  }
  udp.on('message', (query, from) => {
    delayed(() => answerUdp(zone, tally, udp, query, from))
  })
  tcp.on('connection', socket => {
    sockets.add(socket.on('error', () => socket.destroy()))
    socket.on('close', () => sockets.delete(socket))
    // The delay of the TCP handshake.
    delayed(() => answerTcp(zone, tally, socket))
  })
  return {
    port: udp.address().port,
    counters: () => tally.counters(),
    resetCounters: () => tally.reset(),
    async close() {
      open = false
      for (const socket of sockets) socket.destroy()
      await Promise.all([
        new Promise<void>(done => udp.close(() => done())),
        new Promise(done => tcp.close(done)),
      ])
    },
  }
}

/** Binds UDP and TCP to the same port; retries with another free port if TCP finds it in use. */
async function bindBoth(port: number): Promise<{ udp: UdpSocket; tcp: Server }> {
  for (let triesLeft = port === 0 ? 10 : 1; ; triesLeft -= 1) {
    const udp = createSocket({ type: 'udp4', recvBufferSize: 1 << 20 })
    const tcp = createServer()
    try {
      udp.bind(port, '127.0.0.1')
      await once(udp, 'listening')
      tcp.listen(udp.address().port, '127.0.0.1')
      await once(tcp, 'listening')
      return { udp, tcp }
    } catch (error) {
      closeQuietly(udp)
      if (triesLeft <= 1) throw error
    }
  }
}

function closeQuietly(udp: UdpSocket): void {
  try {
    udp.close()
  } catch {
    // The socket was never bound.
  }
}

function answerUdp(
  zone: Zone,
  tally: QuestionTally,
  udp: UdpSocket,
  message: Buffer,
  from: RemoteInfo,
): void {
  const query = decode(message)
  if (query === null) return
  const reply = respond(zone, tally, query, 'udp')
  if (reply !== null) udp.send(reply, from.port, from.address)
}

function answerTcp(zone: Zone, tally: QuestionTally, socket: Socket): void {
  let unread = Buffer.alloc(0)
  socket.on('data', chunk => {
    unread = Buffer.concat([unread, chunk])
    while (unread.length >= 2 && unread.length >= 2 + unread.readUInt16BE(0)) {
      const end = 2 + unread.readUInt16BE(0)
      const query = decode(unread.subarray(2, end))
      unread = unread.subarray(end)
      const reply = query && respond(zone, tally, query, 'tcp')
      if (reply === null) continue
      const size = Buffer.alloc(2)
      size.writeUInt16BE(reply.length)
      socket.write(Buffer.concat([size, reply]))
    }
  })
}

function decode(message: Buffer): Packet | null {
  try {
    return packet.decode(message)
  } catch {
    return null
  }
}

function respond(
  zone: Zone,
  tally: QuestionTally,
  query: Packet,
  over: 'udp' | 'tcp',
): Buffer | null {
  const question = query.questions?.[0]
  if (question === undefined) return null
  tally.count(question)
  const found = zone.answer(question.name, question.type)
  const trouble = found === null ? 'nxdomain' : found.trouble
  if (trouble === 'silent') return null
  if (trouble === 'garbage') return garbage(query.id ?? 0)
  const code = trouble === null || trouble === 'truncated' ? 0 : HEADER[trouble]
  const full = encode(query, question, code, found)
  const isCut = over === 'udp' && (trouble === 'truncated' || full.length > udpSizeOf(query))
  return isCut ? encode(query, question, code, null, packet.TRUNCATED_RESPONSE) : full
}

/** Returns a malformed response with a valid ID and QR bit. */
function garbage(id: number): Buffer {
  const bytes = Buffer.from('....this is no DNS message')
  bytes.writeUInt16BE(id, 0)
  bytes.writeUInt16BE(0x8000, 2)
  return bytes
}

function encode(
  query: Packet,
  question: Question,
  code: number,
  found: ZoneAnswer,
  flags = 0,
): Buffer {
  const { records = [], additional = [] } = (code === 0 && found) || {}
  return packet.encode({
    type: 'response',
    id: query.id ?? 0,
    flags:
      packet.AUTHORITATIVE_ANSWER |
      packet.RECURSION_AVAILABLE |
      ((query.flags ?? 0) & packet.RECURSION_DESIRED) |
      flags |
      code,
    questions: [question],
    answers: records.map(record => toAnswer(question.name, record)),
    additionals: additional.map(({ name, record }) => toAnswer(name, record)),
  })
}

function toAnswer(name: string, record: ZoneRecord): Answer {
  const common = { name, ttl: TTL_S }
  switch (record.type) {
    case 'MX':
      return { ...common, type: 'MX', data: record }
    case 'TXT':
      return { ...common, type: 'TXT', data: stringsOf(record.text) }
    case 'PTR':
      return { ...common, type: 'PTR', data: record.host }
    default:
      return { ...common, type: record.type, data: record.address }
  }
}

/** Splits a TXT record into strings of at most 255 octets (RFC 1035 §3.3). */
function stringsOf(text: string): Buffer[] {
  const bytes = Buffer.from(text)
  const count = Math.max(1, Math.ceil(bytes.length / 255))
  return Array.from({ length: count }, (_, i) => bytes.subarray(i * 255, (i + 1) * 255))
}

/** Returns the UDP payload size that the client announces (RFC 6891 §6.2.3). */
function udpSizeOf(query: Packet): number {
  const option = query.additionals?.find(record => record.type === 'OPT')
  return option?.type === 'OPT' ? Math.max(UDP_SIZE, option.udpPayloadSize) : UDP_SIZE
}

class QuestionTally {
  #total = 0
  #byType: Record<string, number> = {}
  #questions = new Map<string, number>()

  count({ name, type }: Question): void {
    const key = `${name.toLowerCase()} ${type}`
    this.#total += 1
    this.#byType[type] = (this.#byType[type] ?? 0) + 1
    this.#questions.set(key, (this.#questions.get(key) ?? 0) + 1)
  }

  counters(): DnsCounters {
    return { total: this.#total, byType: { ...this.#byType }, questions: new Map(this.#questions) }
  }

  reset(): void {
    this.#total = 0
    this.#byType = {}
    this.#questions = new Map()
  }
}
