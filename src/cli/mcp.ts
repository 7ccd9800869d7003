import type { Command } from 'commander'
import type { EvClient } from '../client/client.ts'
import type { Backend } from '../mcp/backend.ts'
import { EvError, errorMessage } from '../platform/error.ts'
import { type CliContext, version } from './context.ts'
import { worksWithoutData } from './ev-command.ts'
import { EXIT_CODES } from './exit.ts'
import { addSettings, readConfig } from './settings.ts'
import { onStopSignal, SIGNALS_WITH_HANGUP, sayStopping } from './stop-signals.ts'

const EXAMPLES = `
Examples:
  ev mcp
  EV_KEY=ev_live_… ev mcp --url https://ev.example.com

The server has the tools verify, explain, verify_list, job_status and cancel_job. It reads requests from stdin and
writes responses to stdout, so an AI application starts it: {"command": "ev", "args": ["mcp"]}. Each request is
answered within ten seconds. ev serve has the same tools at /mcp.

With --url, it uses a service and the API key in EV_KEY. Without it, it contacts mail servers from this machine.`

export function defineMcp(mcp: Command, context: CliContext): void {
  worksWithoutData(mcp)
  mcp
    .option('--url <url>', 'URL of the service to use (default: verify from this machine)')
    .option('--sandbox', 'simulate results; the prefix of an address selects its result')
    .addHelpText('after', EXAMPLES)
    .action(flags => mcpCommand(context, flags))
  addSettings(mcp, context)
}

type McpFlags = {
  readonly url?: string
  readonly sandbox?: boolean
  readonly [setting: string]: unknown
}

/** Serves the tools until stdin ends or a signal arrives. */
async function mcpCommand(context: CliContext, flags: McpFlags): Promise<void> {
  const { serveOnStreams } = await import('../mcp/stdio.ts')
  const backend = await createBackend(context, flags)
  const { ended, dispose } = untilEnded(context)
  const server = serveOnStreams(
    { backend, clock: context.clock, version: version() },
    { input: context.stdin, output: context.stdout },
  )
  try {
    await ended
  } finally {
    await server.close()
    await backend.close()
    dispose()
  }
}

async function createBackend(context: CliContext, flags: McpFlags): Promise<Backend> {
  const { url, sandbox = false } = flags
  if (url === undefined) {
    const { createLocalBackend } = await import('./mcp-backend.ts')
    return createLocalBackend(context, readConfig(context, flags), { sandbox })
  }
  const client = await createClient(url, context.env.EV_KEY, sandbox)
  const { createServiceBackend } = await import('../mcp/service-backend.ts')
  return createServiceBackend(client)
}

/** Throws EvError if the URL or the key is invalid. */
async function createClient(
  baseUrl: string,
  apiKey: string | undefined,
  sandbox: boolean,
): Promise<EvClient> {
  if (apiKey === undefined || apiKey === '') {
    throw new EvError('usage', 'Set EV_KEY in the environment to an API key of the service.')
  }
  const { EvClient } = await import('../client/client.ts')
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
