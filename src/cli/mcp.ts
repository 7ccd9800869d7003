import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio'
import { EvClient } from '../client/client.ts'
import type { Backend } from '../mcp/backend.ts'
import { createMcpServer } from '../mcp/server.ts'
import { createServiceBackend } from '../mcp/service-backend.ts'
import { EvError, errorMessage } from '../platform/error.ts'
import { type CliContext, version } from './context.ts'
import { EXIT_CODES } from './exit.ts'
import { createLocalBackend } from './mcp-backend.ts'
import { readConfig } from './settings.ts'
import { onStopSignal, SIGNALS_WITH_HANGUP, sayStopping } from './stop-signals.ts'

type McpFlags = {
  readonly url?: string
  readonly sandbox?: boolean
  readonly [setting: string]: unknown
}

/** Runs `ev mcp` until its input ends or it is stopped, and returns the exit code. */
export async function mcpCommand(context: CliContext, flags: McpFlags): Promise<number> {
  const backend = createBackend(context, flags)
  const { ended, dispose } = untilEnded(context)
  const handle = serveStdio(
    () => createMcpServer({ backend, clock: context.clock, version: version() }),
    { transport: new StdioServerTransport(context.stdin, context.stdout) },
  )
  try {
    await ended
    return 0
  } finally {
    await handle.close()
    await backend.close()
    dispose()
  }
}

function createBackend(context: CliContext, flags: McpFlags): Backend {
  const { url, sandbox = false } = flags
  return url === undefined
    ? createLocalBackend(context, readConfig(context, flags), { sandbox })
    : createServiceBackend(createClient(url, context.env.EV_KEY, sandbox))
}

/** Throws EvError if the URL or the key is invalid. */
function createClient(baseUrl: string, apiKey: string | undefined, sandbox: boolean): EvClient {
  if (apiKey === undefined || apiKey === '') {
    throw new EvError('usage', 'Set EV_KEY in the environment to an API key of the service.')
  }
  try {
    // A refused call is answered at once: the model can read when to try again.
    return new EvClient({ baseUrl, apiKey, sandbox, retries: 0 })
  } catch (error) {
    throw new EvError('usage', errorMessage(error), { cause: error })
  }
}

/** Resolves when the client closes the input, or at a signal. A second signal exits at once. */
function untilEnded(context: CliContext): { readonly ended: Promise<void>; dispose(): void } {
  const { promise: ended, resolve } = Promise.withResolvers<void>()
  const force = () => context.exit(EXIT_CODES.interrupted)
  const stop = () => {
    sayStopping(context, 'closing connections')
    resolve()
  }
  const dispose = onStopSignal(context, stop, force, SIGNALS_WITH_HANGUP)
  context.stdin.once('end', resolve)
  context.stdin.once('close', resolve)
  return { ended, dispose }
}
