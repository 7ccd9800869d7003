import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { updateAccount } from '../../src/accounts/account-store.ts'
import { write } from '../../src/db/database.ts'
import { DAY, HOUR, MINUTE, SECOND } from '../../src/platform/clock.ts'
import { type Log, type LogFields, silentLog } from '../../src/platform/log.ts'
import { queueDisabledAlert, queueFailureAlert } from '../../src/webhooks/alert-store.ts'
import { DEFAULT_ALERT_TIMINGS, startEndpointAlerts } from '../../src/webhooks/endpoint-alerts.ts'
import { createWebhook, deleteWebhook } from '../../src/webhooks/endpoint-store.ts'
import { addAccount } from '../support/account-rows.ts'
import { fakeClock } from '../support/clock.ts'
import { tempDatabase } from '../support/database.ts'
import { fakeNotify } from '../support/notify.ts'
import { drainEventLoop } from '../support/wait.ts'

const { giveUpMs: GIVE_UP_MS, pollMs: POLL_MS, retryMs: NOTICE_RETRY_MS } = DEFAULT_ALERT_TIMINGS

const OPERATOR = 'ops@example.com'
const OWNER = 'owner@shop.example'

type Line = { readonly message: string; readonly fields: LogFields }

/** A database with one webhook, `wh_a` of the account `acc_a`, and its alerts. */
async function services(o: { notifyTo?: string | null; email?: string | null } = {}) {
  const { notifyTo = OPERATOR, email = null } = o
  const clock = fakeClock()
  const database = await tempDatabase({ clock })
  await addAccount(database)
  await write(database, trx => updateAccount(trx, 'acc_a', { email }))
  const notify = fakeNotify()
  const lines: Line[] = []
  const keep = (message: string, fields: LogFields = {}) => void lines.push({ message, fields })
  const log: Log = { ...silentLog, warn: keep, error: keep }
  const addWebhook = (id: string) =>
    write(database, trx =>
      createWebhook(trx, {
        id,
        accountId: 'acc_a',
        url: `https://${id.replace('_', '-')}.example/hook`,
        events: [],
        active: true,
        description: null,
        secret: 's',
        secretHint: 's',
        createdAt: clock.now(),
      }),
    )
  await addWebhook('wh_a')
  /** A poll has ended once the clock has a timer for the next one. */
  const untilPolled = async () => {
    await drainEventLoop()
    while (clock.pending === 0) await drainEventLoop()
  }
  return {
    clock,
    database,
    notify,
    lines,
    addWebhook,
    untilPolled,
    fail: (events = 1, webhookId = 'wh_a') =>
      write(database, trx =>
        queueFailureAlert(trx, {
          webhookId,
          accountId: 'acc_a',
          now: clock.now(),
          events,
          error: 'The receiver answered 500.',
        }),
      ),
    disable: (reason: string) =>
      write(database, trx =>
        queueDisabledAlert(trx, {
          webhookId: 'wh_a',
          accountId: 'acc_a',
          reason,
          now: clock.now(),
        }),
      ),
    begin: async () => {
      const notices = startEndpointAlerts({
        database,
        notify,
        clock,
        log,
        baseUrl: 'https://ev.example',
        notifyTo,
      })
      await untilPolled()
      return notices
    },
    /** Advances the clock, poll by poll. */
    pass: async (ms: number) => {
      for (let left = ms; left > 0; left -= POLL_MS) {
        await clock.advance(Math.min(left, POLL_MS))
        await untilPolled()
      }
    },
  }
}

