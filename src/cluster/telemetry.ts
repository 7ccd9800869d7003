import type { LogEvent } from '../platform/log.ts'
import { loopFailure } from '../platform/loop.ts'
import type { MetricInfo } from '../platform/metric.ts'

/** Log events of the cluster. */
export const CLUSTER_LOG = {
  membershipExpired: {
    level: 'warn',
    message: 'membership expired; aborting in-flight work',
    fields: ['member'],
  },
  memberExpired: { level: 'warn', message: 'member expired', fields: ['member'] },
  memberNotDeregistered: {
    level: 'error',
    message: 'member could not be deregistered; it will expire',
    fields: ['why'],
  },
  catchAllNotShared: {
    level: 'warn',
    message: 'catch-all results could not be shared',
    fields: ['error'],
  },
  learnedRepliesNotWritten: {
    level: 'warn',
    message: 'learned replies could not be written',
    fields: ['error'],
  },
  witnessesNotWritten: {
    level: 'warn',
    message: 'recipients that servers accepted lately could not be written',
    fields: ['error'],
  },
  rateLimitsUnavailable: {
    level: 'error',
    message: 'shared rate limits unavailable; probing paused',
    fields: ['error'],
  },
  rateLimitsAvailable: { level: 'info', message: 'shared rate limits available again', fields: [] },
  heartbeatFailed: loopFailure('membership heartbeat failed'),
  memberCheckFailed: loopFailure('membership check failed'),
} as const satisfies Readonly<Record<string, LogEvent>>

/** Metrics of the cluster, read by `api/metrics.ts`. docs/metrics.md lists them. */
export const CLUSTER_METRICS = {
  members: {
    name: 'ev_members',
    help: 'Live processes that share the database, by role; none if the database cannot be shared',
    labelNames: ['role'],
  },
} as const satisfies Readonly<Record<string, MetricInfo>>
