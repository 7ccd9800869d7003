import type { LogEvent } from '../platform/log.ts'
import { loopFailure } from '../platform/loop.ts'
import type { MetricInfo } from '../platform/metric.ts'

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
  alertPollFailed: loopFailure('webhook alert poll failed'),
  deliveryPollFailed: loopFailure('delivery poll failed'),
} as const satisfies Readonly<Record<string, LogEvent>>

/** Metrics of webhooks, read by `api/metrics.ts`. docs/metrics.md lists them. */
export const WEBHOOK_METRICS = {
  attempts: {
    name: 'ev_webhook_attempts_total',
    help: 'Webhook requests since the start of the process, by outcome: delivered, retried or failed',
    labelNames: ['outcome'],
  },
  requestsInFlight: {
    name: 'ev_webhook_requests_in_flight',
    help: 'Webhook requests in flight',
  },
  deliveriesOpen: {
    name: 'ev_webhook_deliveries_open',
    help: 'Undelivered events, counted for each webhook endpoint, including disabled ones',
  },
} as const satisfies Readonly<Record<string, MetricInfo>>
