import { EvError } from '../../src/platform/error.ts'
import type {
  TransportResult,
  WebhookRequest,
  WebhookTransport,
} from '../../src/webhooks/transport.ts'

export type FakeTransport = WebhookTransport & {
  /** The sent requests, in order. */
  readonly sent: WebhookRequest[]
  /** The documents that `get` returns, by URL: `outage` throws, and another URL has none. */
  readonly documents: Map<string, string>
  /** The URLs of `get`, in order. */
  readonly fetched: string[]
  /** Sets the response: a status, a result, or a function of each request. */
  answer(script: Script): void
}

type Script =
  | number
  | Partial<TransportResult>
  | ((request: WebhookRequest, nth: number) => ScriptedResult | Promise<ScriptedResult>)
type ScriptedResult = number | Partial<TransportResult>

/** Creates a transport that records requests; the default response is 200. */
export function fakeTransport(): FakeTransport {
  const sent: WebhookRequest[] = []
  const documents = new Map<string, string>()
  const fetched: string[] = []
  let script: Script = 200
  return {
    sent,
    documents,
    fetched,
    answer(next) {
      script = next
    },
    async send(request) {
      sent.push(request)
      return toResult(typeof script === 'function' ? await script(request, sent.length) : script)
    },
    async get(url) {
      fetched.push(url)
      const found = documents.get(url) ?? null
      if (found === 'outage') throw new EvError('io', 'The server answered with 500.')
      return found
    },
    close: async () => {},
  }
}

function toResult(scripted: ScriptedResult): TransportResult {
  const given = typeof scripted === 'number' ? answered(scripted) : scripted
  const faultCode = 'fault' in given ? 'request_failed' : null
  return { answer: null, fault: null, faultCode, durationMs: 84, ...given }
}

/** A response with this status and these headers. */
export const answered = (
  status: number,
  headers: Readonly<Record<string, string>> = {},
  excerpt = 'ok',
) => ({ answer: { status, headers, excerpt } })

/** Holds all requests from now on, until `answer` responds to those so far. */
export function holdRequests(transport: FakeTransport): {
  readonly inFlight: number
  answer(status: number): void
} {
  const waiting: ((status: number) => void)[] = []
  transport.answer(() => new Promise<number>(resolve => void waiting.push(resolve)))
  return {
    get inFlight() {
      return waiting.length
    },
    answer(status) {
      for (const resolve of waiting.splice(0)) resolve(status)
    },
  }
}
