import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/** A SOCKS5 proxy (RFC 1928) on loopback that leads every connection to the same local port. */
export async function startSocksProxy(port: number) {
  const targets: string[] = []
  const sockets = new Set<Socket>()
  const server = createServer(async client => {
    sockets.add(client.on('error', () => {}))
    const read = async () => (await once(client, 'data'))[0] as Buffer
    await read()
    client.write(Buffer.of(5, 0))
    targets.push(targetOf(await read()))
    const upstream = connect(port, '127.0.0.1').on('error', () => client.destroy())
    sockets.add(upstream)
    await once(upstream, 'connect')
    client.write(Buffer.of(5, 0, 0, 1, 127, 0, 0, 1, 0, 0))
    client.pipe(upstream).pipe(client)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { url: `socks5://127.0.0.1:${(server.address() as AddressInfo).port}`, targets }
}

/** The host name and the port of a request with a name (RFC 1928 §4). */
function targetOf(request: Buffer): string {
  const [, command, , type, length = 0] = request
  if (command !== 1 || type !== 3) throw new Error('only CONNECT with a host name')
  const name = request.subarray(5, 5 + length)
  return `${name}:${request.readUInt16BE(5 + length)}`
}
