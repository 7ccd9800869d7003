import { ok } from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { tcpDial } from '../../../src/engine/smtp/dial.ts'
import type { FuzzTarget } from '../target.ts'

let reply: Buffer = Buffer.alloc(0)
const sockets = new Set<Socket>()
const server = createServer(socket => {
  sockets.add(socket)
  socket.on('error', () => {}).on('close', () => sockets.delete(socket))
  socket.once('data', () => socket.end(reply))
})
server.listen(0, '127.0.0.1').unref()
await once(server, 'listening')
const { port } = server.address() as AddressInfo
const dial = tcpDial({ sourceAddress: null, proxy: `socks5://user:password@127.0.0.1:${port}` })

/** A proxy that sends anything and closes gives a connection or an error, and no other event. */
export const target: FuzzTarget = {
  async fuzz(bytes) {
    reply = bytes
    const to = { ip: '192.0.2.1', port: 25, host: 'mx.mail.example' }
    try {
      const socket = await dial.connect(to, AbortSignal.any([]))
      // RFC 1928 §6: the version and a reply without a fault.
      ok(bytes[0] === 5)
      socket.on('error', () => {}).destroy()
    } catch (error) {
      ok(error instanceof Error && error.name !== 'AssertionError', String(error))
    }
  },
  *seeds() {
    yield Buffer.of(5, 0, 5, 0, 0, 1, 127, 0, 0, 1, 0, 25)
    yield Buffer.of(5, 2, 1, 0, 5, 0, 0, 3, 4, 0x61, 0x2e, 0x62, 0x63, 0, 25)
    yield Buffer.of(5, 0, 5, 2, 0, 4, ...Buffer.alloc(16), 0, 25)
    yield Buffer.of(5, 255)
  },
  lengthMax: 600,
}
