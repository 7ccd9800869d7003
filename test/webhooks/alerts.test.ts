import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { createEventService } from '../support/event-service.ts'
import { waitUntil } from '../support/wait.ts'

// Mails and log lines about webhooks, from the failed event to the mail server.

type Service = Awaited<ReturnType<typeof createEventService>>

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

const OPERATOR = 'ops@example.com'
const OWNER = 'owner@shop.example'

const REFUSE = async () => {
  throw new Error('451 Try later')
}

/** A service whose events fail for good at once: their retries take half a minute. */
async function createService(options: Parameters<typeof createEventService>[0] = {}) {
  const service = await createEventService({
    fastRetries: true,
    ...options,
    timings: {
      deliveries: { duePollMs: 90 * DAY },
      alerts: { pollMs: MINUTE, ...options.timings?.alerts },
      worker: { finishPollMs: 90 * DAY },
    },
  })
  service.post.answer(500)
  const { id, path } = await service.hook()
  const sendAtOnce = () => service.patch(path, { active: true })
  /** Lets events happen and fail. */
  const fail = async (count = 1) => {
    const failures = async () => (await service.logged(id, '?status=failed')).length
    const before = await failures()
    await service.happen(count)
    await sendAtOnce()
    await service.until(async () => (await failures()) === before + count)
  }
  const mailed = (count: number) => service.until(() => service.notify.sent.length === count)
  return { ...service, id, path, fail, mailed, sendAtOnce }
}

const subjects = ({ notify }: Pick<Service, 'notify'>) => notify.sent.map(({ subject }) => subject)

const failed = (events: string, id: string) =>
  `ev: ${events} could not be delivered to app.test (${id})`

const alertLines = ({ lines }: Pick<Service, 'lines'>) =>
  lines.filter(
    ({ level, message }) => level !== 'debug' && /alert|could not be delivered/.test(message),
  )

describe('an alert about failed events', () => {
  test.each<[string, { email?: string; notifyTo?: string | null }, string]>([
    ["goes to the account's own address", { email: OWNER }, OWNER],
    ['goes to the configured recipient if the account has no address', {}, OPERATOR],
    ['goes to the account if no recipient is configured', { email: OWNER, notifyTo: null }, OWNER],
  ])('%s, once', async (_, { email, notifyTo = OPERATOR }, to) => {
    const service = await createService({ notifyTo })
    if (email !== undefined) await service.patch('/v1/account', { email })
    await service.fail()
    await service.mailed(1)
    await service.pass(2 * HOUR)
    expect(service.notify.sent).toMatchObject([{ to, subject: failed('1 event', service.id) }])
    expect(service.notify.sent[0]?.text).toContain('Last error: It answered 500.')
    expect(alertLines(service)).toEqual([])
  })

  test('goes to the log if neither has an address, once', async () => {
    const service = await createService({ notifyTo: null })
    await service.fail()
    await service.until(() => alertLines(service).length > 0)
    await service.pass(2 * HOUR)
    expect(service.notify.tried).toEqual([])
    expect(alertLines(service)).toMatchObject([
      {
        level: 'warn',
        message: failed('1 event', service.id),
        fields: { lastError: expect.stringMatching(/^It answered 500/) },
      },
    ])
  })

  test('follows another one after an hour, with all failures in between and the reason of a disabled webhook', async () => {
    const service = await createService()
    const { fail, mailed, happen, id, post, clock, notify, pass, sendAtOnce } = service
    await fail()
    await mailed(1)
    const first = clock.now()
    await fail(2)
    await fail(3)
    post.answer(410)
    await happen()
    await sendAtOnce()
    await pass(first + HOUR - MINUTE - clock.now())
    expect(notify.sent).toHaveLength(1)
    await mailed(2)
    expect(subjects(service)).toEqual([
      failed('1 event', id),
      `ev: the webhook to app.test was disabled, 6 events could not be delivered (${id})`,
    ])
    expect(clock.now() - first).toBeLessThan(HOUR + MINUTE)
    expect(notify.sent[1]?.text).toContain('410 Gone')
    await pass(3 * HOUR)
    expect(notify.sent).toHaveLength(2)
  })

  test('is sent at once if the last one was sent an hour ago, and each webhook has its own', async () => {
    const service = await createService()
    const { fail, mailed, pass, hook, id, clock } = service
    await fail()
    await mailed(1)
    const other = await hook()
    await pass(HOUR)
    const before = clock.now()
    await fail()
    await mailed(3)
    expect(clock.now() - before).toBeLessThan(2 * MINUTE)
    expect(subjects(service).slice(1).toSorted()).toEqual(
      [id, other.id].map(one => failed('1 event', one)).toSorted(),
    )
  })

  test('leaves failures during its sending to the next one', async () => {
    const service = await createService()
    const { fail, mailed, id, notify } = service
    const held = Promise.withResolvers<void>()
    notify.handleWith(() => held.promise)
    await fail()
    await service.until(() => notify.tried.length === 1)
    notify.handleWith(async () => {})
    await fail(2)
    held.resolve()
    await mailed(2)
    expect(subjects(service)).toEqual([failed('1 event', id), failed('2 events', id)])
  })

  test('is not sent for a webhook that was deleted meanwhile', async () => {
    const service = await createService({ timings: { alerts: { pollMs: 5 * MINUTE } } })
    await service.fail()
    await service.request(service.path, { method: 'DELETE' })
    await service.pass(HOUR)
    expect(service.notify.tried).toEqual([])
  })

  test('is not sent for a test or what will be retried', async () => {
    const service = await createService({ fastRetries: false })
    await service.json(`${service.path}/test`, { method: 'POST' })
    await service.happen()
    await service.sendAtOnce()
    await service.until(() => service.post.sent.length === 3)
    await service.pass(MINUTE)
    expect(service.notify.tried).toEqual([])
  })
})

