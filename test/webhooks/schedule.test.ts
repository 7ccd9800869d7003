import { describe, expect, test } from 'vitest'
import { DAY, HOUR, MINUTE, SECOND } from '../../src/platform/clock.ts'
import { createEventService } from '../support/event-service.ts'
import { drainEventLoop, waitUntil } from '../support/wait.ts'
import { answered, holdRequests } from '../support/webhook-transport.ts'

// The times at which events are sent, to the millisecond of a fake clock.

type Service = Awaited<ReturnType<typeof createEventService>>

const NEVER_MS = 90 * DAY
/** Without polls only the timers of deliveries count, and days pass quickly. */
const NO_POLL = {
  timings: {
    deliveries: { duePollMs: NEVER_MS },
    alerts: { pollMs: NEVER_MS },
    worker: { finishPollMs: NEVER_MS },
  },
}

/** A service with a webhook and an event that was not confirmed once. */
async function withFailed(answer: Parameters<Service['post']['answer']>[0] = 500, options = {}) {
  const service = await createEventService({ ...NO_POLL, ...options })
  const { id, path } = await service.hook()
  service.post.answer(answer)
  await service.happen()
  await service.patch(path, { active: true })
  await waitUntil(async () => (await service.logged(id))[0]?.status !== 'pending')
  return { ...service, id, path, start: service.start }
}

async function attemptsOf({ json, logged }: Service, webhookId: string) {
  const [delivery] = await logged(webhookId)
  const { data } = await json(`/v1/webhooks/${webhookId}/deliveries/${delivery?.id}`)
  const { attempts } = data as { attempts: { started_at: string }[] }
  return attempts.map(({ started_at }) => Date.parse(started_at))
}

describe('an event that is never confirmed', () => {
  test.each<[string, object, number[]]>([
    ['over a day', {}, [0, 1, 6, 36, 156, 1_596].map(minutes => minutes * MINUTE)],
    [
      'in half a minute if it is simulated and the service is set up so',
      { fastRetries: true },
      [0, 1, 3, 7, 15, 31].map(seconds => seconds * SECOND),
    ],
  ])('is sent six times %s, then it has failed; it is kept for seven days', async (_, o, times) => {
    const service = await withFailed(500, o)
    const { clock, post, id, logged, pass } = service
    const [begin = 0] = await attemptsOf(service, id)
    for (const [n, at] of times.entries()) {
      if (n === 0) continue
      await pass(begin + at - clock.now() - 1)
      expect(post.sent).toHaveLength(n)
      await pass(1)
      expect(post.sent).toHaveLength(n + 1)
    }
    expect((await attemptsOf(service, id)).map(one => one - begin)).toEqual(times)
    expect(await logged(id)).toMatchObject([
      { status: 'failed', expires_at: new Date(clock.now() + 7 * DAY).toISOString() },
    ])
    expect(service.lines.filter(({ level }) => level === 'warn')).toMatchObject([
      { message: 'webhook delivery failed', fields: { webhook: id, status: 500, attempts: 6 } },
    ])
    expect(new Set(post.sent.map(({ body }) => body)).size).toBe(1)
    expect(new Set(post.sent.map(({ headers }) => headers['webhook-timestamp'])).size).toBe(6)
  })

  test('waits from the end of the attempt before', async () => {
    const service = await createEventService(NO_POLL)
    const { hook, happen, post, clock, patch, until, logged } = service
    const { id, path } = await hook()
    const held = holdRequests(post)
    await happen()
    await patch(path, { active: true })
    await until(() => held.inFlight === 1)
    await clock.advance(20 * SECOND)
    held.answer(500)
    await waitUntil(async () => (await logged(id))[0]?.status === 'retry_scheduled')
    const [delivery] = await logged(id)
    expect(Date.parse(delivery?.next_attempt_at ?? '') - clock.now()).toBe(MINUTE)
  })

  test('is sent on time after a restart, found by the poll', async () => {
    const service = await withFailed(500, { timings: {} })
    const { clock, post, id, stopDeliveries, start, pass } = service
    const [begin = 0] = await attemptsOf(service, id)
    await stopDeliveries()
    start()
    await pass(begin + MINUTE - clock.now() - 1)
    expect(post.sent).toHaveLength(1)
    await pass(SECOND / 2)
    expect(post.sent).toHaveLength(2)
  })

  test.each([
    ['an hour', HOUR],
    ['a day', DAY],
    ['ten years', 3_652 * DAY],
    ['minus an hour', -HOUR],
    ['minus ten years', -3_652 * DAY],
  ])('is sent on time although the wall clock is set back by %s', async (_, jumpMs) => {
    const { clock, post, pass, happen } = await withFailed(500, { timings: {} })
    const begin = clock.monotonicNow()
    clock.jump(-jumpMs)
    await happen()
    await pass(SECOND / 2)
    expect(post.sent).toHaveLength(2)
    await pass(begin + MINUTE - SECOND - clock.monotonicNow())
    expect(post.sent).toHaveLength(2)
    await pass(SECOND)
    expect(post.sent.length).toBeGreaterThan(2)
  })
})

