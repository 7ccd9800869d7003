import { expect, test } from 'vitest'
import { startRetentionJob } from '../../../src/maintenance/retention-job.ts'
import { DAY, HOUR } from '../../../src/platform/clock.ts'
import { giveResults } from '../../support/job-rows.ts'
import { createTestService } from '../../support/service.ts'
import { drainEventLoop } from '../../support/wait.ts'

const SANDBOX = { 'X-EV-Sandbox': 'true' }

test('simulated jobs and their history are deleted after a day, live ones after their retention period', async () => {
  const { request, json, database, clock, log, ledger } = await services()
  const ids: string[] = []
  for (const headers of [SANDBOX, {}]) {
    const body = { emails: ['valid@a.test', 'invalid@a.test'] }
    const { job_id } = await json('/v1/verify/batch', { body, headers })
    await giveResults(database, String(job_id), 2)
    ids.push(String(job_id))
    await json('/v1/verify/single', { body: { email: 'ann@a.test' }, headers })
  }
  await ledger.flushed()
  const retentionJob = startRetentionJob({
    database,
    clock,
    log,
    dataDir: '/nowhere',
    keepResultsMs: 30 * DAY,
    keepHistoryMs: 90 * DAY,
  })
  const seen = async () => ({
    jobs: await Promise.all(ids.map(async id => (await request(`/v1/jobs/${id}`)).status)),
    simulated: await historyOf(SANDBOX),
    live: await historyOf({}),
  })
  const historyOf = async (headers: Record<string, string>) => {
    const { data } = await json('/v1/history', { headers })
    return (data as { items: unknown[] }).items.length
  }
  /** Waits until the retention job has finished and sleeps until the next hour. */
  const hour = async () => {
    await clock.advance(HOUR)
    while (clock.pending === 0) await drainEventLoop()
  }
  while (clock.pending === 0) await drainEventLoop()
  for (let n = 0; n < 23; n++) await hour()
  expect(await seen()).toMatchObject({ jobs: [200, 200], simulated: 1, live: 1 })
  for (let n = 0; n < 2; n++) await hour()
  expect(await seen()).toEqual({ jobs: [404, 200], simulated: 0, live: 1 })
  expect(await database.db.selectFrom('account').select('stored_rows').execute()).toEqual([
    { stored_rows: 2 },
  ])
  await retentionJob.stop()
})

async function services() {
  const fixture = await createTestService()
  return { ...fixture, log: fixture.service.log }
}
