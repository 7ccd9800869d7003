import { type ClientOptions, EvClient, type ResponseInfo } from '../../src/client/client.ts'
import { failOnUnknownNames } from './known-names.ts'
import type { createTestService } from './service.ts'

type House = Awaited<ReturnType<typeof createTestService>>

/** A client of the real API, which is asked without a port. */
export function createInProcessClient(
  { app, key, settled }: House,
  options: Partial<ClientOptions> & { readonly lose?: number } = {},
) {
  const { lose = 0, ...given } = options
  const seen: ResponseInfo[] = []
  let asked = 0
  const ask = failOnUnknownNames((url: string | URL, init?: RequestInit) =>
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
      const response = await settled(ask(url, init))
      // The service has done what it was asked for, and nobody hears of it.
      if (asked++ < lose) throw new TypeError('fetch failed')
      return response
    },
    ...given,
  })
  return { client, seen }
}

/** Waits for a retry are over at once, time limits never. */
const LONG_MS = 30_000
