import { createSocket, type Socket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import dnsPacket, { type Answer, type DecodedPacket } from 'dns-packet'
import type { Random } from '../base/random.ts'
import type { Said } from './question.ts'
import { plainName, type RecordOf, type RecordType } from './resolver.ts'

/** What the server said, or that its reply is too long for UDP. */
export type UdpReply = Said | 'truncated'

export type UdpQuery = { readonly reply: Promise<UdpReply>; cancel(): void }

/**
 * Sends DNS queries over UDP (RFC 1035 §4.2.1). A packet is a reply to a query only when it comes
 * from the address that was asked and has the QR bit, the ID and the question of the query; other
 * packets are ignored. node:dns cannot be used for this: it reports response codes that it does
 * not know as an empty answer, and does not check NODATA and referrals.
 */
export class UdpTransport {
  readonly #random: Random
  readonly #channels = new Map<string, Channel[]>()
  #next = 0

  constructor(random: Random) {
    this.#random = random
  }

  /** `server` is `HOST[:PORT]`, IPv6 in brackets where a port follows. There is no timeout here. */
  query(server: string, name: string, type: RecordType): UdpQuery {
    try {
      return this.#channelFor(server).send(name, type)
    } catch {
      // No socket could be made.
      return { reply: Promise.resolve({ code: 'ECONNREFUSED' }), cancel() {} }
    }
  }

  /** Closes all sockets; open queries get `ECANCELLED`. */
  close(): void {
    for (const channel of [...this.#channels.values()].flat()) channel.close()
    this.#channels.clear()
  }

  #channelFor(server: string): Channel {
    const channels = this.#channels.get(server) ?? []
    this.#channels.set(server, channels)
    const slot = this.#next++ % SOCKETS_PER_SERVER
    const channel = channels[slot]
    if (channel?.canSend) return channel
    channel?.retire()
    const fresh = new Channel(server, this.#random)
    channels[slot] = fresh
    return fresh
  }
}

/** One receive buffer (208 KiB on Linux) does not hold the replies to 200 queries in flight. */
const SOCKETS_PER_SERVER = 4

/** Then a socket is replaced: its port is half of what a forger must guess (RFC 5452 §9.2). */
const QUERIES_PER_SOCKET = 200

type PendingQuery = {
  readonly name: string
  readonly type: RecordType
  readonly resolve: (reply: UdpReply) => void
}

/** One connected socket: the kernel drops packets from other addresses and reports ICMP errors. */
class Channel {
  readonly #random: Random
  readonly #socket: Socket
  readonly #pending = new Map<number, PendingQuery>()
  readonly #connected: Promise<void>
  #sent = 0
  #isConnected = false
  #state: 'open' | 'retired' | 'closed' = 'open'

  constructor(server: string, random: Random) {
    this.#random = random
    const { host, port } = parseServer(server)
    this.#socket = createSocket({
      type: isIPv6(host) ? 'udp6' : 'udp4',
      // The host is an IP address: the default would ask the thread pool about it.
      lookup: (address, _, callback) => callback(null, address, isIPv6(address) ? 6 : 4),
    })
    this.#connected = new Promise(resolve =>
      this.#socket.connect(port, host, () => {
        this.#isConnected = true
        resolve()
      }),
    )
    // A caller that waits has a timer of its own; an idle socket must not keep the process.
    this.#socket.unref()
    this.#socket.on('message', bytes => this.#receive(bytes))
    this.#socket.on('error', () => this.#onError())
  }

  /** An ICMP error ends the open queries; a socket that could not be connected takes no others. */
  #onError(): void {
    this.#failAll('ECONNREFUSED')
    if (this.#isConnected) return
    this.#state = 'closed'
    this.#socket.close()
  }

  get canSend(): boolean {
    return this.#state === 'open' && this.#sent < QUERIES_PER_SOCKET
  }

  send(name: string, type: RecordType): UdpQuery {
    this.#sent++
    const id = this.#unusedId()
    const { promise, resolve } = Promise.withResolvers<UdpReply>()
    this.#pending.set(id, { name, type, resolve })
    void this.#transmit(id, name, type)
    return { reply: promise, cancel: () => this.#settle(id, { code: 'ECANCELLED' }) }
  }

  /** Sends nothing more, and closes when the last query has its reply. */
  retire(): void {
    this.#state = 'retired'
    this.#closeIfUnused()
  }

  close(): void {
    this.retire()
    this.#failAll('ECANCELLED')
  }

  async #transmit(id: number, name: string, type: RecordType): Promise<void> {
    await this.#connected
    if (!this.#pending.has(id)) return
    const packet = dnsPacket.encode({
      type: 'query',
      id,
      flags: dnsPacket.RECURSION_DESIRED,
      questions: [{ type, name }],
    })
    this.#socket.send(packet, error => {
      if (error !== null) this.#settle(id, { code: 'ECONNREFUSED' })
    })
  }

  #receive(bytes: Buffer): void {
    if (bytes.length < HEADER_BYTES) return
    const id = bytes.readUInt16BE(0)
    const query = this.#pending.get(id)
    if (query === undefined || !isResponse(bytes)) return
    const reply = readReply(bytes, query)
    if (reply !== 'ignored') this.#settle(id, reply)
  }

  #settle(id: number, reply: UdpReply): void {
    this.#pending.get(id)?.resolve(reply)
    this.#pending.delete(id)
    this.#closeIfUnused()
  }

  #failAll(code: string): void {
    for (const id of [...this.#pending.keys()]) this.#settle(id, { code })
  }

  #closeIfUnused(): void {
    if (this.#state !== 'retired' || this.#pending.size > 0) return
    this.#state = 'closed'
    void this.#connected.then(() => this.#socket.close())
  }

  #unusedId(): number {
    for (;;) {
      const id = this.#random.below(0x1_0000)
      if (!this.#pending.has(id)) return id
    }
  }
}

