import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
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
  const socket = createSocket('udp4')
  const packets: string[] = []
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
  socket.bind(port, '127.0.0.1')
  await once(socket, 'listening')
  const tcp = overTcp === null ? null : await listenOverTcp(socket.address().port, packets, overTcp)
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

/** RFC 7766 §8: two octets with its length stand before each message. */
async function listenOverTcp(
  port: number,
  packets: string[],
  reply: (asked: Asked) => NameServerReply | 'hang-up',
): Promise<Server> {
  const server = createServer(connection => {
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
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return server
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
