import { EvError } from '../../platform/error.ts'
import type { CliContext } from '../context.ts'
import { readConfig } from '../settings.ts'
import { version } from '../version.ts'
import type { Backend } from './backend.ts'
import { createLocalBackend } from './local-backend.ts'
import { createServiceBackend } from './service-backend.ts'
import { registerTools } from './tools.ts'

export type McpFlags = {
  readonly url?: string
  readonly sandbox?: boolean
  readonly [setting: string]: unknown
}

/** Runs `ev mcp` until its input ends or it is stopped, and returns the exit code. */
export async function mcpCommand(context: CliContext, flags: McpFlags): Promise<number> {
  const { McpServer, serveStdio, StdioServerTransport } = await loadSdk(importSdk)
  const backend = createBackend(context, flags)
  const ended = untilEnded(context)
  const handle = serveStdio(
    () => {
      const server = new McpServer({ name: 'ev', version: version() })
      registerTools(server, backend)
      return server
    },
    { transport: new StdioServerTransport(context.stdin, context.stdout) },
  )
  try {
    await ended
    return 0
  } finally {
    await handle.close()
    await backend.close()
  }
}

function createBackend(context: CliContext, flags: McpFlags): Backend {
  const { url, sandbox = false } = flags
  return url === undefined
    ? createLocalBackend(context, readConfig(context, flags), { sandbox })
    : createServiceBackend({ url, key: context.env.EV_KEY, sandbox })
}

const importSdk = async () => ({
  ...(await import('@modelcontextprotocol/server')),
  ...(await import('@modelcontextprotocol/server/stdio')),
})

/** Loads the SDK, an optional dependency. */
export async function loadSdk<Sdk>(load: () => Promise<Sdk>): Promise<Sdk> {
  try {
    return await load()
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new EvError(
      'usage',
      'ev mcp needs a package. Run: npm install @modelcontextprotocol/server (with -g if ev is installed globally)',
      { cause: error },
    )
  }
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Resolves when the client closes the input, or at a signal. */
function untilEnded({ stdin, signals }: CliContext): Promise<void> {
  return new Promise(resolve => {
    const end = () => {
      for (const signal of SIGNALS) signals.off(signal, end)
      resolve()
    }
    for (const signal of SIGNALS) signals.on(signal, end)
    stdin.once('end', end)
    stdin.once('close', end)
  })
}
