import { describe, expect, test } from 'vitest'
import { updateAccount } from '../../src/accounts/account-store.ts'
import { type Database, write, writeConcurrent } from '../../src/db/database.ts'
import { HOUR } from '../../src/platform/clock.ts'
import {
  type AlertClaim,
  claimAlert,
  countPendingAlerts,
  type DueAlert,
  listDueAlerts,
  markAlertSent,
  queueDisabledAlert,
  queueFailureAlert,
} from '../../src/webhooks/alert-store.ts'
import { deleteWebhook } from '../../src/webhooks/endpoint-store.ts'
import { addAccount } from '../support/account-rows.ts'
import { tempDatabase } from '../support/database.ts'
import { addWebhook, noticeOf } from '../support/webhook-rows.ts'

async function services(): Promise<Database> {
  const database = await tempDatabase()
  await addAccount(database, 'acc_a')
  await addWebhook(database)
  return database
}

const OF_A = { webhookId: 'wh_a', accountId: 'acc_a' }

const fail = (database: Database, now: number, events = 1, error: string | null = 'no') =>
  write(database, trx => queueFailureAlert(trx, { ...OF_A, events, error, now }))

const switchOff = (database: Database, now: number, reason = 'gone') =>
  write(database, trx => queueDisabledAlert(trx, { ...OF_A, reason, now }))

/** Marks the alert of `wh_a` as sent in its current state, whenever it is due. */
async function sent(
  database: Database,
  reported: Pick<DueAlert, 'failedEvents' | 'disabledReason'>,
  now: number,
): Promise<boolean> {
  const dueAt = (await noticeOf(database))?.due_at ?? 0
  return write(database, trx => markAlertSent(trx, { webhookId: 'wh_a', dueAt }, reported, now))
}

const postpone = (database: Database, seen: Partial<AlertClaim>, until: number) =>
  write(database, trx => claimAlert(trx, { webhookId: 'wh_a', dueAt: 0, ...seen }, until))

describe('an alert', () => {
  test('is due at once, with recipient, webhook and problem', async () => {
    const database = await services()
    await write(database, trx => updateAccount(trx, 'acc_a', { email: 'ann@owner.example' }))
    await fail(database, 10, 2, 'It answered 500.')
    expect(await listDueAlerts(database, 9)).toEqual([])
    expect(await listDueAlerts(database, 10)).toEqual([
      {
        ...OF_A,
        accountName: 'Name of acc_a',
        email: 'ann@owner.example',
        url: 'https://app.example/hook',
        failedEvents: 2,
        lastError: 'It answered 500.',
        disabledReason: null,
        dueAt: 10,
      },
    ])
  })

  test('of an account without an address says so', async () => {
    const database = await services()
    await fail(database, 10)
    expect(await listDueAlerts(database, 10)).toMatchObject([{ email: null }])
  })

  test('collects changes until it is sent, and keeps its due time', async () => {
    const database = await services()
    await fail(database, 10, 2, 'first')
    await switchOff(database, 20)
    await fail(database, 30, 3, 'last')
    await fail(database, 40, 1, null)
    expect(await listDueAlerts(database, 10)).toMatchObject([
      { failedEvents: 6, lastError: 'last', disabledReason: 'gone' },
    ])
  })

  test('reports a disabled webhook without failed events', async () => {
    const database = await services()
    await switchOff(database, 20, 'It failed for 5 days.')
    expect(await listDueAlerts(database, 20)).toMatchObject([
      { failedEvents: 0, lastError: null, disabledReason: 'It failed for 5 days.' },
    ])
  })

  test('that was sent is not due again, and nothing in it is reported twice', async () => {
    const database = await services()
    await fail(database, 10, 2)
    await switchOff(database, 10)
    await sent(database, { failedEvents: 2, disabledReason: 'gone' }, 50)
    expect(await listDueAlerts(database, 50 + 100 * HOUR)).toEqual([])
    await fail(database, 50 + 200 * HOUR, 1, null)
    expect(await listDueAlerts(database, 50 + 200 * HOUR)).toMatchObject([
      { failedEvents: 1, lastError: null, disabledReason: null },
    ])
  })

  test.each([
    ['soon', 60],
    ['just before', 50 + HOUR - 1],
  ])('follows another one after an hour, not before: something failed %s', async (_, at) => {
    const database = await services()
    await fail(database, 10)
    await sent(database, { failedEvents: 1, disabledReason: null }, 50)
    await fail(database, at)
    await fail(database, at)
    expect(await listDueAlerts(database, 50 + HOUR - 1)).toEqual([])
    expect(await listDueAlerts(database, 50 + HOUR)).toMatchObject([{ failedEvents: 2 }])
  })

  test('is due at once if the last one was sent an hour ago', async () => {
    const database = await services()
    await fail(database, 10)
    await sent(database, { failedEvents: 1, disabledReason: null }, 50)
    await fail(database, 50 + HOUR)
    expect(await listDueAlerts(database, 50 + HOUR - 1)).toEqual([])
    expect(await listDueAlerts(database, 50 + HOUR)).toMatchObject([{ failedEvents: 1 }])
  })

  test('keeps changes during its sending for the next one, an hour later', async () => {
    const database = await services()
    await fail(database, 10, 2)
    const [reported] = (await listDueAlerts(database, 10)) as [DueAlert]
    await fail(database, 20, 3, 'later')
    await switchOff(database, 30)
    await sent(database, reported, 50)
    expect(await listDueAlerts(database, 50 + HOUR - 1)).toEqual([])
    expect(await listDueAlerts(database, 50 + HOUR)).toMatchObject([
      { failedEvents: 3, lastError: 'later', disabledReason: 'gone' },
    ])
  })

  test('keeps another reason that arrives during its sending', async () => {
    const database = await services()
    await switchOff(database, 10, 'first')
    await switchOff(database, 20, 'second')
    await sent(database, { failedEvents: 0, disabledReason: 'first' }, 50)
    expect(await listDueAlerts(database, 50 + HOUR)).toMatchObject([{ disabledReason: 'second' }])
  })

  test('that could not be sent waits, and collects changes meanwhile', async () => {
    const database = await services()
    await fail(database, 10)
    expect(await postpone(database, { dueAt: 10 }, 500)).toBe(true)
    await fail(database, 20)
    expect(await listDueAlerts(database, 499)).toEqual([])
    expect(await listDueAlerts(database, 500)).toMatchObject([{ failedEvents: 2 }])
  })

  test('that is not due cannot be claimed', async () => {
    const database = await services()
    await fail(database, 10)
    await sent(database, { failedEvents: 1, disabledReason: null }, 50)
    expect(await postpone(database, { dueAt: 10 }, 500)).toBe(false)
    expect(await postpone(database, { dueAt: 10, webhookId: 'wh_x' }, 500)).toBe(false)
    expect(await listDueAlerts(database, 100 * HOUR)).toEqual([])
  })

  test('of a deleted webhook is not sent', async () => {
    const database = await services()
    await fail(database, 10)
    await write(database, trx => deleteWebhook(trx, 'acc_a', 'wh_a', 20))
    expect(await listDueAlerts(database, 30)).toEqual([])
    // Sent in the meantime.
    await sent(database, { failedEvents: 1, disabledReason: null }, 50)
  })

  test('is separate for each webhook, earliest first', async () => {
    const database = await services()
    await addWebhook(database, { id: 'wh_b' })
    await fail(database, 20)
    const ofB = { ...OF_A, webhookId: 'wh_b', events: 5, error: null, now: 10 }
    await write(database, trx => queueFailureAlert(trx, ofB))
    const due = await listDueAlerts(database, 20)
    expect(due.map(one => [one.webhookId, one.failedEvents])).toEqual([
      ['wh_b', 5],
      ['wh_a', 1],
    ])
    await sent(database, { failedEvents: 1, disabledReason: null }, 50)
    expect(await listDueAlerts(database, 50)).toMatchObject([
      { webhookId: 'wh_b', failedEvents: 5 },
    ])
  })

  test('counts as pending from its cause until it is sent, and not for a deleted webhook', async () => {
    const database = await services()
    await addWebhook(database, { id: 'wh_b' })
    expect(await countPendingAlerts(database)).toBe(0)
    await fail(database, 10)
    const ofB = { ...OF_A, webhookId: 'wh_b', events: 1, error: null, now: HOUR }
    await write(database, trx => queueFailureAlert(trx, ofB))
    expect(await countPendingAlerts(database)).toBe(2)
    await sent(database, { failedEvents: 1, disabledReason: null }, 50)
    expect(await countPendingAlerts(database)).toBe(1)
    await write(database, trx => deleteWebhook(trx, 'acc_a', 'wh_b', 60))
    expect(await countPendingAlerts(database)).toBe(0)
  })
})

