import type { Readable, Writable } from 'node:stream'
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio'
import { createMcpServer, type McpDeps } from './server.ts'

/** Serves the tools on a pair of streams, one JSON-RPC message per line, until it is closed. */
export const serveOnStreams = (
  deps: McpDeps,
  { input, output }: { readonly input: Readable; readonly output: Writable },
): { close(): Promise<void> } =>
  serveStdio(() => createMcpServer(deps), { transport: new StdioServerTransport(input, output) })
