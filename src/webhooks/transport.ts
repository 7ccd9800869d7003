import type { DeliveryError } from './endpoint.ts'

/** Sends webhook requests; an injected dependency. */
export interface WebhookTransport {
  /**
   * Sends a request once. Never rejects: errors are in the result. Takes at most 30 s, including
   * the response body.
   */
  send(request: WebhookRequest): Promise<TransportResult>
  /**
   * Gets a short document, such as a certificate, in at most 30 s. Returns null if the status is
   * 4xx. Throws EvError if there is no document for another reason.
   */
  get(url: string): Promise<string | null>
  close(): Promise<void>
}

export type WebhookRequest = {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** The result of a request. */
export type TransportResult = {
  /** Null if there was no response in time. */
  readonly answer: WebhookResponse | null
  /** Why there is no response, as a sentence; null if there is one, whatever its status. */
  readonly fault: string | null
  readonly faultCode: DeliveryError | null
  /** Duration of the request. */
  readonly durationMs: number
}

export type WebhookResponse = {
  readonly status: number
  /** Lower-case names; sanitized and at most `STORED_HEADERS_MAX`. */
  readonly headers: Readonly<Record<string, string>>
  /** Start of the body, sanitized: `EXCERPT_LENGTH_MAX`. */
  readonly excerpt: string
}
