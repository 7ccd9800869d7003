import { describe, expect, onTestFinished, test } from 'vitest'
import { composeEngine } from '../../../src/compose/engine.ts'
import { write } from '../../../src/db/database.ts'
import { EgressPool } from '../../../src/engine/probe/egress-pool.ts'
import { addItems } from '../../../src/jobs/import/item-import.ts'
import { storeRoutes } from '../../../src/jobs/item-store.ts'
import { createJob } from '../../../src/jobs/job-store.ts'
import { startReconcile } from '../../../src/jobs/worker/reconcile.ts'
import { MINUTE, SECOND } from '../../../src/platform/clock.ts'
import { silentLog } from '../../../src/platform/log.ts'
import { createMemoryQueue } from '../../../src/queue/memory-queue.ts'
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

/** Creates a member that reconciles, and records the tasks that it enqueues. */
async function createFixture({ own = ['a'], allowed }: Options = {}) {
  const structures = { egresses: own.map(name => ({ name })) }
  const { clock, database, doors, configWith } = await createJobDeps({ structures })
  const liveEgresses = new Set(own)
  const egresses = () => [...liveEgresses]
  const put: string[] = []
  const memory = createMemoryQueue(database.steadyClock, silentLog)
  const queue = {
    ...memory,
    async putAll(kind: string, keys: readonly string[]) {
      put.push(...keys.map(key => `${kind} ${key}`))
    },
  }
  const engine = composeEngine(configWith(), doors)
  const egressPool = new EgressPool(
    own.map(name => engine.egressPool.prober(name)),
    operator => (operator === 'op' ? (allowed ?? null) : null),
    { names: egresses, isRefused: () => false },
  )
  onTestFinished(() => engine.close())
  const startMember = () => {
    const deps = { database, queue, egressPool, egresses, random: countedRandom(), log: silentLog }
    const reconcile = startReconcile(deps)
    onTestFinished(() => reconcile.stop())
  }

  /** Adds a job with an item for each of these operators; null for an unrouted item. */
  async function add(id: string, to: readonly (string | null)[]): Promise<void> {
    const accountKey = { accountId: 'acc_1', keyId: 'key_1', type: 'batch' as const }
    const owner = { ...accountKey, name: null, sandbox: false }
    await createJob(database, { id, sourceKey: id, source: '{}', owner })
    const items = to.map((_, n) => ({ position: n + 1, text: `u${n}`, dedupeKey: `u${n}` }))
    await addItems(database, id, items)
    await queueJob(database, id)
    await database.db.updateTable('job').set({ state: 'processing' }).where('id', '=', id).execute()
    const routed = to.flatMap((operator, n) =>
      operator === null ? [] : [{ position: n + 1, operator, domain: operator, route: '{}' }],
    )
    await write(database, trx => storeRoutes(trx, { jobId: id, routed, now: clock.now() }))
  }

  /** Returns the tasks that were enqueued while time passes. */
  async function tasksWithin(ms: number): Promise<string[]> {
    put.length = 0
    for (let passed = 0; passed < ms; passed += SECOND) {
      await clock.advance(SECOND)
      await drainEventLoop()
    }
    return [...new Set(put)].toSorted()
  }

  const bind = (jobId: string, egress: string) =>
    database.db
      .updateTable('item')
      .set({ egress, tries: 1 })
      .where('job_id', '=', jobId)
      .where('state', '=', 'routed')
      .execute()
  const items = () => database.db.selectFrom('item').select(['egress', 'tries', 'due_at']).execute()
  return { clock, database, liveEgresses, startMember, add, tasksWithin, bind, items }
}

