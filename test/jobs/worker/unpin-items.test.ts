import { describe, expect, onTestFinished, test } from 'vitest'
import { composeEngine } from '../../../src/compose/engine.ts'
import { write } from '../../../src/db/database.ts'
import { EgressPool } from '../../../src/engine/probe/egress-pool.ts'
import { addItems } from '../../../src/jobs/import/item-import.ts'
import { storeRoutes } from '../../../src/jobs/item-store.ts'
import { createJob } from '../../../src/jobs/job-store.ts'
import { startUnpinning } from '../../../src/jobs/worker/unpin-items.ts'
import { MINUTE, SECOND } from '../../../src/platform/clock.ts'
import { silentLog } from '../../../src/platform/log.ts'
import { createJobDeps } from '../../support/job.ts'
import { queueJob } from '../../support/queue-job.ts'
import { countedRandom } from '../../support/random.ts'
import { drainEventLoop } from '../../support/wait.ts'

const ROUND_MS = 15 * SECOND

type Options = {
  /** The egresses of this member. */
  readonly own?: readonly string[]
  /** Egresses that may probe the operator `op`; all if left out. */
  readonly allowed?: readonly string[]
}

/** Creates a member that unpins items of absent egresses. */
async function createFixture({ own = ['a'], allowed }: Options = {}) {
  const structures = { egresses: own.map(name => ({ name })) }
  const { clock, database, doors, configWith } = await createJobDeps({ structures })
  const liveEgresses = new Set(own)
  const egresses = () => [...liveEgresses]
  const engine = composeEngine(configWith(), doors)
  const egressPool = new EgressPool(
    own.map(name => engine.egressPool.prober(name)),
    operator => (operator === 'op' ? (allowed ?? null) : null),
    { names: egresses, isRefused: () => false },
  )
  onTestFinished(() => engine.close())
  const startMember = () => {
    const deps = { database, egressPool, egresses, random: countedRandom(), log: silentLog }
    const unpinning = startUnpinning(deps)
    onTestFinished(() => unpinning.stop())
  }

  /** Adds a job with an item of the operator `op` that is bound to an egress, which has tried it. */
  async function add(egress: string, tries = 1): Promise<void> {
    const accountKey = { accountId: 'acc_1', keyId: 'key_1', type: 'batch' as const }
    const owner = { ...accountKey, name: null, sandbox: false }
    await createJob(database, { id: 'job_1', sourceKey: 'job_1', source: '{}', owner })
    await addItems(database, 'job_1', [{ position: 1, text: 'u1', dedupeKey: 'u1' }])
    await queueJob(database, 'job_1')
    await database.db.updateTable('job').set({ state: 'processing' }).execute()
    const routed = [{ position: 1, operator: 'op', domain: 'op', route: '{}' }]
    await write(database, trx => storeRoutes(trx, { jobId: 'job_1', routed, now: clock.now() }))
    await database.db.updateTable('item').set({ egress, tries }).execute()
  }

  async function pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += SECOND) {
      await clock.advance(SECOND)
      await drainEventLoop()
    }
  }

  const items = () => database.db.selectFrom('item').select(['egress', 'tries', 'due_at']).execute()
  return { clock, database, liveEgresses, startMember, add, pass, items }
}

describe('items pinned to an egress', () => {
  test('are searched for by one of all members every ten seconds', async () => {
    const { startMember, add, pass, database } = await createFixture()
    await add('a')
    for (let number = 0; number < 5; number++) startMember()
    await pass(SECOND)
    const rounds = await database.db.selectFrom('setting').select('value').execute()
    await pass(8 * SECOND)
    expect(await database.db.selectFrom('setting').select('value').execute()).toEqual(rounds)
    await pass(8 * SECOND)
    expect(await database.db.selectFrom('setting').select('value').execute()).not.toEqual(rounds)
  })

  test('stay pinned while a member has the egress', async () => {
    const { startMember, add, pass, items, liveEgresses } = await createFixture()
    liveEgresses.add('b')
    await add('b')
    startMember()
    await pass(10 * MINUTE)
    expect(await items()).toMatchObject([{ egress: 'b', tries: 1 }])
  })

  test('are unpinned after the egress was absent for five minutes', async () => {
    const { startMember, add, pass, items, liveEgresses, clock } = await createFixture()
    liveEgresses.add('b')
    await add('b')
    startMember()
    await pass(MINUTE)
    liveEgresses.delete('b')
    await pass(5 * MINUTE - ROUND_MS)
    expect(await items()).toMatchObject([{ egress: 'b' }])
    await pass(2 * ROUND_MS)
    expect(await items()).toMatchObject([{ egress: null, tries: 0 }])
    expect((await items())[0]?.due_at).toBeGreaterThan(clock.now() - 3 * ROUND_MS)
  })

  test('are unpinned at once if the absent egress has not tried them', async () => {
    const { startMember, add, pass, items } = await createFixture()
    await add('gone', 0)
    startMember()
    await pass(2 * ROUND_MS)
    expect(await items()).toMatchObject([{ egress: null }])
  })

  test('are unpinned five minutes after a start if the egress never appeared', async () => {
    const { startMember, add, pass, items } = await createFixture()
    await add('gone')
    startMember()
    await pass(5 * MINUTE - ROUND_MS)
    expect(await items()).toMatchObject([{ egress: 'gone' }])
    await pass(2 * ROUND_MS)
    expect(await items()).toMatchObject([{ egress: null }])
  })

  test('stay pinned if the egress comes back in time', async () => {
    const { startMember, add, pass, items, liveEgresses } = await createFixture()
    liveEgresses.add('b')
    await add('b')
    startMember()
    await pass(MINUTE)
    for (let times = 0; times < 2; times++) {
      liveEgresses.delete('b')
      await pass(3 * MINUTE)
      liveEgresses.add('b')
      await pass(MINUTE)
    }
    expect(await items()).toMatchObject([{ egress: 'b' }])
  })

  test('are unpinned at once if the egress no longer serves their operator', async () => {
    const { startMember, add, pass, items } = await createFixture({
      own: ['a', 'b'],
      allowed: ['a'],
    })
    await add('b')
    startMember()
    await pass(2 * ROUND_MS)
    expect(await items()).toMatchObject([{ egress: null, tries: 0 }])
  })
})
