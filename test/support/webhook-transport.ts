import type {
  TransportResult,
  WebhookRequest,
  WebhookTransport,
} from '../../src/webhooks/transport/transport.ts'

export type FakeTransport = WebhookTransport & {
  /** The sent requests, in order. */
  readonly sent: WebhookRequest[]
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
  let script: Script = 200
  return {
    sent,
    answer(next) {
      script = next
    },
    async send(request) {
      sent.push(request)
      return toResult(typeof script === 'function' ? await script(request, sent.length) : script)
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
