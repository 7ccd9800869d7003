import { describe, expect, test } from 'vitest'
import {
  deleteCreditsBefore,
  deleteReplaysBefore,
  deleteSessionsUntil,
} from '../../src/accounts/retention.ts'
import { type Database, type Trx, write, writeConcurrent } from '../../src/db/database.ts'
import type { Expiry } from '../../src/db/paging.ts'
import type { Schema } from '../../src/db/schema.ts'
import { deleteAnswersBefore } from '../../src/jobs/cached-answers.ts'
import { queueFailureAlert } from '../../src/webhooks/alert-store.ts'
import { recordAttempts } from '../../src/webhooks/attempt-store.ts'
import { deleteWebhook, rotateSecret } from '../../src/webhooks/endpoint-store.ts'
import { emit } from '../../src/webhooks/event-store.ts'
import {
  clearSecretsUntil,
  deleteDeliveriesUntil,
  deleteOrphanedEventsBefore,
  deleteStrandedUntil,
  deleteWebhooksUntil,
} from '../../src/webhooks/retention.ts'
import { onPostgres, tempDatabase } from '../support/database.ts'
import { countedRandom } from '../support/random.ts'
import { addDelivery, addWebhook, attemptAt, FAILURE } from '../support/webhook-rows.ts'

/** The retention rules, each with the number of rows of `fill` that it deletes. */
const EXPIRIES: readonly Expiry[] = [
  deleteReplaysBefore,
  deleteDeliveriesUntil,
  deleteStrandedUntil,
  deleteWebhooksUntil,
  deleteOrphanedEventsBefore,
  clearSecretsUntil,
  deleteCreditsBefore,
  deleteAnswersBefore,
  deleteSessionsUntil,
]

const MANY = 40

/** Fills every table with rows that expire by 100, and one that does not. */
async function fill(database: Database): Promise<void> {
  const { db } = database
  await addWebhook(database, { id: 'wh_a' })
  await addWebhook(database, { id: 'wh_off', active: false })
  await addWebhook(database, { id: 'wh_gone' })
  const secret = { secret: 'new', secretHint: 'new', graceMs: 50, now: 0 }
  await write(database, trx => rotateSecret(trx, 'acc_a', 'wh_a', secret))
  for (let n = 0; n <= MANY; n++) {
    const at = n === MANY ? 1e15 : 1
    const expires_at = n === MANY ? 1e15 : 1 + (n % 7)
    await addDelivery(database, `dlv_over_${n}`, { state: 'delivered', expires_at, at })
    await addDelivery(database, `dlv_off_${n}`, { webhook_id: 'wh_off', at })
    await addDelivery(database, `dlv_gone_${n}`, { webhook_id: 'wh_gone', at })
    const both = { state: 'delivered', event_id: `evt_both_${n}`, expires_at } as const
    await addDelivery(database, `dlv_one_${n}`, { ...both, at })
    await addDelivery(database, `dlv_two_${n}`, { ...both, at })
    await db
      .insertInto('replay')
      .values({
        key_id: `key_${n}`,
        idempotency_key: 'k',
        fingerprint: 'f',
        status: 200,
        answer: 'a',
        created_at: at,
      })
      .execute()
    const credit = { used: 1, held: 0, warned: 0, period_start: at }
    await db
      .insertInto('credit')
      .values({ account_id: `acc_${n}`, ...credit })
      .execute()
    await db
      .insertInto('answer')
      .values({ address_key: `${n}`, remembered: '{}', keep_until: at })
      .execute()
    const times = { created_at: 0, last_seen_at: 1e15, expires_at: at }
    await db
      .insertInto('session')
      .values({
        id: `ses_${n}`,
        hash: `${n}`,
        key_id: 'key',
        account_id: 'acc',
        ip: '',
        agent: '',
        ...times,
      })
      .execute()
  }
  await write(database, trx => deleteWebhook(trx, 'acc_a', 'wh_gone', 50))
}

