/** Why an attempt failed, for programs; the sentence beside it is for people. Each is explained in docs/webhooks.md. */
export const DELIVERY_ERRORS = [
  'http_status',
  'redirect',
  'timeout',
  'connection_failed',
  'tls_error',
  'dns_error',
  'address_not_public',
  'invalid_url',
  'invalid_response',
  'secret_unreadable',
  'interrupted',
  'request_failed',
] as const

export type DeliveryError = (typeof DELIVERY_ERRORS)[number]

/** Why the service switched a webhook off: for programs, and the sentence for people. */
export const DISABLED_REASONS = {
  gone: 'It answered 410 Gone, which says that nothing is wanted there.',
  failing: 'All attempts failed for 5 days.',
} as const

export type DisabledCode = keyof typeof DISABLED_REASONS
