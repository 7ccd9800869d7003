import { type ClientOptions, EvClient } from '../../src/client/client.ts'

export type Asked = {
  readonly method: string
  /** Path with query. */
  readonly path: string
  readonly headers: Headers
  /** Parsed if it was JSON. */
  readonly body: unknown
  readonly redirect: RequestInit['redirect']
  readonly signal: AbortSignal
}

/** A scripted response: a response, a failure, or none at all. */
export type Reply =
  | { readonly status?: number; readonly json?: unknown; readonly headers?: Record<string, string> }
  | {
      readonly status?: number
      readonly body: ConstructorParameters<typeof Response>[0]
      readonly headers?: Record<string, string>
    }
  | Error
  | 'silence'

/** Timeout of an attempt; a wait before a retry is always shorter. */
export const ATTEMPT_MS = 1_000_000

/**
 * Creates a client with scripted responses; the last one repeats. Waits end at once and are
 * recorded.
 */
export function createScriptedClient(
  script: readonly Reply[],
  options: Partial<ClientOptions> = {},
) {
  const asked: Asked[] = []
  const waits: number[] = []
  /** Expires the timeout of the current attempt. */
  let expire = () => {}
  const client = new EvClient({
    apiKey: 'ev_live_test',
    baseUrl: 'https://ev.example',
    timeoutMs: ATTEMPT_MS,
    random: () => 0.5,
    now: () => Date.UTC(2026, 5, 1, 12),
    sleep: (ms, signal) =>
      new Promise(resolve => {
        if (ms < ATTEMPT_MS) waits.push(ms)
        if (ms < ATTEMPT_MS || signal?.aborted) return resolve()
        expire = resolve
        signal?.addEventListener('abort', () => resolve())
      }),
    fetch: async (url, init) => {
      asked.push(askedOf(url, init))
      const reply = script[asked.length - 1] ?? script.at(-1)
      if (reply === undefined) throw new Error('The script is empty.')
      if (reply === 'silence') return silence(init.signal)
      if (reply instanceof Error) throw reply
      return responseOf(reply)
    },
    ...options,
  })
  return { client, asked, waits, expire: () => expire() }
}

function askedOf(url: string, init: RequestInit): Asked {
  const { origin } = new URL(url)
  const isText = typeof init.body === 'string'
  return {
    method: init.method ?? 'GET',
    path: url.slice(origin.length),
    headers: new Headers(init.headers),
    body: isText ? JSON.parse(String(init.body)) : init.body,
    redirect: init.redirect,
    signal: init.signal as AbortSignal,
  }
}

function responseOf(reply: Exclude<Reply, Error | 'silence'>): Response {
  const { status = 200, headers } = reply
  const init = { status, ...(headers === undefined ? {} : { headers }) }
  return 'body' in reply
    ? new Response(reply.body, init)
    : Response.json(reply.json === undefined ? {} : reply.json, init)
}

/** Like fetch: rejects only when the signal aborts. */
const silence = (signal: AbortSignal | null | undefined) =>
  new Promise<never>((_, reject) => {
    const abort = () => reject(new DOMException('This operation was aborted', 'AbortError'))
    if (signal?.aborted) return abort()
    signal?.addEventListener('abort', abort)
  })

/** Returns the error of a promise that must reject. */
export async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise
  } catch (error) {
    return error
  }
  throw new Error('It did not fail.')
}
