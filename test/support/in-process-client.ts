import { type ClientOptions, EvClient, type ResponseInfo } from '../../src/client/client.ts'
import { failOnUnknownNames } from './known-names.ts'
import type { createTestService } from './service.ts'

type TestService = Awaited<ReturnType<typeof createTestService>>

/** Creates a client of the real API, called without a port. */
export function createInProcessClient(
  { app, key, settled }: TestService,
  options: Partial<ClientOptions> & { readonly lose?: number } = {},
) {
  const { lose = 0, ...given } = options
  const seen: ResponseInfo[] = []
  let requestCount = 0
  const callApi = failOnUnknownNames((url: string | URL, init?: RequestInit) =>
    app.request(url, init, { incoming: { socket: { remoteAddress: '192.0.2.1' } } }),
  )
  const client = new EvClient({
    apiKey: key,
    baseUrl: 'https://ev.test',
    sleep: (ms, signal) =>
      ms < LONG_MS
        ? Promise.resolve()
        : new Promise(resolve => signal?.addEventListener('abort', () => resolve())),
    onAnswer: one => seen.push(one),
    fetch: async (url, init) => {
      const response = await settled(callApi(url, init))
      // The request was processed, and its response is lost.
      if (requestCount++ < lose) throw new TypeError('fetch failed')
      return response
    },
    ...given,
  })
  return { client, seen }
}

/** Shorter waits, which are those before retries, end at once; timeouts never do. */
const LONG_MS = 30_000
