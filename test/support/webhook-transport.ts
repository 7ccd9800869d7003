import type {
  TransportResult,
  WebhookRequest,
  WebhookTransport,
} from '../../src/webhooks/transport/transport.ts'

export type FakePost = WebhookTransport & {
  /** All that was sent, in order. */
  readonly sent: WebhookRequest[]
  /** What happens from now on: a status, a receipt, or what becomes of each letter. */
  answer(how: How): void
}

type How =
  | number
  | Partial<TransportResult>
  | ((letter: WebhookRequest, nth: number) => Told | Promise<Told>)
type Told = number | Partial<TransportResult>

/** A post that keeps what it got; every receiver answers 200 until told otherwise. */
export function fakePost(): FakePost {
  const sent: WebhookRequest[] = []
  let how: How = 200
  return {
    sent,
    answer(next) {
      how = next
    },
    async send(letter) {
      sent.push(letter)
      return receiptOf(typeof how === 'function' ? await how(letter, sent.length) : how)
    },
    close: async () => {},
  }
}

function receiptOf(told: Told): TransportResult {
  const given = typeof told === 'number' ? answered(told) : told
  const faultCode = 'fault' in given ? 'request_failed' : null
  return { answer: null, fault: null, faultCode, durationMs: 84, ...given }
}

/** What a receiver answers, with these headers. */
export const answered = (
  status: number,
  headers: Readonly<Record<string, string>> = {},
  excerpt = 'ok',
) => ({ answer: { status, headers, excerpt } })