describe('a missing task', () => {
  test('is enqueued for unrouted lists and for operators with items overdue by ten seconds', async () => {
    const { startMember, add, tasksWithin } = await createFixture()
    await add('job_1', ['op', 'other', null])
    await add('job_2', ['op'])
    startMember()
    expect(await tasksWithin(5 * SECOND)).toEqual(['route job_1'])
    expect(await tasksWithin(ROUND_MS)).toEqual(['probe/a op#0', 'probe/a other#0', 'route job_1'])
  })

  test('is not enqueued if there is nothing to do', async () => {
    const { startMember, add, tasksWithin } = await createFixture()
    startMember()
    expect(await tasksWithin(ROUND_MS)).toEqual([])
    await add('job_1', ['op'])
    expect(await tasksWithin(5 * SECOND)).toEqual([])
  })

  test('is searched for by one of all members every ten seconds', async () => {
    const { startMember, add, tasksWithin, database } = await createFixture()
    await add('job_1', [null])
    for (let number = 0; number < 5; number++) startMember()
    await tasksWithin(SECOND)
    const rounds = await database.db.selectFrom('setting').select('value').execute()
    await tasksWithin(8 * SECOND)
    expect(await database.db.selectFrom('setting').select('value').execute()).toEqual(rounds)
    await tasksWithin(8 * SECOND)
    expect(await database.db.selectFrom('setting').select('value').execute()).not.toEqual(rounds)
  })

  test('is enqueued for the primary egress, even on another machine', async () => {
    const { startMember, add, tasksWithin, liveEgresses } = await createFixture()
    liveEgresses.add('b')
    const operators = Array.from({ length: 20 }, (_, n) => `op${n}`)
    await add('job_1', operators)
    startMember()
    const put = await tasksWithin(2 * ROUND_MS)
    expect(put).toHaveLength(20)
    expect(new Set(put.map(entry => entry.split(' ')[0]))).toEqual(new Set(['probe/a', 'probe/b']))
  })
})

describe('items pinned to an egress', () => {
  test('have a task while a member has the egress', async () => {
    const { startMember, add, bind, tasksWithin, liveEgresses } = await createFixture()
    liveEgresses.add('b')
    await add('job_1', ['op'])
    await bind('job_1', 'b')
    startMember()
    expect(await tasksWithin(2 * ROUND_MS)).toEqual(['probe/b op#0'])
  })

  test('are unpinned after the egress was absent for five minutes', async () => {
    const { startMember, add, bind, tasksWithin, items, liveEgresses, clock } =
      await createFixture()
    liveEgresses.add('b')
    await add('job_1', ['op'])
    await bind('job_1', 'b')
    startMember()
    await tasksWithin(MINUTE)
    liveEgresses.delete('b')
    expect(await tasksWithin(5 * MINUTE - ROUND_MS)).toEqual([])
    expect(await items()).toMatchObject([{ egress: 'b' }])
    expect(await tasksWithin(2 * ROUND_MS)).toEqual(['probe/a op#0'])
    expect(await items()).toMatchObject([{ egress: null, tries: 0 }])
    expect((await items())[0]?.due_at).toBeGreaterThan(clock.now() - 3 * ROUND_MS)
  })

  test('are unpinned five minutes after a start if the egress never appeared', async () => {
    const { startMember, add, bind, tasksWithin, items } = await createFixture()
    await add('job_1', ['op'])
    await bind('job_1', 'gone')
    startMember()
    await tasksWithin(5 * MINUTE - ROUND_MS)
    expect(await items()).toMatchObject([{ egress: 'gone' }])
    await tasksWithin(2 * ROUND_MS)
    expect(await items()).toMatchObject([{ egress: null }])
  })

  test('stay pinned if the egress comes back in time', async () => {
    const { startMember, add, bind, tasksWithin, items, liveEgresses } = await createFixture()
    liveEgresses.add('b')
    await add('job_1', ['op'])
    await bind('job_1', 'b')
    startMember()
    await tasksWithin(MINUTE)
    for (let times = 0; times < 2; times++) {
      liveEgresses.delete('b')
      await tasksWithin(3 * MINUTE)
      liveEgresses.add('b')
      await tasksWithin(MINUTE)
    }
    expect(await items()).toMatchObject([{ egress: 'b' }])
  })

  test('are unpinned at once if the egress no longer serves their operator', async () => {
    const { startMember, add, bind, tasksWithin, items } = await createFixture({
      own: ['a', 'b'],
      allowed: ['a'],
    })
    await add('job_1', ['op'])
    await bind('job_1', 'b')
    startMember()
    expect(await tasksWithin(2 * ROUND_MS)).toContain('probe/a op#0')
    expect(await items()).toMatchObject([{ egress: null, tries: 0 }])
  })
})
