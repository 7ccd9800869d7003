import { connect } from 'node:net'
import dnsPacket from 'dns-packet'
import { withResolvers } from '../../platform/es2024.ts'
import type { Random } from '../../platform/random.ts'
import { createQuery, type DnsQuestion, parseServer, readReply, readResponseId } from './message.ts'
import type { DnsReply } from './query.ts'
import { socketErrorCode } from './udp-transport.ts'

type TcpQuery = { readonly reply: Promise<DnsReply>; cancel(): void }

/**
 * Sends one DNS query over a new TCP connection, and closes it (RFC 7766). The first message must
 * be the reply: it is checked as over UDP, and anything else is a server fault. `server` is
 * `HOST[:PORT]`, IPv6 in brackets if a port follows. The caller sets the timeout.
 */
export function queryOverTcp(server: string, question: DnsQuestion, random: Random): TcpQuery {
  const id = random.below(0x1_0000)
  const { promise, resolve } = withResolvers<DnsReply>()
  const socket = connect(parseServer(server))
  const settle = (reply: DnsReply) => {
    resolve(reply)
    socket.destroy()
  }
  let received = Buffer.alloc(0)
  socket.on('data', bytes => {
    received = Buffer.concat([received, bytes])
    const message = readMessage(received)
    if (message !== null) settle(readTcpReply(message, id, question))
  })
  socket.on('error', (error: NodeJS.ErrnoException) => {
    const isClosed = error.code === 'ECONNRESET' || error.code === 'EPIPE'
    settle({ code: isClosed ? CLOSED : socketErrorCode(error) })
  })
  socket.on('close', () => settle({ code: CLOSED }))
  socket.write(dnsPacket.streamEncode(createQuery(id, question)))
  return { reply: promise, cancel: () => settle({ code: 'ECANCELLED' }) }
}

/** A server that closes the connection without a reply may answer a retry. */
const CLOSED = 'ESERVFAIL'

/** Each message has a two-octet length prefix (RFC 7766 §8). */
const LENGTH_BYTES = 2

/** Returns the first message; null while it is incomplete. */
function readMessage(received: Buffer): Buffer | null {
  if (received.length < LENGTH_BYTES) return null
  const end = LENGTH_BYTES + received.readUInt16BE(0)
  return received.length < end ? null : received.subarray(LENGTH_BYTES, end)
}

function readTcpReply(message: Buffer, id: number, question: DnsQuestion): DnsReply {
  if (readResponseId(message) !== id) return { code: 'EBADRESP' }
  const reply = readReply(message, question)
  return reply === 'ignored' || reply === 'truncated' ? { code: 'EBADRESP' } : reply
}