const HEADER_BYTES = 12

/** The QR bit: without it the packet is a query, perhaps our own one reflected. */
const isResponse = (bytes: Buffer) => ((bytes[2] ?? 0) & 0x80) !== 0

/** What a response with the ID of a query says; `ignored` when it answers another question. */
export function readReply(
  bytes: Uint8Array,
  { name, type }: { readonly name: string; readonly type: RecordType },
): UdpReply | 'ignored' {
  const packet = decode(bytes)
  if (packet === null || packet.opcode !== 'QUERY') return { code: 'EBADRESP' }
  const { rcode, questions = [] } = packet
  const isAnswered = rcode === 'NOERROR' || rcode === 'NXDOMAIN'
  // A server that could not read the query may leave the question out (RFC 1035 §4.1.1).
  if (isAnswered || questions.length > 0) {
    const [question] = questions
    if (questions.length !== 1 || question === undefined) return 'ignored'
    if (question.type !== type || question.class !== 'IN') return 'ignored'
    if (!isSameName(question.name, name)) return 'ignored'
  }
  if (rcode === 'NXDOMAIN') return { code: 'ENOTFOUND' }
  // Before truncation is looked at: node:dns, which reads the rest, does not know all codes.
  if (rcode !== 'NOERROR') return { code: FAULT_CODES[rcode] ?? 'EBADRESP' }
  return packet.flag_tc ? 'truncated' : readAnswer(packet, name, type)
}

const FAULT_CODES: Readonly<Record<string, string>> = {
  FORMERR: 'EFORMERR',
  SERVFAIL: 'ESERVFAIL',
  NOTIMP: 'ENOTIMP',
  REFUSED: 'EREFUSED',
}

type Packet = DecodedPacket & { readonly rcode: string; readonly opcode: string }

function decode(bytes: Uint8Array): Packet | null {
  try {
    return dnsPacket.decode(Buffer.from(bytes)) as Packet
  } catch {
    return null
  }
}

function readAnswer(packet: Packet, name: string, type: RecordType): UdpReply {
  const { answers = [], authorities = [] } = packet
  const owner = followAliases(answers, name)
  const records = answers
    .filter(answer => answer.type === type && isSameName(answer.name, owner))
    .map(answer => toRecord(answer, type))
    .filter(record => record !== null)
  if (records.length > 0) return { records }
  // Records of another name do not answer the question.
  if (answers.length > 0 && owner === name) return { code: 'EBADRESP' }
  // RFC 2308 §2.2: NS records without a SOA refer to other servers and say nothing about the type.
  const hasSoa = authorities.some(record => record.type === 'SOA')
  const isReferral = !hasSoa && authorities.some(record => record.type === 'NS')
  return { code: isReferral ? 'EBADRESP' : 'ENODATA' }
}

/** The name at the end of the CNAME records that start at `name` (RFC 1034 §3.6.2). */
function followAliases(answers: readonly Answer[], name: string): string {
  let owner = name
  for (let aliases = 0; aliases < ALIASES_MAX; aliases++) {
    const alias = answers.find(answer => answer.type === 'CNAME' && isSameName(answer.name, owner))
    if (alias?.type !== 'CNAME') return owner
    owner = alias.data
  }
  return owner
}

/** As many as common resolvers follow; more are a loop. */
const ALIASES_MAX = 16

function toRecord(answer: Answer, type: RecordType): RecordOf<RecordType> | null {
  if (answer.type === 'MX' && type === 'MX') {
    const { preference = 0, exchange } = answer.data
    return { preference, host: printable(exchange) }
  }
  if (answer.type === 'TXT') return textOf(answer.data)
  if (answer.type === 'PTR') return printable(answer.data)
  return answer.type === 'A' || answer.type === 'AAAA' ? answer.data : null
}

const textOf = (data: string | Buffer | readonly (string | Buffer)[]): string =>
  [data]
    .flat()
    .map(part => part.toString())
    .join('')

/** Octets outside printable ASCII become `?`, and the root the empty name. */
const printable = (name: string) => (name === '.' ? '' : name.replace(/[^\x21-\x7e]/g, '?'))

const isSameName = (one: string, other: string) => plainName(one) === plainName(other)

function parseServer(server: string): { host: string; port: number } {
  const [, bracketed, plain, port] = /^(?:\[(.+)\]|([\d.]+))(?::(\d+))?$/.exec(server) ?? []
  return { host: bracketed ?? plain ?? server, port: port === undefined ? DNS_PORT : Number(port) }
}

const DNS_PORT = 53
