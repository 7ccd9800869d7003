import { createMcpHandler, type McpHttpHandler } from '@modelcontextprotocol/server'
import { createMcpServer, type McpDeps } from './server.ts'

type HttpDeps = McpDeps & {
  /** Largest body in bytes. */
  readonly bodyMax: number
  /** Called for a message that the protocol does not allow. */
  readonly onRefused: (error: Error) => void
}

/** Returns a handler of Streamable HTTP, which serves each request on its own. */
export const createHttpHandler = ({ bodyMax, onRefused, ...deps }: HttpDeps): McpHttpHandler =>
  createMcpHandler(() => createMcpServer(deps), {
    maxRequestBodySize: bodyMax,
    // Such a stream has no end, and the tools never change.
    maxSubscriptions: 0,
    onerror: onRefused,
  })
