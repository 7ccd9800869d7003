import { expect, onTestFinished, test } from 'vitest'
import { createJob } from '../../src/jobs/job-store.ts'
import { startRetentionJob } from '../../src/maintenance/retention-job.ts'
import { DAY, HOUR, MINUTE, systemClock } from '../../src/platform/clock.ts'
import { tempFolder } from '../support/database.ts'
import { MIXED, seedJob } from '../support/job-rows.ts'
import { recordingLog } from '../support/log.ts'
import { openServer, tempPostgres } from '../support/postgres-pool.ts'
import { waitUntil } from '../support/wait.ts'

test('retention jobs of several servers delete expired lists together and keep a list that is being uploaded', async () => {
  const url = await tempPostgres()
  const database = await openServer(url)
  onTestFinished(() => database.close())
  for (let n = 0; n < 6; n++) await seedJob(database, { id: `job_${n}`, texts: MIXED })
  await seedJob(database, { id: 'job_open', texts: MIXED, done: 0 })
  const owner = { accountId: 'acc_1', keyId: 'key_1', type: 'batch', name: null, sandbox: false }
  for (const id of ['job_uploading', 'job_abandoned']) {
    await createJob(database, { id, sourceKey: id, source: '{}', owner: owner as never })
  }
  const now = systemClock.now()
  const age = (id: string, column: 'created_at' | 'finished_at', ms: number) =>
    database.db
      .updateTable('job')
      .set({ [column]: now - ms })
      .where('id', '=', id)
      .execute()
  for (let n = 0; n < 5; n++) await age(`job_${n}`, 'finished_at', 40 * DAY)
  await age('job_abandoned', 'created_at', HOUR + MINUTE)
  await age('job_uploading', 'created_at', HOUR - MINUTE)

  const { log, lines } = recordingLog()
  const retentionJobs = await Promise.all(
    // The clock of one of them is ahead.
    [0, 0, 3 * HOUR].map(async aheadMs => {
      const clock = { ...systemClock, now: () => systemClock.now() + aheadMs }
      const ownDatabase = await openServer(url, clock)
      onTestFinished(() => ownDatabase.close())
      return startRetentionJob({
        database: ownDatabase,
        clock,
        log,
        dataDir: tempFolder(),
        keepResultsMs: 30 * DAY,
        keepHistoryMs: 90 * DAY,
      })
    }),
  )
  const listJobIds = async () =>
    (await database.db.selectFrom('job').select('id').orderBy('id').execute()).map(({ id }) => id)
  await waitUntil(async () => (await listJobIds()).length <= 3)
  await Promise.all(retentionJobs.map(job => job.stop()))
  expect(await listJobIds()).toEqual(['job_5', 'job_open', 'job_uploading'])
  const items = await database.db.selectFrom('item').select('job_id').distinct().execute()
  expect(items.map(row => row.job_id).toSorted()).toEqual(['job_5', 'job_open'])
  expect(lines.filter(({ level }) => level === 'error')).toEqual([])
})