describe('an alert that is not accepted', () => {
  test('is retried after five minutes with all failures until then; others are sent', async () => {
    const service = await createService()
    const { fail, mailed, id, notify, hook, clock, until } = service
    const other = await hook()
    notify.handleWith(mail => (mail.subject.includes(id) ? REFUSE() : Promise.resolve()))
    await fail()
    await mailed(1)
    await until(() => alertLines(service).length === 1)
    const refused = clock.now()
    expect(alertLines(service)).toMatchObject([
      {
        message: 'webhook alert could not be sent; will retry',
        fields: { webhookId: id, accountId: 'acc_1', why: '451 Try later' },
      },
    ])
    await service.request(other.path, { method: 'DELETE' })
    await fail()
    notify.handleWith(async () => {})
    await mailed(2)
    expect(clock.now() - refused).toBeGreaterThanOrEqual(4 * MINUTE)
    expect(subjects(service)).toEqual([failed('1 event', other.id), failed('2 events', id)])
  })

  test('is dropped after a time that counts from its own first attempt', async () => {
    const alerts = { pollMs: 10 * MINUTE, retryMs: HOUR, giveUpMs: DAY }
    const service = await createService({ timings: { alerts } })
    const { notify, pass, until } = service
    const wake = async () => {
      await service.happen()
      await service.sendAtOnce()
    }
    for (const isGivenUp of [false, true]) {
      notify.handleWith(REFUSE)
      const tried = notify.tried.length
      await wake()
      await until(() => notify.tried.length > tried)
      await pass(isGivenUp ? DAY + 2 * HOUR : 20 * HOUR)
      expect(alertLines(service).at(-1)?.message).toMatch(isGivenUp ? /giving up$/ : /will retry$/)
      if (isGivenUp) break
      notify.handleWith(async () => {})
      await until(() => notify.sent.length === 1)
      await pass(2 * HOUR)
    }
    const count = notify.tried.length
    await pass(3 * HOUR)
    expect(notify.tried).toHaveLength(count)
    notify.handleWith(async () => {})
    await wake()
    await until(() => notify.sent.length === 2)
    expect(subjects(service).at(-1)).toBe(failed('1 event', service.id))
  })
})

describe('at shutdown', () => {
  test('the mail in flight is aborted, and sent after the next start', async () => {
    const service = await createService()
    const { fail, mailed, notify, startAlerts, stopAlerts } = service
    const given = Promise.withResolvers<void>()
    notify.handleWith(() => given.promise)
    await fail()
    await service.until(() => notify.tried.length === 1)
    const stopped = stopAlerts()
    await waitUntil(() => notify.isClosed)
    given.reject(new Error('closed'))
    await stopped
    expect([notify.sent, alertLines(service)]).toEqual([[], []])
    notify.handleWith(async () => {})
    startAlerts()
    await mailed(1)
  })

  test('no new mail starts', async () => {
    const service = await createService()
    const { fail, hook, notify, stopAlerts, pass } = service
    await hook()
    const stopped = Promise.withResolvers<void>()
    notify.handleWith(async () => void stopAlerts().then(stopped.resolve))
    await fail()
    await service.until(() => notify.tried.length === 1)
    await stopped.promise
    await pass(HOUR)
    expect(notify.tried).toHaveLength(1)
  })
})

describe('while the database cannot be written', () => {
  const full = (when = '') => sql`create trigger full before update on notice ${sql.raw(when)}
    begin select raise(abort, 'disk full'); end`
  const free = sql`drop trigger full`

  test('no alert is sent, and the log has a line', async () => {
    const service = await createService()
    const { db } = service.database
    await full().execute(db)
    await service.fail()
    await service.pass(5 * MINUTE)
    expect(service.notify.tried).toEqual([])
    expect(service.lines.map(({ fields }) => fields.why)).toContainEqual(
      expect.stringContaining('disk full'),
    )
    await free.execute(db)
    await service.mailed(1)
  })

  test('an alert that could not be recorded as sent is repeated, but not with each poll', async () => {
    const service = await createService()
    const { db } = service.database
    await full('when new.sent_at is not null').execute(db)
    await service.fail()
    await service.mailed(1)
    await service.pass(3 * MINUTE)
    expect(service.notify.sent).toHaveLength(1)
    await free.execute(db)
    await service.pass(2 * HOUR)
    expect(service.notify.sent).toHaveLength(2)
  })

  test('for a moment, the sent alert is recorded afterwards and not sent again', async () => {
    const service = await createService()
    const { notify, database } = service
    const started = database.db.transaction.bind(database.db)
    let left = 3
    database.db.transaction = () => {
      if (notify.sent.length === 0 || left-- <= 0) return started()
      throw Object.assign(new Error('the server starts'), { code: '57P03' })
    }
    await service.fail()
    await service.mailed(1)
    await service.pass(2 * HOUR)
    expect([notify.sent.length, left < 0]).toEqual([1, true])
    expect(alertLines(service)).toEqual([])
  })
})
