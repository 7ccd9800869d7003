import type { LogEvent } from '../platform/log.ts'
import { loopFailure } from '../platform/loop.ts'

/** Log events of the dashboard. */
export const DASHBOARD_LOG = {
  pageFailed: { level: 'error', message: 'a page failed', fields: ['requestId', 'why'] },
  lastUseNotWritten: {
    level: 'warn',
    message: 'last use of a session could not be stored',
    fields: ['why'],
  },
  sessionCheckFailed: loopFailure('the check of a dashboard session failed'),
} as const satisfies Readonly<Record<string, LogEvent>>
