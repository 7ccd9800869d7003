import type { LogEvent } from '../platform/log.ts'

/** Log events of the queue of tasks. */
export const QUEUE_LOG = {
  taskRetried: {
    level: 'error',
    message: 'task failed; will retry',
    fields: ['key', 'kind', 'error'],
  },
  databaseError: { level: 'error', message: 'queue database error', fields: ['error'] },
  databaseAvailable: { level: 'info', message: 'queue database available again', fields: [] },
  maintenanceFailed: { level: 'error', message: 'queue maintenance failed', fields: ['error'] },
  shutdownFailed: { level: 'error', message: 'queue shutdown failed', fields: ['error'] },
  tasksNotClaimed: {
    level: 'error',
    message: 'tasks could not be claimed; will retry',
    fields: ['kind', 'error'],
  },
  claimsNotRenewed: {
    level: 'error',
    message: 'claims could not be renewed; will retry',
    fields: ['kind', 'error'],
  },
  taskNotEnqueued: {
    level: 'error',
    message: 'task could not be re-enqueued; will retry',
    fields: ['kind', 'key', 'error'],
  },
  completionNotWritten: {
    level: 'error',
    message: 'task completion could not be written; will retry',
    fields: ['kind', 'error'],
  },
  bossWarning: { level: 'warn', message: 'pg-boss warning', fields: ['error'] },
} as const satisfies Readonly<Record<string, LogEvent>>
