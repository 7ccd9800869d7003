import { describe, expect, onTestFinished, test } from 'vitest'
import {
  type Database,
  isStorageError,
  openDatabase,
  writeConcurrent,
} from '../../src/db/database.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { type NewAttempt, recordAttempts } from '../../src/webhooks/delivery-store.ts'
import { findWebhook } from '../../src/webhooks/endpoint-store.ts'
import { cutProxy } from '../support/cut-proxy.ts'
import { onPostgres, tempDatabase, tempPostgres } from '../support/database.ts'
import {
  addDelivery,
  addWebhook,
  attemptAt,
  attemptsOf,
  createDeliveries,
  deliveryRow,
  FAILURE,
  NOW,
  noticeOf,
  record,
  SUCCESS,
} from '../support/webhook-rows.ts'

const parallel = (database: Database, attempts: readonly NewAttempt[], now = NOW) =>
  writeConcurrent(database, trx => recordAttempts(trx, attempts, { now, steadyNow: now }))

/** The same, except that a deadlock is reported and not retried. */
const once = (database: Database, attempts: readonly NewAttempt[]) =>
  onPostgres
    ? database.db
        .transaction()
        .execute(trx => recordAttempts(trx, attempts, { now: NOW, steadyNow: NOW }))
    : parallel(database, attempts)

/** All columns that an attempt may change. */
const stateOf = async (database: Database) => ({
  delivery: await deliveryRow(database, 'dlv_a'),
  webhook: await findWebhook(database, 'acc_a', 'wh_a'),
  notice: await noticeOf(database),
})

describe('an attempt that a stalled server records late, after another made it too,', () => {
  test.each<[string, Partial<NewAttempt>, Partial<NewAttempt>]>([
    ['failed, as did the other', { startedAt: 2_000 }, {}],
    ['failed for good, as did the other', { startedAt: 2_000, ...FAILURE }, FAILURE],
    ['failed, and the other succeeded', SUCCESS, {}],
    ['failed for good, and the other succeeded', SUCCESS, FAILURE],
    [
      'got a 410, and the other succeeded',
      SUCCESS,
      { ...FAILURE, statusCode: 410, disabledCode: 'gone' },
    ],
    ['succeeded, as did the other', { startedAt: 2_000, ...SUCCESS }, SUCCESS],
  ])('%s: it is stored, and nothing counts twice', async (_, first, late) => {
    const database = await createDeliveries('dlv_a')
    await record(database, [attemptAt('dlv_a', first)])
    const before = await stateOf(database)
    await record(database, [attemptAt('dlv_a', { durationMs: 9_000, ...late })], NOW + 9_000)
    expect(await stateOf(database)).toEqual(before)
    expect((await attemptsOf(database)).map(row => row.number)).toEqual([1, 2])
  })

  test('succeeded, and the other failed: the webhook counts as working', async () => {
    const database = await createDeliveries('dlv_a')
    await record(database, [attemptAt('dlv_a')])
    const before = await deliveryRow(database, 'dlv_a')
    await record(database, [attemptAt('dlv_a', { durationMs: 9_000, ...SUCCESS })])
    expect(await deliveryRow(database, 'dlv_a')).toEqual(before)
    expect(await findWebhook(database, 'acc_a', 'wh_a')).toMatchObject({ failingSince: null })
  })
})