/** Runs all rules in small steps; returns the number of deleted rows. */
async function cleanUp(database: Database): Promise<number> {
  let all = 0
  for (const expiry of EXPIRIES) {
    for (let removed = 7; removed === 7; all += removed) {
      removed = await writeConcurrent(database, trx => expiry(trx, 100, 7))
    }
  }
  return all
}

const count = async ({ db }: Database, table: keyof Schema) =>
  (await db.selectFrom(table).selectAll().execute()).length

describe('two concurrent retention jobs', () => {
  test('delete each row once, and no row that is still needed', async () => {
    const database = await tempDatabase()
    await fill(database)
    const [one = 0, other = 0] = await Promise.all([cleanUp(database), cleanUp(database)])
    // Rows locked by one job were skipped by the other; an event of two deliveries may remain.
    const rest = await cleanUp(database)
    expect(await cleanUp(database)).toBe(0)
    const gone = {
      replays: MANY,
      credits: MANY,
      answers: MANY,
      sessions: MANY,
      secrets: 1,
      over: 3 * MANY,
      off: MANY,
      ofDeleted: MANY + 1,
    }
    const expected = Object.values(gone).reduce((sum, each) => sum + each, 0)
    expect(one + other + rest).toBeGreaterThanOrEqual(expected)
    expect(one + other + rest).toBeLessThanOrEqual(expected + MANY)
    const tables = [
      'replay',
      'credit',
      'answer',
      'session',
      'delivery',
      'event',
      'webhook',
    ] as const
    const left = await Promise.all(tables.map(table => count(database, table)))
    expect(left).toEqual([1, 1, 1, 1, 4, 3, 2])
  })

  test('do not block the writer of attempts of the same deliveries', async () => {
    const database = await tempDatabase()
    await fill(database)
    const attempts = Array.from({ length: MANY }, (_, n) => {
      const id = `dlv_off_${MANY - 1 - n}`
      const cycle = { trigger: 'scheduled', attempt: 0 } as const
      return { ...attemptAt(id, FAILURE), delivery: { id, webhookId: 'wh_off', cycle } }
    })
    const record = (trx: Trx) => recordAttempts(trx, attempts, { now: 60, steadyNow: 60 })
    // A deadlock is reported here, and not retried.
    const recorded = onPostgres
      ? database.db.transaction().execute(record)
      : write(database, record)
    await Promise.all([recorded, cleanUp(database), cleanUp(database)])
    await cleanUp(database)
    const ids = database.db.selectFrom('delivery').select('id').execute()
    const attempted = database.db.selectFrom('attempt').select('delivery_id').execute()
    const known = new Set((await ids).map(({ id }) => id))
    expect((await attempted).filter(row => !known.has(row.delivery_id))).toEqual([])
  })
})

describe.runIf(onPostgres)('a deleted webhook', () => {
  test('is kept while an event is written for it, and deleted with that event', async () => {
    const database = await tempDatabase()
    await addWebhook(database)
    await write(database, trx =>
      queueFailureAlert(trx, {
        webhookId: 'wh_a',
        accountId: 'acc_a',
        events: 1,
        error: null,
        now: 1,
      }),
    )
    const expire = () => writeConcurrent(database, trx => deleteWebhooksUntil(trx, 100, 9))
    const o = { accountId: 'acc_a', kind: 'batch.completed', data: {}, sandbox: false } as const
    await writeConcurrent(database, async trx => {
      await emit(trx, { ...o, now: 5, dueAt: 5, random: countedRandom() })
      await write(database, other => deleteWebhook(other, 'acc_a', 'wh_a', 10))
      expect(await expire()).toBe(0)
    })
    expect(await count(database, 'webhook')).toBe(1)
    expect(await expire()).toBe(1)
    for (const table of ['webhook', 'notice', 'delivery', 'event'] as const) {
      expect([table, await count(database, table)]).toEqual([table, 0])
    }
  })
})
