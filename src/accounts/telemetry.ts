import type { LogEvent } from '../platform/log.ts'
import type { MetricInfo } from '../platform/metric.ts'

/** Log events of accounts, credits, rate limits and sign-in. */
export const ACCOUNT_LOG = {
  ledgerRetried: {
    level: 'error',
    message: 'usage ledger write failed; will retry',
    fields: ['entries', 'tries', 'why'],
  },
  ledgerEntriesLost: {
    level: 'error',
    message: 'usage ledger write failed; entries lost',
    fields: ['entries', 'tries', 'why'],
  },
  quotaEventLost: { level: 'warn', message: 'quota event could not be written', fields: ['why'] },
  windowsNotDeleted: {
    level: 'warn',
    message: 'expired rate limit windows could not be deleted',
    fields: ['file', 'why'],
  },
  chargeNotRefunded: {
    level: 'warn',
    message: 'rate limit charge could not be refunded',
    fields: ['why'],
  },
  rateLimitsNotWritten: {
    level: 'error',
    message: 'rate limits could not be written',
    fields: ['file', 'why'],
  },
  rateLimitFileDamaged: {
    level: 'warn',
    message: 'rate limit file is damaged; creating a new one',
    fields: ['file', 'why'],
  },
  providerFailed: {
    level: 'warn',
    message: 'sign-in with the identity provider failed',
    fields: ['step', 'fault', 'reason', 'why'],
  },
} as const satisfies Readonly<Record<string, LogEvent>>

/** Metrics of the usage of accounts, read by `api/metrics.ts`. docs/metrics.md lists them. */
export const ACCOUNT_METRICS = {
  verdicts: {
    name: 'ev_verdicts',
    help: 'Addresses verified since the start of the process, by reason',
    labelNames: ['reason'],
  },
  verifications: {
    name: 'ev_verifications',
    help: 'Addresses verified in total, by class and whether the answer was cached',
    labelNames: ['class', 'cached'],
  },
} as const satisfies Readonly<Record<string, MetricInfo>>
