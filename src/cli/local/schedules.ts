import { accountIn } from '../../accounts/account-store.ts'
import type { Config } from '../../config/settings.ts'
import type { SteadyClock } from '../../db/steady-clock.ts'
import { presentSchedule, type Schedule } from '../../jobs/schedules/schedule.ts'
import { allSchedules } from '../../jobs/schedules/schedule-store.ts'
import {
  createSchedule,
  deleteSchedule,
  getSchedule,
  updateSchedule,
} from '../../jobs/schedules/schedules.ts'
import { EvError } from '../../platform/error.ts'
import type { CliContext } from '../context.ts'
import { withJob } from '../jobs/job-status.ts'
import type { SchedulesBackend } from '../remote/schedules.ts'
import { selectAccount } from '../select-account.ts'
import { withAccounts } from './with-accounts.ts'

/** Manages the schedules of all accounts in the database of this machine. */
export function createLocalSchedules(context: CliContext, config: Config): SchedulesBackend {
  return {
    list: account =>
      withAccounts(context, config, async (database, accounts) => {
        const owner = account === undefined ? null : selectAccount(accounts, account).id
        return (await allSchedules(database))
          .filter(({ account_id }) => owner === null || account_id === owner)
          .map(schedule => present(schedule, database.steadyClock))
      }),
    get: id =>
      withAccounts(context, config, async database =>
        present(await getSchedule(database.db, { id, accountId: null }), database.steadyClock),
      ),
    create: (jobId, { every_days, only, older_than_days, notify = false }) =>
      withJob(context, config, jobId, async (database, job) => {
        const { clock, random } = context
        const account = await accountIn(database.db, job.account_id ?? '')
        if (notify && account !== null && account.email === null) {
          throw new EvError(
            'usage',
            '--notify needs an email address of the account. Set it with "ev accounts set-email".',
          )
        }
        const created = await createSchedule(
          { database, clock, random },
          {
            job,
            keyId: job.key_id ?? '',
            everyDays: every_days,
            classes: only ?? null,
            olderThanDays: older_than_days ?? null,
            notify,
          },
        )
        return present(created, database.steadyClock)
      }),
    setActive: (id, active) =>
      withAccounts(context, config, async database => {
        const changed = await updateSchedule({ database }, { id, accountId: null }, { active })
        return present(changed, database.steadyClock)
      }),
    delete: id =>
      withAccounts(context, config, database =>
        deleteSchedule({ database }, { id, accountId: null }),
      ),
  }
}

const present = (schedule: Schedule, clock: SteadyClock) => ({
  ...presentSchedule(schedule, clock),
  account_id: schedule.account_id,
})
