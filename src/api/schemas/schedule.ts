import { z } from '@hono/zod-openapi'
import { EVERY_DAYS_MAX, RUN_ERRORS } from '../../jobs/schedules/schedule.ts'
import type { RunError } from '../../jobs/tables.ts'
import { pageFields } from '../cursor.ts'
import { STATUSES } from './result.ts'
import { ReverifyRequest } from './reverify.ts'

// Schemas of schedules.

const { only, older_than_days } = ReverifyRequest.shape

const every_days = z
  .int()
  .min(1)
  .max(EVERY_DAYS_MAX)
  .openapi({ description: 'Days between two runs.' })
const notify = z.boolean().openapi({
  description: 'Whether a mail is sent to the address of the account at the end of each run.',
})
const active = z.boolean().openapi({ description: 'False if the schedule is paused.' })

export const NewScheduleRequest = z
  .strictObject({
    job_id: z.string().max(100).openapi({
      description: 'The list to verify again. It may still be in process.',
    }),
    every_days,
    only,
    older_than_days,
    notify: notify.optional(),
  })
  .openapi('NewScheduleRequest')

export const NEW_SCHEDULE_EXAMPLE = {
  ...{ job_id: 'job_xyz789', every_days: 30 },
  ...{ only: ['unknown' as const], older_than_days: 90 },
}

export const ScheduleChanges = z
  .strictObject({
    every_days: every_days.optional(),
    only: only.unwrap().nullable().optional(),
    older_than_days: older_than_days.unwrap().nullable().optional(),
    notify: notify.optional(),
    active: active.optional(),
  })
  .openapi('ScheduleChanges')

const time = z.string().openapi({ format: 'date-time' })

const ERROR_CODES = Object.keys(RUN_ERRORS) as [RunError, ...RunError[]]

const ScheduleFields = z
  .object({
    id: z.string(),
    job_id: z.string().openapi({ description: 'The list for which the schedule was created.' }),
    every_days,
    only: z.array(z.enum(STATUSES)).nullable().openapi({
      description:
        'Rows with results of these classes are verified again. Null: no such condition.',
    }),
    older_than_days: z.int().nullable().openapi({
      description: 'Rows with older results are verified again. Null: no such condition.',
    }),
    notify,
    active,
    sandbox: z.literal(true).optional().openapi({ description: 'The results are simulated.' }),
    next_run_at: time.nullable().openapi({ description: 'Null while the schedule is paused.' }),
    last_run: z
      .object({
        at: time,
        status: z.enum(['started', 'skipped', 'failed']).openapi({
          description:
            '`started`: a job was created. `skipped`: there was nothing to do. `failed`: no job could be created. The schedule stays active in all cases.',
        }),
      })
      .nullable(),
    last_error: z
      .object({ code: z.enum(ERROR_CODES), message: z.string() })
      .nullable()
      .openapi({
        description:
          'Why the last run created no job, or why the schedule was paused (`results_deleted`). Null if the last run created a job.',
      }),
    last_job_id: z.string().nullable().openapi({
      description: 'The job of the latest run, which the next run verifies again.',
    }),
    created_at: time,
  })
  .openapi('Schedule')

export const ScheduleAnswer = z
  .object({ success: z.literal(true), data: ScheduleFields })
  .openapi('ScheduleAnswer')

export const SchedulePage = z
  .object({
    success: z.literal(true),
    data: z.object({ items: z.array(ScheduleFields), ...pageFields }),
  })
  .openapi('SchedulePage')

const SCHEDULE = {
  ...{ id: 'sch_abc123', ...NEW_SCHEDULE_EXAMPLE, notify: false, active: true },
  next_run_at: '2026-04-20T10:30:00.000Z',
  last_run: { at: '2026-03-21T10:30:00.000Z', status: 'started' as const },
  ...{ last_error: null, last_job_id: 'job_abc123', created_at: '2026-02-19T10:30:00.000Z' },
}

export const SCHEDULE_EXAMPLE = { success: true as const, data: SCHEDULE }

export const CREATED_SCHEDULE_EXAMPLE = {
  success: true as const,
  data: { ...SCHEDULE, last_run: null, last_job_id: null },
}

export const SCHEDULE_PAGE_EXAMPLE = {
  success: true as const,
  data: { items: [SCHEDULE], next_cursor: null, has_more: false },
}
