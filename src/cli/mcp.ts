import type { McpServer } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { REASON_TEXTS, type Reason } from '../engine/verdict/reason.ts'
import { EvError, errorMessage } from '../platform/error.ts'
import { type CliContext, version } from './context.ts'
import { EXIT_CODES } from './exit.ts'
import {
  type Backend,
  createLocalBackend,
  createServiceBackend,
  ROWS,
  type VerifiedAddress,
} from './mcp-backends.ts'
import { readConfig } from './settings.ts'
import { onStopSignal, SIGNALS_WITH_HANGUP, sayStopping } from './stop-signals.ts'

type McpFlags = {
  readonly url?: string
  readonly sandbox?: boolean
  readonly [setting: string]: unknown
}

/** Runs `ev mcp` until its input ends or it is stopped, and returns the exit code. */
export async function mcpCommand(context: CliContext, flags: McpFlags): Promise<number> {
  const { McpServer, serveStdio, StdioServerTransport } = await loadSdk(importSdk)
  const backend = createBackend(context, flags)
  const { ended, dispose } = untilEnded(context)
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
    dispose()
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

/** Addresses of a list: the limit of one request to a service. */
const LIST_MAX = 10_000
/** Fits in the context of a model. */
const ROWS_MAX = 1_000

const email = z.string().min(1).max(1_000).describe('The address to verify.')

/** The tools contact mail servers and DNS servers, but send no mail and change nothing there. */
const annotations = { readOnlyHint: true, openWorldHint: true }

function registerTools(server: McpServer, backend: Backend): void {
  server.registerTool(
    'verify',
    {
      title: 'Verify an email address',
      description:
        'Verifies whether an email address can receive mail, without sending any. Returns its class (deliverable, risky, undeliverable or unknown), the reason, the risk, and a suggestion for a misspelled domain.',
      inputSchema: z.object({ email }),
      annotations,
    },
    ({ email }, { mcpReq: { signal } }) =>
      respond(async () => {
        const { evidence: _, ...result } = await backend.verify(email, signal)
        return withoutUnknown(result)
      }),
  )
  server.registerTool(
    'verify_list',
    {
      title: 'Verify a list of email addresses',
      description: `Verifies up to ${LIST_MAX} email addresses. Up to 10 addresses are finished in the response; a longer list is processed in the background, and job_status returns its results.`,
      inputSchema: z.object({
        emails: z.array(email).min(1).max(LIST_MAX).describe('The addresses to verify.'),
      }),
      annotations: { ...annotations, readOnlyHint: false },
    },
    ({ emails }, { mcpReq: { signal } }) => respond(() => backend.verifyList(emails, signal)),
  )
  server.registerTool(
    'job_status',
    {
      title: 'Get the status and the results of a list',
      description:
        'Returns the status of a list that was started with verify_list, its counts by class, and its results in pages.',
      inputSchema: z.object({
        job_id: z.string().min(1).max(100).describe('ID from the response of verify_list.'),
        after: z.int().min(0).default(0).describe('Skip the rows up to this number.'),
        limit: z.int().min(1).max(ROWS_MAX).default(ROWS).describe('Maximum number of rows.'),
      }),
      annotations,
    },
    ({ job_id, after, limit }, { mcpReq: { signal } }) =>
      respond(() => backend.getList(job_id, { after, limit }, signal)),
  )
  server.registerTool(
    'explain',
    {
      title: 'Explain the result of an email address',
      description:
        'Verifies an email address and explains the result: what the reason means, what to do, and the evidence, such as the mail server and its reply.',
      inputSchema: z.object({ email }),
      annotations,
    },
    ({ email }, { mcpReq: { signal } }) =>
      respond(async () => {
        const result = await backend.verify(email, signal)
        const { means, todo } = REASON_TEXTS[result.reason as Reason]
        return { ...withoutUnknown(result), means, what_to_do: todo }
      }),
  )
}

/** Sets `valid` to null where the class is unknown: a model would read false as "invalid". */
const withoutUnknown = <T extends VerifiedAddress>(result: T) => ({
  ...result,
  valid: result.class === 'unknown' ? null : result.valid,
})

/** Returns the value as JSON, or the error as the result of the tool, which the model can read. */
async function respond(run: () => Promise<object>) {
  try {
    const value = (await run()) as Record<string, unknown>
    const text = JSON.stringify(value, null, 2)
    return { content: [{ type: 'text' as const, text }], structuredContent: value }
  } catch (error) {
    return { content: [{ type: 'text' as const, text: errorMessage(error) }], isError: true }
  }
}