describe('an alert', () => {
  test('about failures before the start is sent at once, and once', async () => {
    const { fail, begin, notify, pass, lines } = await services()
    await fail(3)
    const notices = await begin()
    expect(notify.sent).toMatchObject([
      { to: OPERATOR, subject: 'ev: 3 events could not be delivered to wh-a.example (wh_a)' },
    ])
    await pass(2 * HOUR)
    expect(notify.sent).toHaveLength(1)
    expect(lines).toEqual([])
    await notices.stop()
  })

  test('is sent within ten seconds of its cause', async () => {
    const { fail, begin, notify, pass } = await services()
    await begin()
    await pass(15 * SECOND)
    await fail()
    expect(notify.sent).toEqual([])
    await pass(POLL_MS)
    expect(notify.sent).toHaveLength(1)
  })

  test('is one per webhook and hour, with all failures in between', async () => {
    const { fail, disable, begin, notify, pass, addWebhook } = await services()
    await addWebhook('wh_b')
    await begin()
    await fail()
    await pass(MINUTE)
    for (let n = 0; n < 20; n++) {
      await fail()
      await fail(2, 'wh_b')
      await pass(MINUTE)
    }
    await disable('it was answered 410')
    expect(notify.sent.map(({ subject }) => subject)).toEqual([
      'ev: 1 event could not be delivered to wh-a.example (wh_a)',
      'ev: 2 events could not be delivered to wh-b.example (wh_b)',
    ])
    await pass(38 * MINUTE)
    expect(notify.sent).toHaveLength(2)
    await pass(3 * MINUTE)
    expect(notify.sent.map(({ subject }) => subject).slice(2)).toEqual([
      'ev: the webhook to wh-a.example was disabled, 20 events could not be delivered (wh_a)',
      'ev: 38 events could not be delivered to wh-b.example (wh_b)',
    ])
    await pass(3 * HOUR)
    expect(notify.sent).toHaveLength(4)
  })

  test('leaves failures during its sending to the next one', async () => {
    const { fail, begin, notify, pass } = await services()
    notify.handleWith(async () => void (await fail(5)))
    await fail()
    await begin()
    notify.handleWith(async () => {})
    await pass(2 * HOUR)
    expect(notify.sent.map(({ subject }) => subject)).toEqual([
      'ev: 1 event could not be delivered to wh-a.example (wh_a)',
      'ev: 5 events could not be delivered to wh-a.example (wh_a)',
    ])
  })

  test('of a webhook that was deleted meanwhile is not sent', async () => {
    const { fail, begin, notify, pass, database, clock } = await services()
    await begin()
    await fail()
    await write(database, trx => deleteWebhook(trx, 'acc_a', 'wh_a', clock.now()))
    await pass(HOUR)
    expect(notify.tried).toEqual([])
  })
})

describe('it is sent', () => {
  test.each([
    ["to the account's own address", { email: OWNER }, OWNER],
    ['to the configured recipient if the account has no address', {}, OPERATOR],
    ['to the account if no recipient is configured', { email: OWNER, notifyTo: null }, OWNER],
  ])('%s', async (_, given, to) => {
    const { fail, begin, notify, lines } = await services(given)
    await fail()
    await begin()
    expect(notify.sent.map(mail => mail.to)).toEqual([to])
    expect(lines).toEqual([])
  })

  test('to the log if neither has an address, once', async () => {
    const { fail, begin, notify, lines, pass } = await services({ notifyTo: null })
    await fail(2)
    await begin()
    await pass(2 * HOUR)
    expect(notify.tried).toEqual([])
    expect(lines).toEqual([
      {
        message: 'ev: 2 events could not be delivered to wh-a.example (wh_a)',
        fields: expect.objectContaining({
          lastError: 'The receiver answered 500.',
          steps: expect.stringContaining('ev webhooks deliveries wh_a'),
        }),
      },
    ])
  })
})

