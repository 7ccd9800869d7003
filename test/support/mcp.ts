import {
  Client,
  type ClientOptions,
  type JSONRPCMessage,
  type ProgressCallback,
  StreamableHTTPClientTransport,
  type Transport,
} from '@modelcontextprotocol/client'
import { onTestFinished } from 'vitest'
import { run } from '../../src/cli/run.ts'
import { type CliOptions, memoryContext } from './cli.ts'

/** What a tool answered: its text and its structured content. */
export type ToolAnswer = {
  readonly value: Record<string, unknown>
  readonly text: string
  readonly isError: boolean
}

export type CallOptions = {
  readonly signal?: AbortSignal
  readonly onprogress?: ProgressCallback
}

type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>

/** The clients of the official SDK: one speaks the protocol of 2025, the other that of 2026. */
export const PROTOCOLS: readonly [name: string, options: ClientOptions][] = [
  ['2025-11-25', {}],
  ['2026-07-28', { versionNegotiation: { mode: { pin: '2026-07-28' } } }],
]

/** Connects a client of the official SDK. It is closed after the test. */
export async function connectMcp(transport: Transport, options: ClientOptions = {}) {
  const client = new Client({ name: 'test', version: '0.0.0' }, options)
  await client.connect(transport)
  onTestFinished(() => client.close())
  const call = async (
    name: string,
    input: Record<string, unknown>,
    callOptions: CallOptions = {},
  ): Promise<ToolAnswer> => {
    const answer = await client.callTool({ name, arguments: input }, callOptions)
    const { structuredContent = {}, content, isError = false } = answer
    const [first] = content as { text: string }[]
    return {
      value: structuredContent as Record<string, unknown>,
      text: first?.text ?? '',
      isError,
    }
  }
  return { client, call }
}

/** Connects to `/mcp` of a service in this process. */
export const connectHttp = (
  { key, fetch, url = 'https://ev.example.com' }: { key: string; fetch?: Fetch; url?: string },
  options: ClientOptions = {},
  headers: Record<string, string> = {},
) =>
  connectMcp(
    new StreamableHTTPClientTransport(new URL(`${url}/mcp`), {
      requestInit: { headers: { Authorization: `Bearer ${key}`, ...headers } },
      ...(fetch && { fetch }),
    }),
    options,
  )

/** Runs `ev mcp` in this process and connects to its stdin and stdout. */
export function connectCli(
  args: readonly string[],
  options: CliOptions,
  client: ClientOptions = {},
) {
  const { context } = memoryContext({ ...options, stdinOpen: true })
  const ended = run(['mcp', ...args], context)
  onTestFinished(async () => {
    context.stdin.end()
    await ended
  })
  let read = 0
  const transport: Transport = {
    async start() {
      void ended.finally(() => transport.onclose?.())
      context.stdout.watchers.add(() => {
        const { text } = context.stdout
        for (let end = text.indexOf('\n', read); end !== -1; end = text.indexOf('\n', read)) {
          const line = text.slice(read, end)
          read = end + 1
          transport.onmessage?.(JSON.parse(line) as JSONRPCMessage)
        }
      })
    },
    async send(message) {
      context.stdin.write(`${JSON.stringify(message)}\n`)
    },
    async close() {
      transport.onclose?.()
    },
  }
  return connectMcp(transport, client)
}
