import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import {
  deleteCreditsBefore,
  deleteReplaysBefore,
  deleteSessionsUntil,
} from '../../src/accounts/retention.ts'
import { type Database, type Trx, write } from '../../src/db/database.ts'
import type { Expiry } from '../../src/db/paging.ts'
import { deleteAnswersBefore } from '../../src/jobs/cached-answers.ts'
import { erasePersonalData, NO_PERSONAL_DATA } from '../../src/maintenance/purge-data.ts'
import { listDueAlerts } from '../../src/webhooks/alert-store.ts'
import { recordAttempts } from '../../src/webhooks/attempt-store.ts'
import {
  countOpenDeliveries,
  findDelivery,
  getDeliveryPage,
  listDueWebhooks,
  listNextDeliveries,
  nextDueAt,
  recoverDeliveries,
  retryDelivery,
} from '../../src/webhooks/delivery-store.ts'
import {
  deleteDeliveriesUntil,
  deleteOrphanedEventsBefore,
  deleteStrandedUntil,
  deleteWebhooksUntil,
} from '../../src/webhooks/retention.ts'
import { plansOf } from '../db/plan/query-plans.ts'
import { onPostgres, tempDatabase } from '../support/database.ts'
import { attemptAt } from '../support/webhook-rows.ts'

const NOW = 1_000_000

/**
 * PostgreSQL plans by its statistics: there must be many rows, as on a server that has been in use
 * for a while.
 */
describe.runIf(onPostgres)('on PostgreSQL a statement on many deliveries uses its index', () => {
  const page = { webhookId: 'wh_7', before: { createdAt: 900, id: 'dlv_900' }, max: 9 }
  const inTrx = (work: (trx: Trx) => Promise<unknown>) => (database: Database) =>
    write(database, work)
  const expiring = (expiry: Expiry, until: number) => inTrx(trx => expiry(trx, until, 9))
  const attempts = Array.from({ length: 20 }, (_, n) =>
    attemptAt(`dlv_${n * 100}`, {
      delivery: {
        id: `dlv_${n * 100}`,
        webhookId: 'wh_7',
        cycle: { trigger: 'scheduled', attempt: n % 2 },
      },
    }),
  )

  const STATEMENTS: [string, (database: Database) => Promise<unknown>, RegExp][] = [
    [
      'webhooks with due deliveries, one step per webhook',
      db => listDueWebhooks(db, 30_000),
      /Recursive Union(.|\n)*Limit\n.*Index Only Scan using delivery_due/,
    ],
    [
      'the next delivery',
      db => listNextDeliveries(db, 'wh_7', { now: NOW, except: ['dlv_x'], max: 4 }),
      /delivery_due/,
    ],
    ['the next due time', db => nextDueAt(db, 'wh_7', ['dlv_x']), /delivery_due/],
    ['the number of open deliveries', db => countOpenDeliveries(db), /delivery_due/],
    [
      'the deliveries of recorded attempts',
      inTrx(trx => recordAttempts(trx, attempts, { now: NOW, steadyNow: NOW })),
      /delivery_pkey(.|\n)*attempt_key/,
    ],
    ['a manual retry', inTrx(trx => retryDelivery(trx, 'wh_7', 'dlv_7', NOW)), /delivery_pkey/],
    [
      'the retry of failed deliveries',
      inTrx(trx => recoverDeliveries(trx, 'wh_7', { since: 1, now: NOW })),
      /delivery_state/,
    ],
    ['a page of the log', db => getDeliveryPage(db, page), /delivery_webhook/],
    [
      'a page of the log, by state',
      db => getDeliveryPage(db, { ...page, status: 'failed', event: 'quota.warning' }),
      /delivery_state/,
    ],
    ['one delivery', db => findDelivery(db, 'wh_7', 'dlv_7'), /delivery_pkey/],
    ['expired deliveries', expiring(deleteDeliveriesUntil, 9), /delivery_expiry/],
    ['deliveries stranded at disabled webhooks', expiring(deleteStrandedUntil, 9), /delivery_due/],
    [
      'deliveries of deleted webhooks',
      expiring(deleteWebhooksUntil, 9),
      /delivery_(webhook|state|due)/,
    ],
    ['events without a delivery', expiring(deleteOrphanedEventsBefore, 9), /delivery_event/],
    ['expired responses', expiring(deleteAnswersBefore, 9), /answer_expiry/],
    ['expired idempotency keys', expiring(deleteReplaysBefore, 9), /replay_age/],
    ['expired sessions', expiring(deleteSessionsUntil, 9), /session_(expiry|idle)/],
    ['credits of past periods', expiring(deleteCreditsBefore, 9), /credit/],
    ['due alerts', db => listDueAlerts(db, 9), /notice_due/],
    [
      'the erasure of an event',
      db => erasePersonalData(db, { ...NO_PERSONAL_DATA, events: ['evt_7'] }),
      /delivery_event/,
    ],
  ]

  test('and reads no long table in full', async () => {
    const database = await inUse()
    for (const [name, run, index] of STATEMENTS) {
      const plan = await plansOf(database, run)
      expect.soft(plan.join('\n'), name).toMatch(index)
      const whole = plan.filter(line => /Seq Scan on (delivery|attempt|event|answer)/.test(line))
      expect.soft(whole, name).toEqual([])
    }
  })
})