describe('a Retry-After', () => {
  const DATE = new Date(Date.UTC(2026, 5, 1, 13)).toUTCString()

  test.each<[header: string, waitedMs: number]>([
    ['600', 10 * MINUTE],
    ['10', MINUTE], // shorter than ours
    [DATE, HOUR],
    ['soon', MINUTE],
    ['99999999', DAY], // the maximum delay
  ])('of “%s” delays the event by %i ms', async (header, waitedMs) => {
    const { clock, post, logged, id } = await withFailed(answered(500, { 'retry-after': header }))
    const [delivery] = await logged(id)
    const dueAt = Date.parse(delivery?.next_attempt_at ?? '')
    if (header === DATE) expect(dueAt).toBe(Date.parse(DATE))
    else expect(dueAt - clock.now()).toBe(waitedMs)
    await clock.advance(dueAt - clock.now() - 1)
    await drainEventLoop(60)
    expect(post.sent).toHaveLength(1)
    await clock.advance(1)
    await waitUntil(() => post.sent.length === 2)
  })

  test.each([429, 503])('with %i delays everything for its webhook', async status => {
    const service = await withFailed(answered(status, { 'retry-after': '20' }), { timings: {} })
    const { post, clock, happen, hook, pass } = service
    const begin = clock.now()
    await hook({ url: 'https://app.test/other' })
    post.answer(200)
    await happen()
    await pass(SECOND)
    await waitUntil(() => post.sent.length === 2)
    await pass(begin + 19 * SECOND - clock.now())
    expect(post.sent.map(({ url }) => url.slice(17))).toEqual(['hook', 'other'])
    await pass(2 * SECOND)
    await waitUntil(() => post.sent.length === 3)
    expect(post.sent.map(({ url }) => url.slice(17))).toEqual(['hook', 'other', 'hook'])
  })

  test('with 503 delays others by an hour at most, and not once the URL changes', async () => {
    for (const isMoved of [false, true]) {
      const timings = { deliveries: { duePollMs: 20 * SECOND } }
      const service = await withFailed(answered(503, { 'retry-after': '999999' }), { timings })
      const { post, clock, happen, pass, patch, path } = service
      const begin = clock.now()
      post.answer(200)
      await happen()
      await pass(isMoved ? MINUTE : begin + HOUR - SECOND - clock.now())
      expect(post.sent).toHaveLength(1)
      if (isMoved) await patch(path, { url: 'https://app.test/moved' })
      await pass(25 * SECOND)
      expect(post.sent).toHaveLength(2)
    }
  })
})

describe('a webhook that fails', () => {
  /** Lets an event happen, which is sent at once. */
  async function attempt(service: Service, path: string, id: string): Promise<boolean> {
    const { happen, patch, logged, json } = service
    await happen()
    const isActive = async () => ((await json(path)).data as { active: boolean }).active
    // Enables it again otherwise.
    if (await isActive()) await patch(path, { active: true })
    await waitUntil(async () => (await logged(id, '?status=pending')).length === 0)
    return isActive()
  }

  test('for five days is disabled with the next attempt, unless one succeeded', async () => {
    for (const answers of [[], [200]]) {
      const service = await createEventService(NO_POLL)
      const { hook, post, pass, json } = service
      const { id, path } = await hook()
      post.answer(500)
      expect(await attempt(service, path, id)).toBe(true)
      for (let day = 1; day < 5; day++) {
        post.answer(day === 2 ? (answers[0] ?? 500) : 500)
        await pass(DAY)
        expect(await attempt(service, path, id)).toBe(true)
      }
      await pass(DAY - HOUR)
      expect(await attempt(service, path, id)).toBe(true)
      await pass(HOUR)
      expect(await attempt(service, path, id)).toBe(answers.length > 0)
      if (answers.length === 0) {
        expect((await json(path)).data).toMatchObject({
          disabled_reason: expect.stringMatching(/5 days/),
          disabled_code: 'failing',
        })
      }
    }
  })

  test('has an hour after a start, although it failed for five days', async () => {
    const service = await withFailed(500)
    const { id, path, clock, pass, stopDeliveries, start } = service
    await stopDeliveries()
    await pass(6 * DAY)
    const deliveries = start()
    const startedAt = clock.now()
    // An event takes some seconds of this clock to happen.
    const passTo = (ms: number) => pass(startedAt + ms - clock.now())
    const woken = async () => {
      await service.happen()
      deliveries.wake()
      await waitUntil(async () => (await service.logged(id, '?status=pending')).length === 0)
      return ((await service.json(path)).data as { active: boolean }).active
    }
    expect(await woken()).toBe(true)
    await passTo(HOUR - 20 * MINUTE)
    expect(await woken()).toBe(true)
    await passTo(HOUR)
    expect(await woken()).toBe(false)
  })
})
