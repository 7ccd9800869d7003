import type { DeliveryError } from '../endpoint.ts'

/** Requests to webhooks, as a door to the world. */
export interface WebhookTransport {
  /** Sends a letter once. Never rejects: what went wrong is in the receipt. It takes 30 s at most, the answer's body included. */
  send(request: WebhookRequest): Promise<TransportResult>
  close(): Promise<void>
}

export type WebhookRequest = {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** What came of a request. */
export type TransportResult = {
  /** Null: nobody answered, or not in time. */
  readonly answer: WebhookResponse | null
  /** Why there is no answer, in a sentence; null where there is one, whatever it says. */
  readonly fault: string | null
  /** The same for programs. */
  readonly faultCode: DeliveryError | null
  /** From the begin of the request to its end. */
  readonly durationMs: number
}

export type WebhookResponse = {
  readonly status: number
  /** Lower-case names; cleaned, and not all of them: `KEPT_HEADERS_MAX`. */
  readonly headers: Readonly<Record<string, string>>
  /** The beginning of its body, cleaned: `EXCERPT_LENGTH_MAX`. */
  readonly excerpt: string
}
