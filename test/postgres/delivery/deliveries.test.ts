import { expect, onTestFinished, test } from 'vitest'
import { createAccount } from '../../../src/accounts/account-store.ts'
import { type Database, write } from '../../../src/db/database.ts'
import { systemClock, yieldToEventLoop } from '../../../src/platform/clock.ts'
import { silentLog } from '../../../src/platform/log.ts'
import { systemRandom } from '../../../src/platform/random.ts'
import { createSecretBox } from '../../../src/platform/secret-box.ts'
import { CONNECTIONS_MAX } from '../../../src/webhooks/delivery-run.ts'
import { createWebhook } from '../../../src/webhooks/endpoint-store.ts'
import { emit } from '../../../src/webhooks/event-store.ts'
import { startDeliveries } from '../../../src/webhooks/start-deliveries.ts'
import { cutProxy } from '../../support/cut-proxy.ts'
import { FAST_TIMINGS } from '../../support/fast-timings.ts'
import { openReceiver, openTransport } from '../../support/https-post.ts'
import { emptyPostgres, loseHeartbeat, openQueue } from '../../support/pg-queue.ts'
import { openServer } from '../../support/postgres-pool.ts'
import { waitUntil } from '../../support/wait.ts'

const secretBox = createSecretBox('a secret of tests', systemRandom)

/** Starts the webhook deliveries of one `ev serve`; they stop with the test. */
async function startServer(url: string) {
  const [clock, log] = [systemClock, silentLog]
  const database = await openServer(url, clock)
  const queue = await openQueue(url)
  // Its clock stands still: on a busy machine no request must reach its time limit and fail.
  const transport = openTransport()
  const { deliveries: timings } = FAST_TIMINGS
  const deps = { database, queue, transport, secretBox, clock, log, version: '1.2.3', timings }
  const deliveries = startDeliveries(deps)
  onTestFinished(async () => {
    await deliveries.stop()
    await database.close()
  })
  return { database, deliveries }
}

/** Adds webhooks of one account, each with its own path: `/wh_0`, `/wh_1`, … */
function addWebhooks(database: Database, count: number, origin: string): Promise<void> {
  const now = systemClock.now()
  return write(database, async trx => {
    await createAccount(trx, { id: 'acc_1', name: 'a', plan: 'enterprise', now })
    for (let n = 0; n < count; n++) {
      await createWebhook(trx, {
        id: `wh_${n}`,
        accountId: 'acc_1',
        url: `${origin}/wh_${n}`,
        active: true,
        events: ['quota.warning'] as const,
        description: null,
        createdAt: now,
        secret: secretBox.encrypt('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'),
        secretHint: 'LaSw',
      })
    }
  })
}

/** Adds events that go to every webhook. */
function addEvents(database: Database, count: number): Promise<void> {
  const event = { accountId: 'acc_1', kind: 'quota.warning', data: {}, sandbox: false } as const
  return write(database, async trx => {
    for (let n = 0; n < count; n++) {
      await emit(trx, {
        ...event,
        now: systemClock.now(),
        dueAt: systemClock.now(),
        random: systemRandom,
      })
    }
  })
}

test('two servers deliver each event to each webhook once, within the connection limit of one server', async () => {
  const url = await emptyPostgres()
  const openRequests = new Map<string, number>()
  let openRequestsMax = 0
  const receiver = await openReceiver({
    answer: async ({ path }) => {
      openRequests.set(path, (openRequests.get(path) ?? 0) + 1)
      openRequestsMax = Math.max(openRequestsMax, openRequests.get(path) ?? 0)
      // Concurrent requests would arrive during this wait.
      await yieldToEventLoop()
      openRequests.set(path, (openRequests.get(path) ?? 0) - 1)
      return 200
    },
  })
  const [one, other] = [await startServer(url), await startServer(url)]
  await addWebhooks(one.database, 20, new URL(receiver.url).origin)
  for (let round = 0; round < 3; round++) {
    await addEvents(one.database, 4)
    // Each round starts while some webhooks have requests in flight and others are done.
    await waitUntil(() => receiver.received.length >= round * 20 * 4 + 40)
  }
  const all = 20 * 12
  await waitUntil(() => receiver.received.length >= all)
  const delivered = () => [one, other].map(({ deliveries }) => deliveries.status().delivered)
  await waitUntil(() => delivered().reduce((sum, count) => sum + count) >= all)
  const names = receiver.received.map(({ path, headers }) => `${path} ${headers['webhook-id']}`)
  expect([names.length, new Set(names).size]).toEqual([all, all])
  expect(openRequestsMax).toBeLessThanOrEqual(CONNECTIONS_MAX)
  expect(delivered().reduce((sum, count) => sum + count)).toBe(all)
})

test('a delivery in flight on a server that loses its database is sent by another server', async () => {
  const url = await emptyPostgres()
  const proxy = await cutProxy(url)
  onTestFinished(() => proxy.close())
  const gate = Promise.withResolvers<void>()
  const receiver = await openReceiver({
    answer: async () => {
      await gate.promise
      return 200
    },
  })
  const dying = await startServer(proxy.url)
  await addWebhooks(dying.database, 1, new URL(receiver.url).origin)
  await addEvents(dying.database, 1)
  await waitUntil(() => receiver.received.length === 1)
  const other = await startServer(url)
  proxy.refuse()
  gate.resolve()
  await loseHeartbeat(url, 'wh_0')
  await waitUntil(() => other.deliveries.status().delivered === 1)
  const ids = receiver.received.map(({ headers }) => headers['webhook-id'])
  expect([ids.length, new Set(ids).size]).toEqual([2, 1])
  const open = await other.database.db.selectFrom('delivery').selectAll().execute()
  expect(open).toMatchObject([{ state: 'delivered' }])
  proxy.accept()
})
