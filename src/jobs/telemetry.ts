import type { LogEvent } from '../platform/log.ts'
import { loopFailure } from '../platform/loop.ts'
import type { MetricInfo } from '../platform/metric.ts'

/** Log events of jobs, lists and schedules. */
export const JOB_LOG = {
  startRetried: { level: 'error', message: 'job start failed; retrying', fields: ['error'] },
  startDelayed: { level: 'error', message: 'job cannot be started; retrying', fields: ['error'] },
  listRetried: { level: 'error', message: 'list failed; retrying', fields: ['error'] },
  claimRetried: {
    level: 'error',
    message: 'rows could not be claimed; retrying',
    fields: ['error'],
  },
  rowsNotReleased: { level: 'error', message: 'rows could not be released', fields: ['error'] },
  resultsNotWritten: {
    level: 'error',
    message: 'results cannot be written; retrying',
    fields: ['error'],
  },
  failed: {
    level: 'error',
    message: 'job failed with an internal error',
    fields: ['job', 'error'],
  },
  notMarkedFailed: {
    level: 'error',
    message: 'job could not be marked as failed',
    fields: ['job', 'error'],
  },
  onFailureFailed: {
    level: 'error',
    message: 'onFailure of a job failed',
    fields: ['job', 'error', 'failure'],
  },
  diskLow: {
    level: 'error',
    message: 'disk space is low; new lists are refused',
    fields: ['free', 'minBytes'],
  },
  diskRecovered: {
    level: 'info',
    message: 'disk space has recovered; new lists are accepted',
    fields: ['free'],
  },
  mailRetried: {
    level: 'warn',
    message: 'job mail could not be sent; will retry',
    fields: ['jobId', 'accountId', 'why'],
  },
  mailGivenUp: {
    level: 'warn',
    message: 'job mail could not be sent; giving up',
    fields: ['jobId', 'accountId', 'why'],
  },
  creditsReleased: {
    level: 'warn',
    message: 'credits held for no verification released',
    fields: ['released'],
  },
  scheduleRunStarted: {
    level: 'info',
    message: 'schedule run started',
    fields: ['scheduleId', 'accountId', 'jobId'],
  },
  scheduleRunRefused: {
    level: 'info',
    message: 'schedule run created no job',
    fields: ['scheduleId', 'accountId', 'reason'],
  },
  schedulePollFailed: loopFailure('schedule poll failed'),
  cancellationPollFailed: loopFailure('the poll for cancelled jobs failed'),
  awaitedPollFailed: loopFailure('the poll for awaited jobs failed'),
  unpinFailed: loopFailure('the release of items of absent egresses failed'),
  finishFailed: loopFailure('finishing lists failed'),
  claimPollFailed: loopFailure('the poll for rows to claim failed'),
  mailPollFailed: loopFailure('job mail poll failed'),
  reservationCheckFailed: loopFailure('reservation check failed'),
} as const satisfies Readonly<Record<string, LogEvent>>

/** Metrics of jobs, read by `api/metrics.ts`. docs/metrics.md lists them. */
export const JOB_METRICS = {
  jobs: {
    name: 'ev_jobs',
    help: 'Jobs in progress',
  },
  queueEntries: {
    name: 'ev_queue_entries',
    help: 'Queue entries, by state',
    labelNames: ['state'],
  },
  diskLow: {
    name: 'ev_disk_low',
    help: '1 while the disk of the data directory is almost full and new lists are refused, otherwise 0',
  },
} as const satisfies Readonly<Record<string, MetricInfo>>
