import { describe, expect, onTestFinished, test } from 'vitest'
import {
  type Database,
  isStorageError,
  openDatabase,
  writeConcurrent,
} from '../../src/db/database.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { type NewAttempt, recordAttempts } from '../../src/webhooks/attempt-store.ts'
import { cutProxy } from '../support/cut-proxy.ts'
import { onPostgres, tempDatabase } from '../support/database.ts'
import { tempPostgres } from '../support/postgres-pool.ts'
import {
  addDelivery,
  addWebhook,
  attemptAt,
  attemptsOf,
  deliveryRow,
  FAILURE,
  NOW,
  noticeOf,
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

describe('an attempt that is recorded again because the confirmation was lost,', () => {
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
