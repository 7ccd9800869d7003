import type { DeliveryError } from '../../hook/delivery-error.ts'

/** Requests to webhooks, as a door to the world. */
export interface Post {
  /** Sends a letter once. Never rejects: what went wrong is in the receipt. It takes 30 s at most, the answer's body included. */
  send(letter: Letter): Promise<Receipt>
  close(): Promise<void>
}

export type Letter = {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** What came of a request. */
export type Receipt = {
  /** Null: nobody answered, or not in time. */
  readonly answer: Answer | null
  /** Why there is no answer, in a sentence; null where there is one, whatever it says. */
  readonly fault: string | null
  /** The same for programs. */
  readonly faultCode: DeliveryError | null
  /** From the begin of the request to its end. */
  readonly durationMs: number
}

export type Answer = {
  readonly status: number
  /** Lower-case names; cleaned, and not all of them: `KEPT_HEADERS_MAX`. */
  readonly headers: Readonly<Record<string, string>>
  /** The beginning of its body, cleaned: `EXCERPT_LENGTH_MAX`. */
  readonly excerpt: string
}
