import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import dnsPacket, { type Packet } from 'dns-packet'

/** What to send back to one packet: answers or flags, raw bytes, or nothing. A promise delays it. */
export type NameServerReply = Partial<Packet> | Buffer | 'silence'
export type Asked = { readonly name: string; readonly type: string; readonly packet: Packet }

export type NameServer = {
  /** `127.0.0.1:PORT` */
  readonly address: string
  /** Every packet that came, in order: `MX a.test`. */
  readonly packets: string[]
  /** Resolves as soon as `count` packets have come in all. */
  arrived(count: number): Promise<void>
  close(): Promise<void>
}

/**
 * A DNS server on loopback UDP that says what it is told. There is TCP beside it only where
 * `overTcp` says what to reply there; `hang-up` closes the connection.
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
    const said = await reply({ name, type, packet }, sender.port)
    if (said !== 'silence' && !closed)
      socket.send(encoded(packet, said), sender.port, sender.address)
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

/** UDP chooses the port and TCP follows; another one is tried where TCP finds it taken. */
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

/** RFC 7766 §8: two octets with its length stand before each message. */
function answerOverTcp(packets: string[], reply: (asked: Asked) => NameServerReply | 'hang-up') {
  return (connection: Socket) => {
    connection.on('error', () => {})
    connection.on('data', bytes => {
      const packet = dnsPacket.streamDecode(bytes)
      const { name = '', type = '' } = packet.questions?.[0] ?? {}
      packets.push(`TCP ${type} ${name}`)
      const said = reply({ name, type, packet })
      if (said === 'hang-up') return void connection.destroy()
      if (said === 'silence') return
      const message = encoded(packet, said)
      const length = Buffer.alloc(2)
      length.writeUInt16BE(message.length)
      // In pieces, as TCP may deliver it.
      connection.write(Buffer.concat([length, message.subarray(0, 5)]))
      setImmediate(() => connection.write(message.subarray(5)))
    })
  }
}

const encoded = ({ id, questions }: Packet, said: Partial<Packet> | Buffer): Buffer =>
  Buffer.isBuffer(said)
    ? said
    : dnsPacket.encode({
        type: 'response',
        ...(id === undefined ? {} : { id }),
        ...(questions === undefined ? {} : { questions }),
        ...said,
        flags: dnsPacket.RECURSION_DESIRED | dnsPacket.RECURSION_AVAILABLE | (said.flags ?? 0),
      })
