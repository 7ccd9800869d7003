import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { GetStatus } from '../engine/signals/gravatar.ts'
import { type Dial, tcpDial } from '../engine/smtp/dial.ts'

/** Sends requests through a SOCKS proxy, or directly if there is none. Bodies are not read. */
export const createGetStatus = (proxy: string | null): GetStatus =>
  proxy === null ? getDirectly : getThrough(tcpDial({ sourceAddress: null, proxy }))

const getDirectly: GetStatus = async (url, options) => {
  const response = await globalThis.fetch(url, { ...options, redirect: 'error' })
  await response.body?.cancel()
  return response.status
}

const HTTPS_PORT = 443

/** `fetch` takes no connection, so that the request is one of node:https. */
const getThrough =
  ({ connect }: Dial): GetStatus =>
  async (url, { headers, signal }) => {
    const { hostname: host } = new URL(url)
    // The proxy resolves the name.
    const socket = await connect({ ip: host, host, port: HTTPS_PORT }, signal)
    try {
      const [{ request }, { connect: connectTls }] = await Promise.all([
        import('node:https'),
        import('node:tls'),
      ])
      const sent = request(url, {
        // Without an agent the default is that of plain HTTP.
        headers,
        signal,
        defaultPort: HTTPS_PORT,
        createConnection: () => connectTls({ socket, servername: host }),
      })
      sent.end()
      const [{ statusCode = 0 }] = (await once(sent, 'response')) as [IncomingMessage]
      return statusCode
    } finally {
      socket.destroy()
    }
  }
