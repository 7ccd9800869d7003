import { onTestFinished } from 'vitest'
import { createAccount } from '../../src/accounts/account-store.ts'
import { type Database, write } from '../../src/db/database.ts'
import type { Clock } from '../../src/platform/clock.ts'
import { createSecretBox } from '../../src/platform/secret-box.ts'
import { createMemoryQueue } from '../../src/queue/memory-queue.ts'
import { createWebhook, type Webhook } from '../../src/webhooks/endpoint-store.ts'
import { emit } from '../../src/webhooks/event-store.ts'
import type { EventKind } from '../../src/webhooks/event-types.ts'
import {
  type Deliveries,
  type DeliveryDeps,
  startDeliveries,
} from '../../src/webhooks/start-deliveries.ts'
import type { AttemptTable, DeliveryTable, WebhookTable } from '../../src/webhooks/tables.ts'
import type { WebhookRequest, WebhookTransport } from '../../src/webhooks/transport.ts'
import { type FakeClock, fakeClock } from './clock.ts'
import { tempDatabase } from './database.ts'
import { recordingLog } from './log.ts'
import { countedRandom } from './random.ts'
import { waitUntil } from './wait.ts'
import { fakeTransport } from './webhook-transport.ts'

type Options = {
  /** False disables the poll for due deliveries, so that only the queue's timers count. */
  readonly polls?: boolean
}

export const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

/**
 * Creates deliveries with a database, an account, a clock, and a transport that records requests.
 */
export async function createTestDelivery({ polls = true }: Options = {}) {
  const clock = fakeClock()
  const database = await tempDatabase({ clock })
  const random = countedRandom()
  const secretBox = createSecretBox('a secret of tests', random)
  const transport = fakeTransport()
  const { log, lines } = recordingLog()
  await write(database, trx =>
    createAccount(trx, { id: 'acc_1', name: 'a', plan: 'pro', now: clock.now() }),
  )

  const newWebhook = (change: Partial<Webhook>) => {
    const { id = 'wh_a' } = change
    return {
      id,
      accountId: 'acc_1',
      url: `https://${id.replace('_', '-')}.test/hook`,
      active: true,
      events: ['quota.warning'] as EventKind[],
      description: null,
      secret: secretBox.encrypt(SECRET),
      secretHint: 'LaSw',
      createdAt: clock.now(),
      ...change,
    }
  }

  const addWebhook = (change: Partial<Webhook> = {}) =>
    write(database, trx => createWebhook(trx, newWebhook(change)))

  /** Adds the webhooks `wh_0`, `wh_1` … */
  const addWebhooks = (count: number) =>
    write(database, async trx => {
      for (let n = 0; n < count; n++) await createWebhook(trx, newWebhook({ id: `wh_${n}` }))
    })

  /** Adds events to which all webhooks subscribe; returns their IDs. */
  async function addEvents(count = 1, { sandbox = false } = {}): Promise<string[]> {
    return write(database, async trx => {
      const ids: string[] = []
      const kind = 'quota.warning' as const
      for (let n = 0; n < count; n++) {
        const data = { n }
        const o = {
          accountId: 'acc_1',
          kind,
          data,
          sandbox,
          now: clock.now(),
          dueAt: clock.now(),
          random,
        }
        ids.push((await emit(trx, o)) ?? '')
      }
      return ids
    })
  }

  /** Starts deliveries like one process; stopped after the test. */
  function start(change: Partial<DeliveryDeps> = {}): Deliveries {
    const deliveryClock = polls ? clock : withoutPolling(clock)
    const queue = createMemoryQueue(database.steadyClock, log)
    const deliveries = startDeliveries({
      database,
      queue,
      transport,
      secretBox,
      clock: deliveryClock,
      log,
      version: '1.2.3',
      ...change,
    })
    onTestFinished(() => ended(deliveries, clock))
    return deliveries
  }
  return {
    database,
    clock,
    random,
    secretBox,
    transport,
    log,
    lines,
    addWebhook,
    addWebhooks,
    addEvents,
    start,
    deliveries: () => rowsOf(database, 'delivery') as Promise<DeliveryTable[]>,
    attempts: () => rowsOf(database, 'attempt') as Promise<AttemptTable[]>,
    webhooks: () => rowsOf(database, 'webhook') as Promise<WebhookTable[]>,
    /** Resolves when this number of requests was sent. */
    sent: (count: number) => waitUntil(() => transport.sent.length >= count),
  }
}

/** A receiver that responds on request. */
export function slowTransport(): WebhookTransport & {
  readonly sent: WebhookRequest[]
  readonly inFlight: number
  answer(status: number): void
} {
  const waiting: ((status: number) => void)[] = []
  const sent: WebhookRequest[] = []
  return {
    sent,
    get inFlight() {
      return waiting.length
    },
    answer(status) {
      for (const resolve of waiting.splice(0)) resolve(status)
    },
    get: async () => null,
    async send(request) {
      sent.push(request)
      const { promise, resolve } = Promise.withResolvers<number>()
      waiting.push(resolve)
      const status = await promise
      const answer = { status, headers: {}, excerpt: '' }
      return { answer, fault: null, faultCode: null, durationMs: 1 }
    },
    close: async () => {},
  }
}

const rowsOf = (database: Database, table: 'delivery' | 'attempt' | 'webhook') =>
  database.db
    .selectFrom(table)
    .selectAll()
    .orderBy(table === 'attempt' ? 'number' : 'id')
    .execute()

/** The poll for due deliveries is the only timer of half a second. */
const withoutPolling = (clock: FakeClock): Clock => ({
  ...clock,
  after: (delayMs, callback) => (delayMs === 500 ? () => {} : clock.after(delayMs, callback)),
})

async function ended(deliveries: Deliveries, clock: FakeClock): Promise<void> {
  let isDone = false
  void deliveries.stop().finally(() => {
    isDone = true
  })
  while (!isDone) await clock.advance(1_000)
}