describe('an attempt that is recorded again because the confirmation was lost,', () => {
  test.each<[string, Partial<NewAttempt>]>([
    ['failed', {}],
    ['failed for good', FAILURE],
    ['succeeded', SUCCESS],
  ])('and %s is there once', async (_, given) => {
    const database = await createDeliveries('dlv_a', 'dlv_b')
    await record(database, [attemptAt('dlv_a', given)])
    const before = await stateOf(database)
    await record(database, [attemptAt('dlv_a', given), attemptAt('dlv_b')])
    expect(await stateOf(database)).toMatchObject({
      delivery: before.delivery,
      notice: before.notice,
    })
    expect((await attemptsOf(database)).map(row => [row.delivery_id, row.number])).toEqual([
      ['dlv_a', 1],
      ['dlv_b', 1],
    ])
  })

  test.runIf(onPostgres)(
    'because its connection was cut after the commit, is there once',
    async () => {
      const proxy = await cutProxy(await tempPostgres())
      onTestFinished(() => proxy.close())
      const database = await openDatabase(proxy.url, systemClock)
      onTestFinished(() => database.close())
      await addWebhook(database)
      await addDelivery(database, 'dlv_a', { at: 100 })
      const cut = proxy.cutAfterCommit(/insert into attempt/)
      const attempts = [attemptAt('dlv_a', FAILURE)]
      const fault = await parallel(database, attempts).catch(error => error)
      await cut
      expect(isStorageError(fault)).toBe(true)
      await parallel(database, attempts)
      expect(await attemptsOf(database)).toHaveLength(1)
      expect(await deliveryRow(database, 'dlv_a')).toMatchObject({ state: 'failed', attempt: 1 })
      expect(await noticeOf(database)).toMatchObject({ failed_events: 1 })
    },
  )
})

/** Any order other than that of the IDs. */
const shuffled = <T>(all: readonly T[], seed: number): T[] =>
  all
    .map((one, n) => ({ one, by: (n * 7919 + seed * 104_729) % 1_009 }))
    .sort((a, b) => a.by - b.by)
    .map(({ one }) => one)

describe('concurrent writers of attempts', () => {
  const WEBHOOKS = 8
  const ids = Array.from({ length: 64 }, (_, n) => `dlv_${100 + n}`)
  const webhookOf = (id: string) => `wh_${Number(id.slice(4)) % WEBHOOKS}`
  const ofWebhook = (id: string, given: Partial<NewAttempt>, attempt = 0) => ({
    ...attemptAt(id, given),
    delivery: {
      id,
      webhookId: webhookOf(id),
      cycle: { trigger: 'scheduled' as const, attempt },
    },
  })

  async function services(): Promise<Database> {
    const database = await tempDatabase()
    for (let n = 0; n < WEBHOOKS; n++) await addWebhook(database, { id: `wh_${n}` })
    for (const id of ids) await addDelivery(database, id, { webhook_id: webhookOf(id) })
    return database
  }

  test('for all deliveries in any order: each counts once, and none deadlocks', async () => {
    const database = await services()
    await Promise.all(
      Array.from({ length: 12 }, (_, n) =>
        once(
          database,
          shuffled(ids, n + 1).map(id => ofWebhook(id, { startedAt: n, ...FAILURE })),
        ),
      ),
    )
    const { db } = database
    const deliveries = await db.selectFrom('delivery').select(['state', 'attempt']).execute()
    expect(deliveries).toEqual(ids.map(() => ({ state: 'failed', attempt: 1 })))
    const numbers = (await attemptsOf(database)).map(row => row.number)
    expect(numbers).toEqual(ids.flatMap(() => Array.from({ length: 12 }, (_, n) => n + 1)))
    const notices = await db.selectFrom('notice').select('failed_events').execute()
    expect(notices).toEqual(
      Array.from({ length: WEBHOOKS }, () => ({ failed_events: ids.length / WEBHOOKS })),
    )
  })

  test('each for its own deliveries at shared webhooks: nothing is lost', async () => {
    const database = await services()
    const groups = Map.groupBy(shuffled(ids, 3), (_, n) => n % 8)
    await Promise.all(
      [...groups.values()].map(group =>
        once(
          database,
          group.map(id => ofWebhook(id, FAILURE)),
        ),
      ),
    )
    const notices = await database.db.selectFrom('notice').select('failed_events').execute()
    expect(notices.map(row => row.failed_events)).toEqual(Array(WEBHOOKS).fill(8))
    const webhooks = await database.db.selectFrom('webhook').select('failing_since').execute()
    expect(webhooks.every(row => row.failing_since === NOW)).toBe(true)
  })
})
