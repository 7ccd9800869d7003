import { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { CLASSES } from '../engine/verdict/reason.ts'
import { jobError } from '../jobs/errors.ts'
import {
  EVERY_DAYS_MAX,
  presentSchedule,
  RUN_ERRORS,
  type Schedule,
} from '../jobs/schedules/schedule.ts'
import { listSchedules } from '../jobs/schedules/schedule-store.ts'
import {
  createSchedule,
  deleteSchedule,
  getSchedule,
  updateSchedule,
} from '../jobs/schedules/schedules.ts'
import type { RunError } from '../jobs/tables.ts'
import { omitUndefined } from '../platform/omit-undefined.ts'
import type { ApiDeps } from './api-deps.ts'
import type { Env } from './context.ts'
import { type LoadJobDeps, loadJob, noSuchJob } from './jobs/load-job.ts'
import { ReverifyRequest } from './jobs/reverify.ts'
import { readNotify } from './lists/queue.ts'
import { answerWith, type IdempotencyDeps } from './middleware/idempotency.ts'
import { pageQuery, parseCursor, toPage, toPageBody } from './query.ts'
import { newRouter, route } from './route.ts'
import { json, pageBody, successBody } from './schemas/answers.ts'
import { idField, idParams, time } from './schemas/fields.ts'

type ScheduleDeps = Pick<ApiDeps, 'database' | 'guard' | 'random'> & LoadJobDeps & IdempotencyDeps

// Schemas of schedules.

const { only, older_than_days } = ReverifyRequest.shape

const every_days = z
  .int()
  .min(1)
  .max(EVERY_DAYS_MAX)
  .openapi({ description: 'Days between two runs.', example: 30 })
const notify = z.boolean().openapi({
  description: 'Whether to email the address of the account at the end of each run.',
  example: false,
})
const active = z.boolean().openapi({
  description: 'False if the schedule is paused.',
  example: true,
})

const NewScheduleRequest = z
  .strictObject({
    job_id: idField('The list to re-verify. It can still be running.', 'job_xyz789'),
    every_days,
    only,
    older_than_days,
    notify: notify.optional(),
  })
  .openapi('NewScheduleRequest')

const ScheduleChanges = z
  .strictObject({
    every_days: every_days.optional(),
    only: only
      .unwrap()
      .nullable()
      .optional()
      .openapi({ example: ['unknown'] }),
    older_than_days: older_than_days.unwrap().nullable().optional().openapi({ example: 90 }),
    notify: notify.optional(),
    active: active.optional(),
  })
  .openapi('ScheduleChanges')

const ERROR_CODES = Object.keys(RUN_ERRORS) as [RunError, ...RunError[]]

const ScheduleFields = z
  .object({
    id: z.string().openapi({ example: 'sch_abc123' }),
    job_id: z.string().openapi({
      description: 'The list for which the schedule was created.',
      example: 'job_xyz789',
    }),
    every_days,
    only: z
      .array(z.enum(CLASSES))
      .nullable()
      .openapi({
        description: 'Re-verify the rows with these classes. Null: all classes.',
        example: ['unknown'],
      }),
    older_than_days: z.int().nullable().openapi({
      description:
        'Re-verify the rows whose results are older than this number of days. Null: any age.',
      example: 90,
    }),
    notify,
    active,
    sandbox: z.literal(true).optional().openapi({ description: 'The results are simulated.' }),
    next_run_at: time.nullable().openapi({
      description: 'Null while the schedule is paused.',
      example: '2026-04-20T10:30:00.000Z',
    }),
    last_run: z
      .object({
        at: time,
        status: z.enum(['started', 'skipped', 'failed']).openapi({
          description:
            '`started`: a job was created. `skipped`: there was nothing to re-verify. `failed`: no job could be created. The schedule stays active in all three cases.',
          example: 'started',
        }),
      })
      .nullable(),
    last_error: z
      .object({
        code: z.enum(ERROR_CODES).openapi({ example: 'results_deleted' }),
        message: z.string().openapi({ example: 'The results of the list were deleted.' }),
      })
      .nullable()
      .openapi({
        example: null,
        description:
          'Why the last run created no job, or why the schedule was paused (`results_deleted`). Null if the last run created a job.',
      }),
    last_job_id: z.string().nullable().openapi({
      description: 'The job of the latest run. The next run re-verifies it.',
      example: 'job_abc123',
    }),
    created_at: time.openapi({ example: '2026-02-19T10:30:00.000Z' }),
  })
  .openapi('Schedule')

const ScheduleAnswer = successBody(ScheduleFields).openapi('ScheduleAnswer')

const SchedulePage = pageBody(ScheduleFields).openapi('SchedulePage')

/** A small object. */
const BODY_MAX = 4 * 1024

/** Routes of schedules. */
export function scheduleRoutes(service: ScheduleDeps) {
  const router = newRouter()
  const present = (schedule: Schedule) => presentSchedule(schedule, service.database.steadyClock)

  const list = route(service, 'GET /v1/schedules', {
    id: 'listSchedules',
    summary: 'List schedules, newest first',
    description:
      'With `X-EV-Sandbox: true`, returns the schedules of simulated lists, otherwise those of live lists.',
    scope: 'jobs:read',
    query: z.object({
      ...pageQuery,
      job_id: z.string().max(100).optional().openapi({
        description:
          'Only schedules that were created for this job, or whose latest run is this job.',
      }),
    }),
    answer: json(SchedulePage, 'One page of schedules', {
      data: { next_cursor: null, has_more: false },
    }),
  })
  router.handle(list, async c => {
    const { limit, cursor, job_id: jobId } = c.req.valid('query')
    const found = await listSchedules(service.database, {
      accountId: c.get('caller').account.id,
      sandbox: c.get('sandbox'),
      jobId,
      after: parseCursor(cursor),
      max: limit + 1,
    })
    const { rows, next } = toPage(found, limit)
    return c.json(toPageBody(rows.map(present), next), 200)
  })

  const create = route(service, 'POST /v1/schedules', {
    id: 'createSchedule',
    summary: 'Re-verify a list at intervals',
    description:
      "Each run re-verifies the results of the latest run, as `POST /v1/jobs/{id}/reverify` does. The first run is `every_days` from now. The schedule belongs to the account: deleting the API key that created it doesn't delete the schedule.",
    scope: 'verify:bulk',
    idempotent: true,
    body: {
      schema: NewScheduleRequest,
      example: { only: ['unknown'], older_than_days: 90 },
      max: BODY_MAX,
    },
    answer: json(ScheduleAnswer, 'The schedule', {
      data: { last_run: null, last_job_id: null },
    }),
    status: 201,
    errors: ['not_found', 'job_not_reverifiable'],
  })
  router.handle(create, async c => {
    const { job_id, every_days, only, older_than_days, notify } = c.req.valid('json')
    const job = await loadJob(c, service, job_id)
    // A request to the sandbox must not cause a charge.
    if (c.get('sandbox') && job.sandbox === 0) noSuchJob(job_id)
    const input = {
      job,
      keyId: c.get('caller').key.id,
      everyDays: every_days,
      classes: only ?? null,
      olderThanDays: older_than_days ?? null,
      notify: readNotify(c, notify),
    }
    return answerWith<Schedule>(
      c,
      service,
      beforeCommit => createSchedule(service, input, beforeCommit),
      created => ({
        status: 201,
        body: { success: true, data: present(created) },
      }),
    )
  })

  const get = route(service, 'GET /v1/schedules/{id}', {
    id: 'getSchedule',
    summary: 'Get a schedule',
    scope: 'jobs:read',
    params: scheduleParams,
    answer: json(ScheduleAnswer, 'The schedule'),
  })
  router.handle(get, async c => {
    const schedule = await loadSchedule(c, service, c.req.valid('param').id)
    return c.json({ success: true as const, data: present(schedule) }, 200)
  })

  const update = route(service, 'PATCH /v1/schedules/{id}', {
    id: 'updateSchedule',
    summary: 'Change, pause or resume a schedule',
    description:
      'Fields that you omit keep their values. If you change `every_days` or resume the schedule, the next run is `every_days` from now.',
    scope: 'verify:bulk',
    params: scheduleParams,
    body: { schema: ScheduleChanges, example: { active: false }, max: BODY_MAX },
    answer: json(ScheduleAnswer, 'The schedule', {
      data: { active: false, next_run_at: null },
    }),
  })
  router.handle(update, async c => {
    const { every_days, only, older_than_days, notify, active } = c.req.valid('json')
    const { id, account_id } = await loadSchedule(c, service, c.req.valid('param').id)
    const changes = omitUndefined({
      everyDays: every_days,
      classes: only,
      olderThanDays: older_than_days,
      notify: notify === undefined ? undefined : readNotify(c, notify),
      active,
    })
    const changed = await updateSchedule(service, { id, accountId: account_id }, changes)
    return c.json({ success: true as const, data: present(changed) }, 200)
  })

  const remove = route(service, 'DELETE /v1/schedules/{id}', {
    id: 'deleteSchedule',
    summary: 'Delete a schedule',
    description: 'The jobs it created are kept.',
    scope: 'jobs:write',
    params: scheduleParams,
    answer: { description: 'The schedule is deleted' },
    status: 204,
  })
  router.handle(remove, async c => {
    const { id, account_id } = await loadSchedule(c, service, c.req.valid('param').id)
    await deleteSchedule(service, { id, accountId: account_id })
    return c.body(null, 204)
  })

  return router
}

const scheduleParams = idParams('ID of the schedule.', 'sch_abc123')

/** Loads a schedule. One of another account is reported as missing, and a live one for a test key. */
async function loadSchedule(c: Context<Env>, service: ScheduleDeps, id: string): Promise<Schedule> {
  const { account, key } = c.get('caller')
  const schedule = await getSchedule(service.database.reader, { id, accountId: account.id })
  if (key.isTest && schedule.sandbox === 0) throw jobError('schedule_not_found', { id })
  return schedule
}
