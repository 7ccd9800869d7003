import { describe, expect, test } from 'vitest'
import { type Database, type Trx, write } from '../../src/db/database.ts'
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
import { getEventPage } from '../../src/webhooks/event-store.ts'
import {
  deleteDeliveriesUntil,
  deleteOrphanedEventsBefore,
  deleteStrandedUntil,
  deleteWebhooksUntil,
} from '../../src/webhooks/retention.ts'
import { plansOf } from '../db/plan/query-plans.ts'
import { onPostgres, tempDatabase } from '../support/database.ts'
import { addDelivery, addWebhook, attemptAt } from '../support/webhook-rows.ts'

/** Webhooks have millions of deliveries: a full scan would stop the service. */
describe.skipIf(onPostgres)('a statement on many deliveries uses its index', () => {
  const page = { webhookId: 'wh_a', before: { createdAt: 9, id: 'dlv_x' }, max: 9 }
  const events = { accountId: 'acc_a', before: { createdAt: 9, id: 'evt_x' }, since: 1, max: 9 }
  const except = ['dlv_x', 'dlv_y']
  const inTrx = (work: (trx: Trx) => Promise<unknown>) => (database: Database) =>
    write(database, work)

  test.each<[string, (database: Database) => Promise<unknown>, RegExp]>([
    [
      'webhooks with due deliveries',
      db => listDueWebhooks(db, 9),
      /SEARCH delivery .*COVERING INDEX delivery_due \(webhook_id=\? AND due_at<\?\)/,
    ],
    [
      'the next delivery',
      db => listNextDeliveries(db, 'wh_a', { now: 9, except, max: 4 }),
      /SEARCH delivery USING INDEX delivery_due \(webhook_id=\? AND due_at<\?\)/,
    ],
    [
      'the next due time',
      db => nextDueAt(db, 'wh_a', except),
      /SEARCH delivery USING COVERING INDEX delivery_due \(webhook_id=\?\)/,
    ],
    [
      'the number of open deliveries',
      db => countOpenDeliveries(db),
      /SCAN delivery USING COVERING INDEX delivery_due/,
    ],
    [
      'the deliveries of recorded attempts',
      inTrx(trx => recordAttempts(trx, [attemptAt('dlv_a')], { now: 9, steadyNow: 9 })),
      /SEARCH delivery USING INDEX sqlite_autoindex_delivery_1 \(id=\?\)/,
    ],
    ['a manual retry', inTrx(trx => retryDelivery(trx, 'wh_a', 'dlv_a', 9)), /delivery.*\(id=\?\)/],
    [
      'the retry of failed deliveries',
      inTrx(trx => recoverDeliveries(trx, 'wh_a', { since: 1, now: 9 })),
      /INDEX delivery_state \(webhook_id=\? AND state=\? AND created_at>\?\)/,
    ],
    [
      'a page of events',
      db => getEventPage(db, { ...events, kind: 'batch.failed' }),
      /INDEX event_account \(account_id=\? AND created_at>\? AND \(created_at,id\)<\(\?,\?\)\)/,
    ],
    [
      'a page of the log',
      db => getDeliveryPage(db, page),
      /INDEX delivery_webhook \(webhook_id=\? AND \(created_at,id\)<\(\?,\?\)\)/,
    ],
    [
      'a page of the log, by kind',
      db => getDeliveryPage(db, { ...page, event: 'quota.warning' }),
      /INDEX delivery_webhook \(webhook_id=\? AND \(created_at,id\)<\(\?,\?\)\)/,
    ],
    [
      'a page of the log, by state',
      db => getDeliveryPage(db, { ...page, status: 'failed', event: 'quota.warning' }),
      /INDEX delivery_state \(webhook_id=\? AND state=\? AND \(created_at,id\)<\(\?,\?\)\)/,
    ],
    ['one delivery', db => findDelivery(db, 'wh_a', 'dlv_a'), /delivery.*\(id=\?\)/],
    ['expired deliveries', inTrx(trx => deleteDeliveriesUntil(trx, 9, 9)), /INDEX delivery_expiry/],
    [
      'deliveries stranded at disabled webhooks',
      inTrx(trx => deleteStrandedUntil(trx, 9, 9)),
      /INDEX delivery_due \(webhook_id=\? AND due_at<\?\)/,
    ],
    [
      'deliveries of deleted webhooks',
      inTrx(trx => deleteWebhooksUntil(trx, 9, 9)),
      /INDEX delivery_(webhook|state) \(webhook_id=\?\)/,
    ],
    [
      'events without a delivery',
      inTrx(trx => deleteOrphanedEventsBefore(trx, 9, 9)),
      /INDEX delivery_event \(event_id=\?\)/,
    ],
    ['due alerts', db => listDueAlerts(db, 9), /notice USING INDEX notice_due/],
  ])('%s', async (_, run, index) => {
    const database = await tempDatabase()
    await addWebhook(database)
    for (let n = 0; n < 9; n++) await addDelivery(database, `dlv_${n}`, { at: n })
    const plan = await plansOf(database, run)
    expect(plan.join('\n')).toMatch(index)
    expect(plan.filter(line => /TEMP B-TREE/.test(line))).toEqual([])
    expect(
      plan.filter(line => /^SCAN (delivery|attempt|event|notice)\b(?!.*COVERING)/.test(line)),
    ).toEqual([])
  })
})
