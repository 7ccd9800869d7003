import type { FeedbackInput } from '../feedback.ts'
import type { CertificateDeps, SnsCertificates } from './sns-certificates.ts'

/** An email provider that sends events by HTTP POST. */
export type Provider = {
  /** For messages. */
  readonly title: string
  /** The key that authenticates its requests. Null: ev generates a password. */
  readonly key: ProviderKey | null
  /** Whether a body may be a form, as an object of its text fields. Otherwise it is JSON. */
  readonly sendsForms?: boolean
  /** Whether a body is one event or a list of events. Any other JSON is refused. */
  readonly body: 'object' | 'array'
  /**
   * Authenticates a request and returns its feedback; other events are left out. Throws
   * `feedback_request_rejected`.
   */
  receive(request: ProviderRequest, deps: ProviderDeps): Promise<Received> | Received
}

type ProviderKey = {
  /** For messages, such as `topic ARN`. */
  readonly name: string
  /** Describes a valid key, as the end of a sentence. */
  readonly expected: string
  /** Returns the key as it is stored; null if it is invalid. */
  parse(text: string): string | null
  /** Whether it may be shown. */
  readonly isPublic: boolean
}

export type ProviderRequest = {
  header(name: string): string | undefined
  /** The unmodified body, which some signatures cover. */
  readonly bytes: Uint8Array
  /** The same body, parsed. */
  readonly body: unknown
  /** The key or the password of the feedback source. */
  readonly key: string
}

export type ProviderDeps = CertificateDeps & { readonly certificates: SnsCertificates }

type Received = {
  readonly items: readonly FeedbackInput[]
  /** A token that authenticates one body only, because its signature does not cover the body. */
  readonly token?: string
}
