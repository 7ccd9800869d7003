import type { LogEvent } from '../platform/log.ts'

/** Log events of webhooks and their alerts. */
export const WEBHOOK_LOG = {
  attempt: {
    level: 'debug',
    message: 'webhook delivery attempt',
    fields: ['webhook', 'event', 'status', 'attempt', 'state', 'ms'],
  },
  attemptFailed: {
    level: 'info',
    message: 'webhook delivery attempt failed; will retry',
    fields: ['webhook', 'event', 'status', 'attempts', 'why', 'times'],
  },
  deliveryFailed: {
    level: 'warn',
    message: 'webhook delivery failed',
    fields: ['webhook', 'event', 'status', 'attempts', 'why', 'times'],
  },
  endpointRecovered: {
    level: 'info',
    message: 'webhook endpoint recovered',
    fields: ['webhook', 'event', 'status', 'times'],
  },
  endpointDisabled: {
    level: 'warn',
    message: 'webhook endpoint disabled',
    fields: ['webhook', 'event', 'status', 'code', 'why'],
  },
  deliveryError: {
    level: 'error',
    message: 'internal error during webhook delivery',
    fields: ['webhook', 'event', 'why'],
  },
  attemptsNotWritten: {
    level: 'error',
    message: 'delivery attempts could not be written; will retry',
    fields: ['attempts', 'why'],
  },
  requestsAborted: {
    level: 'info',
    message:
      'webhook requests without a response aborted; they are sent again after the next start',
    fields: ['requests'],
  },
  alertSent: {
    level: 'debug',
    message: 'webhook alert sent',
    fields: ['webhookId', 'accountId', 'failedEvents'],
  },
  alertRetried: {
    level: 'warn',
    message: 'webhook alert could not be sent; will retry',
    fields: ['webhookId', 'accountId', 'why'],
  },
  alertGivenUp: {
    level: 'warn',
    message: 'webhook alert could not be sent; giving up',
    fields: ['webhookId', 'accountId', 'why'],
  },
} as const satisfies Readonly<Record<string, LogEvent>>