/**
 * 400 webhooks, four of them with 5,000 open deliveries each, one of these disabled; others with
 * finished deliveries; their attempts.
 */
async function inUse(): Promise<Database> {
  const database = await tempDatabase()
  const { db } = database
  await sql`
    insert into webhook (id, account_id, url, events, active, secret, secret_hint, created_at,
      updated_at, deleted_at)
    select 'wh_' || n, 'acc_a', 'https://app.example/hook', '[]', case when n = 4 then 0 else 1 end,
      's', 's', n, n, case when n = 9 then 1 end
    from generate_series(1, 400) as n`.execute(db)
  await sql`
    insert into event (id, account_id, kind, body, created_at)
    select 'evt_' || n, 'acc_a', 'batch.completed', '{}', n
    from generate_series(1, 60000) as n`.execute(db)
  await sql`
    insert into delivery (id, event_id, webhook_id, kind, state, "trigger", attempt, due_at,
      created_at, expires_at)
    select 'dlv_' || n, 'evt_' || n, 'wh_' || case when n <= 20000 then n % 4 + 1 else n % 400 end,
      'batch.completed', case when n <= 20000 then 'pending' when n % 7 = 0 then 'failed'
        else 'delivered' end,
      'scheduled', 0, n, n, case when n > 20000 then n end
    from generate_series(1, 60000) as n`.execute(db)
  await sql`
    insert into attempt (delivery_id, number, "trigger", url, started_at, duration_ms)
    select 'dlv_' || n, 1, 'scheduled', 'https://app.example/hook', n, 1
    from generate_series(20001, 60000) as n`.execute(db)
  await sql`
    insert into notice (webhook_id, account_id, failed_events, due_at)
    select 'wh_' || n, 'acc_a', 1, case when n < 5 then n end
    from generate_series(1, 4000) as n`.execute(db)
  await sql`
    insert into answer (address_key, remembered, keep_until)
    select 'user' || n || '@x.test', '{}', n from generate_series(1, 20000) as n`.execute(db)
  await sql`
    insert into replay (key_id, idempotency_key, fingerprint, status, answer, created_at)
    select 'key_' || n, 'k', 'f', 200, 'a', n from generate_series(1, 20000) as n`.execute(db)
  await sql`
    insert into session (id, hash, key_id, account_id, created_at, last_seen_at, expires_at, ip,
      agent)
    select 'ses_' || n, 'hash ' || n, 'key', 'acc', n, 9000000000000, n, '', ''
    from generate_series(1, 20000) as n`.execute(db)
  await sql`vacuum analyze`.execute(db)
  return database
}