describe('if it is not accepted', () => {
  const refuse = async () => {
    throw new Error('451 Try later')
  }

  test('it is retried after five minutes with all failures until then, and the log has a line', async () => {
    const { fail, begin, notify, pass, lines } = await services({ email: OWNER })
    notify.handleWith(refuse)
    await fail()
    await begin()
    expect(lines).toEqual([
      {
        message: 'webhook alert could not be sent; will retry',
        fields: { webhookId: 'wh_a', accountId: 'acc_a', why: '451 Try later' },
      },
    ])
    await fail()
    await pass(NOTICE_RETRY_MS - POLL_MS)
    expect(notify.tried).toHaveLength(1)
    notify.handleWith(async () => {})
    await pass(POLL_MS)
    expect(notify.sent.map(({ subject }) => subject)).toEqual([
      'ev: 2 events could not be delivered to wh-a.example (wh_a)',
    ])
    await pass(2 * HOUR)
    expect(notify.tried).toHaveLength(2)
  })

  test('the seven days until it is dropped count from its own first attempt', async () => {
    const { fail, begin, notify, pass, lines, clock, untilPolled } = await services()
    for (let nth = 1; nth <= 2; nth++) {
      notify.handleWith(refuse)
      await fail()
      if (nth === 1) await begin()
      else await pass(POLL_MS)
      expect(lines).toHaveLength(nth)
      expect(lines.at(-1)?.message).toMatch(/will retry$/)
      notify.handleWith(async () => {})
      await pass(NOTICE_RETRY_MS)
      expect(notify.sent).toHaveLength(nth)
      for (let days = 0; days < 8; days++) await clock.advance(DAY)
      await untilPolled()
    }
  })

  test('others are sent all the same', async () => {
    const { fail, begin, notify, addWebhook } = await services()
    await addWebhook('wh_b')
    notify.handleWith(mail => (mail.subject.includes('wh_a') ? refuse() : Promise.resolve()))
    await fail()
    await fail(1, 'wh_b')
    await begin()
    expect(notify.tried).toHaveLength(2)
    expect(notify.sent).toMatchObject([{ subject: expect.stringContaining('wh_b') }])
  })

  test('it is dropped after seven days, and later failures are reported again', async () => {
    const { fail, begin, notify, lines, clock, untilPolled } = await services()
    notify.handleWith(refuse)
    await fail(4)
    await begin()
    const started = clock.now()
    const isGivenUp = () => lines.at(-1)?.message.endsWith('giving up') ?? false
    while (!isGivenUp() && clock.now() - started < 2 * GIVE_UP_MS) {
      await clock.advance(HOUR)
      await untilPolled()
    }
    expect(isGivenUp()).toBe(true)
    expect(clock.now() - started).toBeGreaterThanOrEqual(7 * DAY)
    expect(clock.now() - started).toBeLessThan(7 * DAY + 2 * HOUR)
    const { length } = notify.tried
    await clock.advance(2 * HOUR)
    await untilPolled()
    expect(notify.tried).toHaveLength(length)
    notify.handleWith(async () => {})
    await fail()
    await clock.advance(POLL_MS)
    await untilPolled()
    expect(notify.sent.map(({ subject }) => subject)).toEqual([
      'ev: 1 event could not be delivered to wh-a.example (wh_a)',
    ])
  })
})

describe('two servers that share a database', () => {
  test('send each alert once', async () => {
    const { fail, begin, notify, pass, addWebhook, lines } = await services()
    await addWebhook('wh_b')
    await fail()
    await fail(2, 'wh_b')
    const both = await Promise.all([begin(), begin()])
    await fail(3)
    await pass(3 * HOUR)
    expect(notify.sent.map(({ subject }) => subject).toSorted()).toEqual([
      'ev: 1 event could not be delivered to wh-a.example (wh_a)',
      'ev: 2 events could not be delivered to wh-b.example (wh_b)',
      'ev: 3 events could not be delivered to wh-a.example (wh_a)',
    ])
    expect(notify.tried).toHaveLength(3)
    expect(lines).toEqual([])
    await Promise.all(both.map(notices => notices.stop()))
  })

  test('share the retries of a rejected alert, and neither retries early', async () => {
    const { fail, begin, notify, pass } = await services()
    notify.handleWith(async () => {
      throw new Error('451 Try later')
    })
    await fail()
    const both = await Promise.all([begin(), begin()])
    expect(notify.tried).toHaveLength(1)
    await pass(NOTICE_RETRY_MS - POLL_MS)
    expect(notify.tried).toHaveLength(1)
    await pass(POLL_MS)
    expect(notify.tried).toHaveLength(2)
    await Promise.all(both.map(notices => notices.stop()))
  })
})

