import type { LogEvent } from '../platform/log.ts'

/** Log events of the start and the supervision of jobs. */
export const COMPOSE_LOG = {
  jobsResumed: { level: 'info', message: 'open jobs resumed', fields: ['jobs'] },
  jobFinishing: {
    level: 'info',
    message: 'job is finished without further retries',
    fields: ['job'],
  },
} as const satisfies Readonly<Record<string, LogEvent>>