describe('an alert on two servers', () => {
  test('is claimed by one of them, and by no other before the claim expires', async () => {
    const database = await services()
    await fail(database, 10)
    const claims = await Promise.all(
      [500, 501, 502].map(until =>
        writeConcurrent(database, trx => claimAlert(trx, { webhookId: 'wh_a', dueAt: 10 }, until)),
      ),
    )
    expect(claims.filter(isClaimed => isClaimed)).toHaveLength(1)
    expect(await listDueAlerts(database, 499)).toEqual([])
    expect(await listDueAlerts(database, 502)).toHaveLength(1)
  })

  test('and sent after the claim has expired is marked by the other one only', async () => {
    const database = await services()
    await fail(database, 10, 2)
    const reported = { failedEvents: 2, disabledReason: null }
    const note = (dueAt: number, now: number) =>
      write(database, trx => markAlertSent(trx, { webhookId: 'wh_a', dueAt }, reported, now))
    await postpone(database, { dueAt: 10 }, 500)
    await postpone(database, { dueAt: 500 }, 900)
    expect(await note(900, 510)).toBe(true)
    await fail(database, 520, 3)
    expect(await note(500, 530)).toBe(false)
    expect(await listDueAlerts(database, 510 + HOUR)).toMatchObject([{ failedEvents: 3 }])
  })

  test('loses no failure that happens while it is marked as sent', async () => {
    const database = await services()
    await fail(database, 10, 1)
    const noted = writeConcurrent(database, trx =>
      markAlertSent(
        trx,
        { webhookId: 'wh_a', dueAt: 10 },
        { failedEvents: 1, disabledReason: null },
        50,
      ),
    )
    const failures = Array.from({ length: 5 }, () =>
      writeConcurrent(database, trx =>
        queueFailureAlert(trx, { ...OF_A, events: 2, error: 'x', now: 20 }),
      ),
    )
    await Promise.all([noted, ...failures])
    const { due_at, failed_events } = (await noticeOf(database)) ?? {}
    expect(failed_events).toBe(10)
    expect(due_at).toBe(50 + HOUR)
  })
})
