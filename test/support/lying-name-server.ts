import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import dnsPacket, { type Packet } from 'dns-packet'
import { type Asked, type NameServer, type NameServerReply, nameServer } from './name-server.ts'

/** The false reply; null for the true one. */
export type FalseReply = (asked: Asked) => NameServerReply | null

export const NXDOMAIN_FOR_ALL: FalseReply = () => ({ flags: 3 })
export const NODATA_FOR_ALL: FalseReply = () => ({})
export const NXDOMAIN_FOR_GMAIL: FalseReply = ({ name }) =>
  name === 'gmail.com' ? { flags: 3 } : null
/** Every name has this address and is its own mail server. */
export const WILDCARD: FalseReply = ({ name, type }) => {
  if (type === 'A') return { answers: [{ type, name, data: '127.0.0.1' }] }
  if (type !== 'MX') return {}
  return { answers: [{ type, name, data: { preference: 0, exchange: name } }] }
}

export type LyingNameServer = NameServer & { falseReply: FalseReply | null }

/**
 * Starts a DNS server in front of the one at `truth` (`HOST:PORT`), like a captive portal or a
 * filter.
 */
export async function lyingNameServer(
  truth: string,
  falseReply: FalseReply | null,
): Promise<LyingNameServer> {
  const [host, port] = truth.split(':') as [string, string]
  const ask = async (packet: Packet): Promise<Buffer> => {
    const socket = createSocket('udp4')
    socket.send(dnsPacket.encode(packet), Number(port), host)
    const [reply] = (await once(socket, 'message')) as [Buffer]
    socket.close()
    return reply
  }
  const server: LyingNameServer = Object.assign(
    await nameServer(asked => server.falseReply?.(asked) ?? ask(asked.packet)),
    { falseReply },
  )
  return server
}