describe('while the database cannot be written', () => {
  test('for a moment, the sent alert is recorded afterwards and not sent again', async () => {
    const { fail, begin, notify, pass, clock, database, lines } = await services()
    await fail()
    const away = (error: Error) => {
      const { db } = database
      let left = 3
      const started = db.transaction.bind(db)
      db.transaction = () => {
        if (notify.sent.length === 0 || left-- <= 0) return started()
        throw error
      }
    }
    away(Object.assign(new Error('the server starts'), { code: '57P03' }))
    await begin()
    expect(notify.sent).toHaveLength(1)
    for (let n = 0; n < 3; n++) await clock.advance(SECOND)
    await pass(2 * HOUR)
    expect(notify.sent).toHaveLength(1)
    expect(lines).toEqual([])
  })

  test('no alert is sent in a loop', async () => {
    const { fail, begin, notify, pass, database, lines } = await services()
    await fail()
    await sql`create trigger full before update on notice begin select raise(abort, 'disk full'); end`.execute(
      database.db,
    )
    await begin()
    await pass(MINUTE)
    expect(notify.tried).toEqual([])
    expect(lines[0]).toMatchObject({ fields: { why: expect.stringContaining('disk full') } })
    await sql`drop trigger full`.execute(database.db)
    await pass(POLL_MS)
    expect(notify.sent).toHaveLength(1)
  })

  test('an alert that could not be recorded as sent is repeated, but not every ten seconds', async () => {
    const { fail, begin, notify, pass, database } = await services()
    await fail()
    await sql`create trigger full before update on notice when new.sent_at is not null
      begin select raise(abort, 'disk full'); end`.execute(database.db)
    await begin()
    await pass(NOTICE_RETRY_MS - POLL_MS)
    expect(notify.sent).toHaveLength(1)
    await sql`drop trigger full`.execute(database.db)
    await pass(2 * HOUR)
    expect(notify.sent).toHaveLength(2)
  })
})

describe('at shutdown', () => {
  test('the mail in flight is aborted, and sent after the next start', async () => {
    const { fail, begin, notify, pass, clock, lines } = await services()
    const given = Promise.withResolvers<void>()
    const inFlight = Promise.withResolvers<void>()
    notify.handleWith(() => {
      inFlight.resolve()
      return given.promise
    })
    const notices = await begin()
    await fail()
    await clock.advance(POLL_MS)
    await inFlight.promise
    const stopped = notices.stop()
    expect(notify.isClosed).toBe(true)
    given.reject(new Error('closed'))
    await stopped
    expect([clock.pending, notify.sent, lines]).toEqual([0, [], []])
    notify.handleWith(async () => {})
    const others = await begin()
    await pass(NOTICE_RETRY_MS)
    expect(notify.sent).toHaveLength(1)
    await others.stop()
  })

  test('no new mail starts', async () => {
    const { fail, begin, notify, clock, addWebhook } = await services()
    await addWebhook('wh_b')
    const notices = await begin()
    const stopped = Promise.withResolvers<void>()
    notify.handleWith(async () => void notices.stop().then(stopped.resolve))
    await fail()
    await fail(1, 'wh_b')
    await clock.advance(POLL_MS)
    await stopped.promise
    expect(notify.tried).toHaveLength(1)
    await clock.advance(HOUR)
    await drainEventLoop()
    expect(notify.tried).toHaveLength(1)
  })
})
