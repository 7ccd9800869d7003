import { expect, onTestFinished, test } from 'vitest'
import { register } from '../../../src/cluster/members.ts'
import { claimItems } from '../../../src/jobs/item-claims.ts'
import { OrphanedClaims } from '../../../src/jobs/worker/orphaned-claims.ts'
import { DEFAULT_WORKER_TIMINGS } from '../../../src/jobs/worker/worker-timings.ts'
import { silentLog } from '../../../src/platform/log.ts'
import { fileAll, queuedJob } from '../../support/database.ts'
import { drainEventLoop } from '../../support/wait.ts'

const { orphanPollMs: POLL_MS } = DEFAULT_WORKER_TIMINGS

/** Creates three items that member `mem_1` has claimed. */
async function createFixture() {
  const { database, clock } = await queuedJob(['ann@a', 'bob@a', 'cat@a'])
  await fileAll(database, 'job_a')
  const member = { id: 'mem_1', role: 'worker' as const, name: 'host:1', version: '0' }
  await register(database, { ...member, egresses: ['default'] })
  const share = { jobId: 'job_a', operator: 'op', egress: 'default', now: clock.now() }
  await claimItems(database, { ...share, max: 3, holder: 'mem_1' })
  const stopping = new AbortController()
  onTestFinished(() => stopping.abort())
  const orphans = new OrphanedClaims({
    database,
    log: silentLog,
    stopping: stopping.signal,
    timings: DEFAULT_WORKER_TIMINGS,
    cluster: { id: 'mem_1', onLost: () => () => {}, onSilent: () => () => {} },
  })
  const pass = async (ms: number) => {
    await clock.advance(ms)
    await drainEventLoop()
  }
  const states = async () =>
    (await database.db.selectFrom('item').select('state').orderBy('position').execute()).map(
      ({ state }) => state,
    )
  const at = (position: number) => ({ jobId: 'job_a', position })
  return { orphans, pass, states, at }
}

test('releases items that two consecutive checks find orphaned', async () => {
  const { orphans, pass, states, at } = await createFixture()
  orphans.track([at(2)])
  orphans.suspect()
  await pass(POLL_MS)
  expect(await states()).toEqual(['probing', 'probing', 'probing'])
  await pass(POLL_MS)
  expect(await states()).toEqual(['routed', 'probing', 'routed'])
})

test('keeps an item that is tracked between two checks', async () => {
  const { orphans, pass, states, at } = await createFixture()
  orphans.suspect()
  await pass(POLL_MS)
  orphans.track([at(1), at(2), at(3)])
  await pass(POLL_MS)
  orphans.untrack([at(1)])
  orphans.suspect()
  await pass(POLL_MS)
  expect(await states()).toEqual(['probing', 'probing', 'probing'])
})

test('does not check while no claim has failed', async () => {
  const { pass, states } = await createFixture()
  await pass(4 * POLL_MS)
  expect(await states()).toEqual(['probing', 'probing', 'probing'])
})

test('releases items without an outcome at once', async () => {
  const { orphans, states, at } = await createFixture()
  await orphans.releaseItems([at(1), at(2)], 'mem_1')
  await orphans.releaseItems([at(3)], 'mem_other')
  await orphans.releaseItems([at(3)], null)
  expect(await states()).toEqual(['routed', 'routed', 'probing'])
})
