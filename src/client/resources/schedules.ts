import type { CallOptions, Connection, CreateOptions } from '../connection.ts'
import { encodeId } from '../path-id.ts'
import type {
  ListSchedulesQuery,
  NewScheduleRequest,
  Schedule,
  ScheduleAnswer,
  ScheduleChanges,
  SchedulePage,
} from '../types.ts'
import { createRequests, type Listing } from './requests.ts'

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
  /** Deletes a schedule. The jobs that it created are kept. */
  delete(scheduleId: string, options?: CallOptions): Promise<void>
}

export function createSchedulesResource(connection: Connection): Schedules {
  const requests = createRequests(connection)
  return {
    list: (query, options) => requests.list<SchedulePage>(PATH, query, options),
    get: (scheduleId, options) => requests.get<ScheduleAnswer>(pathOf(scheduleId), options),
    create: (schedule, options) => requests.create<ScheduleAnswer>(PATH, schedule, options),
    update: (scheduleId, changes, options) =>
      requests.update<ScheduleAnswer>(pathOf(scheduleId), changes, options),
    delete: (scheduleId, options) => requests.delete(pathOf(scheduleId), options),
  }
}

const PATH = '/v1/schedules'
const pathOf = (scheduleId: string) => `${PATH}/${encodeId(scheduleId)}`
