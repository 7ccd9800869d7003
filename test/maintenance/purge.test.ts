import { expect, test } from 'vitest'
import { openWitnesses } from '../../src/cluster/witnesses.ts'
import type { Database } from '../../src/db/database.ts'
import { findJob } from '../../src/jobs/job-store.ts'
import { type PurgeInput, purge } from '../../src/maintenance/purge.ts'
import { DAY } from '../../src/platform/clock.ts'
import { silentLog } from '../../src/platform/log.ts'
import { addAccount } from '../support/account-rows.ts'
import { fakeClock } from '../support/clock.ts'
import { tempDatabase, tempFolder } from '../support/database.ts'
import { seedJob } from '../support/job-rows.ts'

const OLD: PurgeInput = { isDryRun: false, isAll: false, address: null }
const ANN = 'ann@x.example'

/** Two databases, each with a finished list. */
async function createServices() {
  const clock = fakeClock()
  const databases = [await tempDatabase({ clock }), await tempDatabase({ clock })] as const
  for (const [n, database] of databases.entries()) {
    await addAccount(database, 'acc_1')
    await seedJob(database, { id: `job_${n}`, texts: [ANN, 'bob@x.example'] })
  }
  const settings = { dataDir: tempFolder(), keepResultsMs: 7 * DAY, keepHistoryMs: 7 * DAY }
  return { clock, databases, settings }
}

const texts = ({ db }: Database) =>
  db.selectFrom('item').select('text').orderBy('position').execute()

test('expired data is deleted in each database, and no other', async () => {
  const services = await createServices()
  const { databases, clock } = services
  expect(await purge(services, OLD)).toMatchObject({ jobs: [], traces: null, isGone: true })
  await clock.advance(8 * DAY)
  await seedJob(databases[0], { id: 'job_new', texts: [ANN] })
  const dry = await purge(services, { ...OLD, isDryRun: true })
  expect(dry.jobs.map(({ id }) => id)).toEqual(['job_0', 'job_1'])
  expect(await findJob(databases[1], 'job_1')).not.toBeNull()
  expect((await purge(services, OLD)).jobs.map(({ id }) => id)).toEqual(['job_0', 'job_1'])
  expect(await findJob(databases[1], 'job_1')).toBeNull()
  const all = await purge(services, { ...OLD, isAll: true })
  expect(all.jobs.map(({ id }) => id)).toEqual(['job_new'])
})

test('recipients that servers accepted are deleted after a day, and at once with all data', async () => {
  const services = await createServices()
  const { clock, databases } = services
  const [database] = databases
  const witnesses = openWitnesses({ database, log: silentLog, network: null })
  const put = async (server: string) => {
    const acceptedAt = clock.now()
    witnesses.put({ server, recipient: ANN, acceptedAt })
    await witnesses.close()
  }
  const servers = async () => {
    const rows = await database.db.selectFrom('witness').select('server').execute()
    return rows.map(({ server }) => server)
  }
  await put('old.example')
  await clock.advance(DAY)
  await purge(services, OLD)
  expect(await servers()).toEqual(['old.example'])
  await clock.advance(1)
  await purge(services, OLD)
  expect(await servers()).toEqual([])
  await put('new.example')
  await purge(services, { ...OLD, isAll: true })
  expect(await servers()).toEqual([])
})

test('an address is erased in all databases, and nothing else is deleted', async () => {
  const services = await createServices()
  const { databases, clock } = services
  await clock.advance(8 * DAY)
  const purged = await purge(services, { ...OLD, address: ` ${ANN.toUpperCase()}` })
  expect(purged).toMatchObject({ jobs: [], traces: { items: [{}, {}] } })
  for (const database of databases) {
    expect(await texts(database)).toEqual([{ text: '' }, { text: 'bob@x.example' }])
  }
})

test('an address of an unfinished list is erased in no database', async () => {
  const services = await createServices()
  const { databases } = services
  await seedJob(databases[1], { id: 'job_open', texts: [ANN], done: 0 })
  const facts = { address: ANN, jobId: 'job_open', isOfAccount: true, otherJobs: 0 }
  await expect(purge(services, { ...OLD, address: ANN })).rejects.toThrow(
    expect.objectContaining({ code: 'address_in_use', facts }),
  )
  expect(await texts(databases[0])).toEqual([{ text: ANN }, { text: 'bob@x.example' }])
  await expect(purge(services, { ...OLD, address: 'ann' })).rejects.toMatchObject({
    code: 'address_invalid',
    facts: { address: 'ann' },
  })
})
