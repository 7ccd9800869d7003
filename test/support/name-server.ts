import { createSocket } from 'node:dgram'
import { once } from 'node:events'
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

/** A DNS server on loopback UDP that says what it is told; there is no TCP beside it. */
export async function nameServer(
  reply: (asked: Asked, port: number) => NameServerReply | Promise<NameServerReply>,
  port = 0,
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
  return {
    address: `127.0.0.1:${socket.address().port}`,
    packets,
    async arrived(count) {
      while (packets.length < count) await once(socket, 'arrived')
    },
    async close() {
      if (closed) return
      closed = true
      socket.close()
      await once(socket, 'close')
    },
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
