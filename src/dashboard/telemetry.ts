import type { LogEvent } from '../platform/log.ts'

/** Log events of the dashboard. */
export const DASHBOARD_LOG = {
  pageFailed: { level: 'error', message: 'a page failed', fields: ['requestId', 'why'] },
  lastUseNotWritten: {
    level: 'warn',
    message: 'last use of a session could not be stored',
    fields: ['why'],
  },
} as const satisfies Readonly<Record<string, LogEvent>>
