import { beforeAll, expect, test } from 'vitest'
import { startService, verifyList } from '../support/cli-service.ts'
import { ev, homeWith, newKey, read } from '../support/cli-webhooks.ts'

let home: string
let job: string
beforeAll(async () => {
  home = await homeWith('Shop')
  const key = await newKey(home)
  const service = await startService(home)
  job = await verifyList(service, key, { sandbox: true, body: { emails: ['valid@a.example'] } })
  await service.end('SIGTERM')
})

const schedules = (...args: readonly string[]) => ev(home, 'schedules', ...args)

test('a schedule is created, listed, shown, paused, resumed and deleted', async () => {
  expect((await schedules()).stdout).toMatch(/^No schedules\. To create one/)
  const conditions = ['--only', 'unknown', '--older-than', '90']
  const created = await schedules('create', job.slice(0, 16), '--every', '30', ...conditions)
  expect(created.stdout).toMatch(
    new RegExp(`^Created sch_\\w+\\. The service verifies ${job} again every 30 days, first on `),
  )
  const id = /sch_\w+/.exec(created.stdout)?.[0] ?? ''
  expect((await schedules()).stdout).toMatch(
    new RegExp(`sch_\\w+ +acc_\\w+ +30 days +unknown or older than 90 days .* ${job}\\n$`),
  )
  expect(await read(home, 'schedules', 'list')).toMatchObject([
    {
      id,
      account_id: expect.stringMatching(/^acc_/),
      every_days: 30,
      only: ['unknown'],
      active: true,
    },
  ])
  expect((await schedules('pause', id)).stdout).toBe(`Paused ${id}.\n`)
  expect((await schedules('show', id)).stdout).toMatch(/next run +paused\n/)
  expect((await schedules('resume', id)).stdout).toMatch(/^Resumed sch_\w+\. The service/)
  expect((await schedules('delete', id, '--yes')).stdout).toBe(`Deleted schedule ${id}.\n`)
  expect(await schedules('show', id)).toMatchObject({
    code: 66,
    stderr: expect.stringContaining(`Schedule ${id} does not exist.`),
  })
})

test.each([
  [['create', 'JOB', '--every', '0'], /--every is "0"; it takes a whole number from 1 to 365/],
  [['create', 'JOB', '--every', '30', '--only', 'valid'], /--only has "valid"/],
  [['create', 'JOB', '--every', '30', '--notify'], /--notify needs an email address/],
  [['create', 'job_9999', '--every', '30'], /Job job_9999 does not exist/],
  [['stop'], /Unknown command "ev schedules stop"/],
])('%j is refused', async (args, message) => {
  const { code, stderr } = await schedules(...args.map(arg => (arg === 'JOB' ? job : arg)))
  expect(code).toBeGreaterThan(0)
  expect(stderr).toMatch(message)
})
