import type { EvClient } from '../../client/client.ts'
import type { NewScheduleRequest, Schedule } from '../../client/types.ts'
import { listAll, ownAccount } from '../service.ts'
import { resolveJobId } from './jobs.ts'

/** The schedules that the commands manage: of a database, or of a service. */
export type SchedulesBackend = {
  /** Lists the schedules of an account, by ID or name, or of all; newest first. */
  list(account: string | undefined): Promise<readonly OwnedSchedule[]>
  get(id: string): Promise<OwnedSchedule>
  /** `jobId` is the ID of a list, or a unique prefix. */
  create(jobId: string, options: ScheduleOptions): Promise<OwnedSchedule>
  setActive(id: string, active: boolean): Promise<OwnedSchedule>
  delete(id: string): Promise<void>
}

export type OwnedSchedule = Schedule & { readonly account_id: string }

type ScheduleOptions = Omit<NewScheduleRequest, 'job_id'>

/** Manages the schedules of the account of a key. */
export function createRemoteSchedules(client: EvClient): SchedulesBackend {
  const { schedules } = client
  const withOwner = async (schedule: Schedule) => ({
    ...schedule,
    account_id: (await ownAccount(client, undefined)).id,
  })
  return {
    async list(account) {
      const { id } = await ownAccount(client, account)
      const all = await listAll(schedules.list({ limit: 100 }))
      return all.map(schedule => ({ ...schedule, account_id: id }))
    },
    get: async id => withOwner(await schedules.get(id)),
    async create(jobId, options) {
      const job_id = await resolveJobId(client, jobId)
      return withOwner(await schedules.create({ ...options, job_id }))
    },
    setActive: async (id, active) => withOwner(await schedules.update(id, { active })),
    delete: id => schedules.delete(id),
  }
}
