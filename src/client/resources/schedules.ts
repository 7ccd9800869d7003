import type { CallOptions, Connection, CreateOptions } from '../connection.ts'
import type {
  ListSchedulesQuery,
  NewScheduleRequest,
  Schedule,
  ScheduleAnswer,
  ScheduleChanges,
  SchedulePage,
} from '../types.ts'
import { createListing, type Listing, unwrapData } from './pagination.ts'

/** Schedules, which verify lists again at intervals. */
export type Schedules = {
  /** Lists schedules, newest first. */
  list(query?: Omit<ListSchedulesQuery, 'cursor'>, options?: CallOptions): Listing<Schedule>
  get(scheduleId: string, options?: CallOptions): Promise<Schedule>
  create(schedule: NewScheduleRequest, options?: CreateOptions): Promise<Schedule>
  /** Changes, pauses (`active: false`) or resumes a schedule. */
  update(
    scheduleId: string,
    changes: Partial<ScheduleChanges>,
    options?: CallOptions,
  ): Promise<Schedule>
  /** Deletes a schedule. The jobs that it created stay. */
  delete(scheduleId: string, options?: CallOptions): Promise<void>
}

export function createSchedulesResource({ json }: Connection): Schedules {
  return {
    list: (query, options) =>
      createListing(cursor =>
        unwrapData(
          json<SchedulePage>({ method: 'GET', path: PATH, query: { ...query, cursor } }, options),
        ),
      ),
    get: (scheduleId, options) =>
      unwrapData(json<ScheduleAnswer>({ method: 'GET', path: pathOf(scheduleId) }, options)),
    create: (body, options) =>
      unwrapData(
        json<ScheduleAnswer>({ method: 'POST', path: PATH, body, creates: true }, options),
      ),
    update: (scheduleId, body, options) =>
      unwrapData(
        json<ScheduleAnswer>({ method: 'PATCH', path: pathOf(scheduleId), body }, options),
      ),
    delete: (scheduleId, options) => json({ method: 'DELETE', path: pathOf(scheduleId) }, options),
  }
}

const PATH = '/v1/schedules'
const pathOf = (scheduleId: string) => `${PATH}/${encodeURIComponent(scheduleId)}`
