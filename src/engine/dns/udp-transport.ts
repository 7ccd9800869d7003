import { createSocket, type Socket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import dnsPacket from 'dns-packet'
import { type Clock, SECOND } from '../../platform/clock.ts'
import { isOutOfDescriptors } from '../../platform/open-files.ts'
import type { Random } from '../../platform/random.ts'
import {
  createQuery,
  type DnsMessageReply,
  type DnsQuestion,
  parseServer,
  readReply,
  readResponseId,
} from './message.ts'
import type { RecordType } from './resolver.ts'

type OnReply = (reply: DnsMessageReply) => void

/**
 * Sends DNS queries over UDP (RFC 1035 §4.2.1). A packet is a reply only if it comes from the
 * queried address and has the QR bit, the ID and the question of the query; other packets are
 * ignored. node:dns is unsuitable: it reports unknown response codes as an empty answer, and does
 * not check NODATA and referrals.
 */
export class UdpTransport {
  readonly #random: Random
  readonly #clock: Clock
  readonly #channels = new Map<string, Channel[]>()
  #next = 0

  constructor(random: Random, clock: Clock) {
    this.#random = random
    this.#clock = clock
  }

  /**
   * Sends a query and returns a function that cancels it: then `onReply` gets `ECANCELLED`. `server`
   * is `HOST[:PORT]`, IPv6 in brackets if a port follows. The caller sets the timeout.
   */
  query(server: string, name: string, type: RecordType, onReply: OnReply): () => void {
    try {
      return this.#channelFor(server).send(name, type, onReply)
    } catch (error) {
      // The socket could not be created.
      return replyLater(onReply, socketErrorCode(error))
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
    if (channel?.canSend && channel.heardAt > this.#silentSince(channels)) return channel
    channel?.retire()
    const fresh = new Channel(server, this.#random, this.#clock)
    channels[slot] = fresh
    return fresh
  }

  /**
   * Returns since when a channel gets no reply. Channels without a later reply are replaced, as a
   * socket keeps the source address of its start: when a DHCP lease, a Wi-Fi network or a VPN changes
   * it, no reply reaches the socket any more.
   */
  #silentSince(channels: readonly Channel[]): number {
    const before = this.#clock.monotonicNow() - SILENT_MS
    let latest = Number.NEGATIVE_INFINITY
    for (const channel of channels) {
      const since = channel?.unansweredSince ?? null
      if (since !== null && since <= before && since > latest) latest = since
    }
    return latest
  }
}

function replyLater(onReply: OnReply, code: string): () => void {
  queueMicrotask(() => onReply({ code }))
  return () => {}
}

/** Returns the code of a query whose socket failed. */
export const socketErrorCode = (error: unknown): string =>
  isOutOfDescriptors(error) ? 'EMFILE' : 'ECONNREFUSED'

/** One receive buffer (208 KiB on Linux) holds the replies to about 50 of 600 queries in flight. */
const SOCKETS_PER_SERVER = 12

/** How long a query may be unanswered before its channel counts as silent: until it is sent again. */
const SILENT_MS = SECOND

/**
 * A socket is replaced after this many queries, so that its port stays hard to guess (RFC 5452
 * §9.2).
 */
const QUERIES_PER_SOCKET = 200

type PendingQuery = DnsQuestion & {
  readonly onReply: OnReply
}

/** One connected socket: the kernel drops packets from other addresses and reports ICMP errors. */
class Channel {
  readonly #random: Random
  readonly #clock: Clock
  readonly #socket: Socket
  readonly #pending = new Map<number, PendingQuery>()
  readonly #connected: Promise<void>
  #sent = 0
  #isConnected = false
  /** Why the socket could not be connected; null if it was, or may be. */
  #failureCode: string | null = null
  #state: 'open' | 'retired' | 'closed' = 'open'
  /** When the last packet arrived, or the socket was created, monotonic ms. */
  heardAt: number
  /** When the first query after that was sent, monotonic ms; null if none was. */
  unansweredSince: number | null = null

  constructor(server: string, random: Random, clock: Clock) {
    this.#random = random
    this.#clock = clock
    this.heardAt = clock.monotonicNow()
    const { host, port } = parseServer(server)
    this.#socket = createSocket({
      type: isIPv6(host) ? 'udp6' : 'udp4',
      // The host is an IP address; the default lookup would use the thread pool.
      lookup: (address, _, callback) => callback(null, address, isIPv6(address) ? 6 : 4),
    })
    // Before `connect`, which binds the socket and may fail at once.
    this.#socket.on('error', error => this.#onError(error))
    this.#connected = new Promise(resolve =>
      // It is also called with an error, such as ENETUNREACH without a route to the server.
      this.#socket.connect(port, host, (error?: Error) => {
        if (error !== undefined) return this.#onError(error)
        this.#isConnected = true
        resolve()
      }),
    )
    // Callers have their own timers; an idle socket must not keep the process alive.
    this.#socket.unref()
    this.#socket.on('message', bytes => this.#receive(bytes))
  }

  /** An ICMP error fails the open queries; a socket that could not connect is closed. */
  #onError(error: Error): void {
    const code = socketErrorCode(error)
    this.#failAll(code)
    if (this.#isConnected) return
    this.#failureCode = code
    this.#state = 'closed'
    this.#socket.close()
  }

  get canSend(): boolean {
    if (this.#state !== 'open' || this.#sent >= QUERIES_PER_SOCKET) return false
    const since = this.unansweredSince
    return since === null || this.#clock.monotonicNow() - since < SILENT_MS
  }

  send(name: string, type: RecordType, onReply: OnReply): () => void {
    if (this.#failureCode !== null) return replyLater(onReply, this.#failureCode)
    this.#sent++
    this.unansweredSince ??= this.#clock.monotonicNow()
    const id = this.#unusedId()
    const query = { name, type, onReply }
    this.#pending.set(id, query)
    if (this.#isConnected) this.#transmit(id, query)
    else void this.#connected.then(() => this.#transmit(id, query))
    return () => this.#settle(id, query, { code: 'ECANCELLED' })
  }

  /** Accepts no further queries, and closes when the last open query has ended. */
  retire(): void {
    this.#state = 'retired'
    this.#closeIfUnused()
  }

  close(): void {
    this.retire()
    this.#failAll('ECANCELLED')
  }

  #transmit(id: number, query: PendingQuery): void {
    if (this.#pending.get(id) !== query) return
    this.#socket.send(dnsPacket.encode(createQuery(id, query)), error => {
      if (error !== null) this.#settle(id, query, { code: 'ECONNREFUSED' })
    })
  }

  #receive(bytes: Buffer): void {
    this.heardAt = this.#clock.monotonicNow()
    this.unansweredSince = null
    const id = readResponseId(bytes)
    const query = id === null ? undefined : this.#pending.get(id)
    if (id === null || query === undefined) return
    const reply = readReply(bytes, query)
    if (reply !== 'ignored') this.#settle(id, query, reply)
  }

  /** Ends a query, unless it has ended. Its ID may belong to another one then. */
  #settle(id: number, query: PendingQuery, reply: DnsMessageReply): void {
    if (this.#pending.get(id) !== query) return
    this.#pending.delete(id)
    this.#closeIfUnused()
    query.onReply(reply)
  }

  #failAll(code: string): void {
    for (const [id, query] of [...this.#pending]) this.#settle(id, query, { code })
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
