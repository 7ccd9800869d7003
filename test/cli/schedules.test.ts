import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openDatabase } from '../../src/db/database.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { addAccount } from '../support/account-rows.ts'
import { emptyFolder, runEv } from '../support/cli.ts'
import { seedJob } from '../support/job-rows.ts'

const schedules = (home: string, ...args: readonly string[]) =>
  runEv(['schedules', ...args, '--data-dir', 'data'], { home, offline: true })

async function homeWithList() {
  const home = emptyFolder()
  const database = await openDatabase(`sqlite:${join(home, 'data/ev.sqlite')}`, systemClock)
  await addAccount(database, 'acc_1')
  await seedJob(database, { id: 'job_0123456789', texts: ['valid@a.example'] })
  await database.close()
  return home
}

test('a schedule is created, listed, shown, paused, resumed and deleted', async () => {
  const home = await homeWithList()
  expect((await schedules(home)).stdout).toMatch(/^No schedules\. To create one/)
  const conditions = ['--only', 'unknown', '--older-than', '90']
  const created = await schedules(home, 'create', 'job_0123', '--every', '30', ...conditions)
  expect(created.stdout).toMatch(
    /^Created sch_\w+\. The service verifies job_0123456789 again every 30 days, first on /,
  )
  const id = /sch_\w+/.exec(created.stdout)?.[0] ?? ''
  expect((await schedules(home)).stdout).toMatch(
    /sch_\w+ +acc_1 +30 days +unknown or older than 90 days .* job_0123456789\n$/,
  )
  expect(JSON.parse((await schedules(home, 'list', '--json')).stdout)).toMatchObject([
    { id, account_id: 'acc_1', every_days: 30, only: ['unknown'], active: true },
  ])
  expect((await schedules(home, 'pause', id)).stdout).toBe(`Paused ${id}.\n`)
  expect((await schedules(home, 'show', id)).stdout).toMatch(/next run +paused\n/)
  expect((await schedules(home, 'resume', id)).stdout).toMatch(/^Resumed sch_\w+\. The service/)
  expect((await schedules(home, 'delete', id, '--yes')).stdout).toBe(`Deleted schedule ${id}.\n`)
  expect(await schedules(home, 'show', id)).toMatchObject({
    code: 66,
    stderr: expect.stringContaining(`Schedule ${id} does not exist.`),
  })
})

test.each([
  [['create', 'job_0123', '--every', '0'], /--every is "0"; it takes a whole number from 1 to 365/],
  [['create', 'job_0123', '--every', '30', '--only', 'valid'], /--only has "valid"/],
  [['create', 'job_0123', '--every', '30', '--notify'], /--notify needs an email address/],
  [['create', 'job_9999', '--every', '30'], /Job job_9999 does not exist/],
  [['stop'], /Unknown command "ev schedules stop"/],
])('%j is refused', async (args, message) => {
  const home = await homeWithList()
  const { code, stderr } = await schedules(home, ...args)
  expect(code).toBeGreaterThan(0)
  expect(stderr).toMatch(message)
})
