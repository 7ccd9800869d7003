import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import dnsPacket, { type Packet } from 'dns-packet'

/** The reply to a packet: answers or flags, raw bytes, or nothing. A promise delays it. */
export type NameServerReply = Partial<Packet> | Buffer | 'silence'
export type Asked = { readonly name: string; readonly type: string; readonly packet: Packet }

export type NameServer = {
  /** `127.0.0.1:PORT` */
  readonly address: string
  /** The received queries, in order: `MX a.test`. */
  readonly packets: string[]
  /** Resolves when `count` packets have been received in total. */
  arrived(count: number): Promise<void>
  close(): Promise<void>
}

/**
 * Starts a scripted DNS server on loopback UDP, and on TCP if `overTcp` is given, whose `hang-up`
 * closes the connection.
 */
export async function nameServer(
  reply: (asked: Asked, port: number) => NameServerReply | Promise<NameServerReply>,
  port = 0,
  overTcp: ((asked: Asked) => NameServerReply | 'hang-up') | null = null,
): Promise<NameServer> {
  const packets: string[] = []
  const { socket, tcp } = await bind(port, overTcp && answerOverTcp(packets, overTcp))
  socket.on('message', async (bytes, sender) => {
    const packet = dnsPacket.decode(bytes)
    const { name = '', type = '' } = packet.questions?.[0] ?? {}
    packets.push(`${type} ${name}`)
    socket.emit('arrived')
    const response = await reply({ name, type, packet }, sender.port)
    if (response !== 'silence' && !closed)
      socket.send(encoded(packet, response), sender.port, sender.address)
  })
  let closed = false
  return {
    address: `127.0.0.1:${socket.address().port}`,
    packets,
    async arrived(count) {
      while (packets.length < count) await once(socket, 'arrived')
    },
    async close() {
      if (closed) return
      closed = true
      tcp?.close()
      socket.close()
      await once(socket, 'close')
    },
  }
}

/** Binds UDP to a free port and TCP to the same one; retries if TCP finds it in use. */
async function bind(
  port: number,
  onConnection: ((connection: Socket) => void) | null,
): Promise<{ socket: UdpSocket; tcp: Server | null }> {
  for (let triesLeft = port === 0 ? 10 : 1; ; triesLeft--) {
    const socket = createSocket('udp4')
    socket.bind(port, '127.0.0.1')
    await once(socket, 'listening')
    if (onConnection === null) return { socket, tcp: null }
    const tcp = createServer(onConnection).listen(socket.address().port, '127.0.0.1')
    try {
      await once(tcp, 'listening')
      return { socket, tcp }
    } catch (error) {
      socket.close()
      if (triesLeft <= 1) throw error
    }
  }
}

/** A two-octet length precedes each message (RFC 7766 §8). */
function answerOverTcp(packets: string[], reply: (asked: Asked) => NameServerReply | 'hang-up') {
  return (connection: Socket) => {
    connection.on('error', () => {})
    connection.on('data', bytes => {
      const packet = dnsPacket.streamDecode(bytes)
      const { name = '', type = '' } = packet.questions?.[0] ?? {}
      packets.push(`TCP ${type} ${name}`)
      const response = reply({ name, type, packet })
      if (response === 'hang-up') return void connection.destroy()
      if (response === 'silence') return
      const message = encoded(packet, response)
      const length = Buffer.alloc(2)
      length.writeUInt16BE(message.length)
      // Split, as TCP may deliver it.
      connection.write(Buffer.concat([length, message.subarray(0, 5)]))
      setImmediate(() => connection.write(message.subarray(5)))
    })
  }
}

const encoded = ({ id, questions }: Packet, response: Partial<Packet> | Buffer): Buffer =>
  Buffer.isBuffer(response)
    ? response
    : dnsPacket.encode({
        type: 'response',
        ...(id === undefined ? {} : { id }),
        ...(questions === undefined ? {} : { questions }),
        ...response,
        flags: dnsPacket.RECURSION_DESIRED | dnsPacket.RECURSION_AVAILABLE | (response.flags ?? 0),
      })
