import { describe, expect, test } from 'vitest'
import { createEventService } from '../support/event-service.ts'
import { failStoring } from '../support/list-service.ts'
import { waitUntil } from '../support/wait.ts'
import { verify } from '../support/webhook-signature.ts'
import { answered, fakeTransport, holdRequests } from '../support/webhook-transport.ts'

// Events from the request that causes them to the log of the webhook, on both databases.

type Service = Awaited<ReturnType<typeof createEventService>>

const at = (path: string) => ({ url: `https://app.test/${path}` })

const sentTo = ({ post }: Pick<Service, 'post'>, path: string) =>
  post.sent.filter(({ url }) => url.endsWith(`/${path}`))

/** Waits until all deliveries of a webhook have these states, newest first. */
const untilLogged = ({ until, logged }: Service, webhookId: string, ...states: string[]) =>
  until(async () => {
    const found = (await logged(webhookId)).map(({ status }) => status)
    return found.join() === states.join()
  })

const webhook = async ({ json }: Service, path: string) =>
  (await json(path)).data as Readonly<Record<string, unknown>>

describe('an event', () => {
  test('is sent once to each enabled webhook that subscribes to it, in the same bytes, signed', async () => {
    const service = await createEventService()
    const { hook, happen, post, json, request, until } = service
    const first = await hook(at('first'))
    const second = await hook({
      ...at('second'),
      events: ['quota.warning', 'verification.completed'],
    })
    await hook({ ...at('other'), events: ['quota.warning'] })
    await hook({ ...at('off'), active: false })
    await request((await hook(at('deleted'))).path, { method: 'DELETE' })
    await service.addAccount('acc_2')
    const key = await service.addKey({ accountId: 'acc_2', id: 'key_2' })
    const body = { ...at('foreign'), events: ['verification.completed'] }
    expect((await request('/v1/webhooks', { key, body })).status).toBe(201)

    await happen()
    await until(() => post.sent.length === 2)
    for (const { id } of [first, second]) await untilLogged(service, id, 'delivered')
    expect(post.sent.map(({ url }) => url).toSorted()).toEqual([first.url, second.url])
    const [a, b] = post.sent
    expect(a?.body).toBe(b?.body)
    const { items } = (await json('/v1/events')).data as { items: { event_id: string }[] }
    expect(items).toHaveLength(1)
    expect(JSON.parse(a?.body ?? '')).toMatchObject({
      event: 'verification.completed',
      event_id: items[0]?.event_id,
      sandbox: true,
      data: { email: 'valid1@a.example' },
    })
    for (const { url, secret } of [first, second]) {
      const sent = post.sent.find(one => one.url === url)
      expect(sent?.headers).toMatchObject({
        'Content-Type': 'application/json',
        'User-Agent': 'ev/0.0.0',
        'webhook-id': items[0]?.event_id,
      })
      expect(sent !== undefined && verify(sent, secret)).toBe(true)
    }
  })

  test('is an envelope with its type, ID and time, which marks the sandbox', async () => {
    const service = await createEventService()
    const { hook, happen, json, post, until } = service
    await hook()
    await json('/v1/verify/single', { body: { email: 'ann@a.test', async: true } })
    await until(() => post.sent.length === 1)
    await happen()
    await until(() => post.sent.length === 2)
    const [live, simulated] = post.sent.map(({ body }) => JSON.parse(body))
    expect(Object.keys(live)).toEqual(['event', 'event_id', 'timestamp', 'data'])
    expect(live).toMatchObject({
      event: 'verification.completed',
      event_id: expect.stringMatching(/^evt_[a-z0-9]{20}$/),
      timestamp: expect.stringMatching(/^2026-06-01T12:0\d:\d\d\.\d{3}Z$/),
      data: { email: 'ann@a.test', reason: 'accepted_email' },
    })
    expect(simulated).toMatchObject({ sandbox: true })
    expect(simulated.data).not.toHaveProperty('sandbox')
    expect(simulated.event_id).not.toBe(live.event_id)
  })

  test('is not stored without a webhook for it', async () => {
    const { hook, happen, json, post } = await createEventService()
    await hook({ events: ['quota.warning'] })
    await happen()
    expect((await json('/v1/events')).data).toMatchObject({ items: [] })
    expect(post.sent).toEqual([])
  })

  test('that is not confirmed has the reason, and is retried', async () => {
    const service = await createEventService()
    const { hook, happen, post } = service
    const { id } = await hook()
    const odd = 'a "b" \\ \n\t {"c":[1]} é 漢 😀'
    const answers = [
      answered(404, { server: '"\\' }, odd),
      answered(301, { location: 'http://169.254.1.1/' }),
      {
        fault: 'It did not answer within 30 s.',
        faultCode: 'timeout',
        durationMs: 30_000,
      } as const,
    ]
    post.answer(({ body }) => answers[Number(/valid(\d)@/.exec(body)?.[1]) - 1] ?? 200)
    for (let n = 1; n <= 3; n++) {
      await happen()
      await untilLogged(service, id, ...Array(n).fill('retry_scheduled'))
    }
    const log = await service.logged(id)
    expect(log).toMatchObject([
      { status_code: null, error: 'It did not answer within 30 s.', error_code: 'timeout' },
      { status_code: 301, error: expect.stringMatching(/Redirects are not followed/) },
      { status_code: 404, error: expect.stringMatching(/^It answered 404\./) },
    ])
    const { data } = await service.json(`/v1/webhooks/${id}/deliveries/${log[2]?.id}`)
    expect(data).toMatchObject({ response: { headers: { server: '"\\' }, body: odd } })
  })

  test('has the custom headers of its webhook, whose values are nowhere in the log', async () => {
    const service = await createEventService()
    const { id, path } = await service.hook({ headers: { 'X-Token': 'a secret token' } })
    service.post.answer(({ headers }) =>
      answered(500, { 'x-echo': headers['X-Token'] ?? '' }, `got ${headers['X-Token']}`),
    )
    await service.happen()
    await untilLogged(service, id, 'retry_scheduled')
    expect(service.post.sent[0]?.headers['X-Token']).toBe('a secret token')
    const [delivery] = await service.logged(id)
    const shown = await (await service.request(`${path}/deliveries/${delivery?.id}`)).text()
    expect(JSON.parse(shown).data).toMatchObject({
      request: { headers: { 'X-Token': '[hidden]' } },
      response: { headers: { 'x-echo': '[hidden]' }, body: 'got [hidden]' },
    })
    expect(shown + JSON.stringify(service.lines)).not.toContain('a secret token')
  })
})

describe('a webhook whose stored values are those of another secret', () => {
  test.each([
    ['its secret', { secret: 'encrypted elsewhere' }, /^The signing secret .* EV_SECRET/],
    [
      'its headers',
      { headers: '{"X-Token":"encrypted elsewhere"}' },
      /^The custom headers .* EV_SECRET/,
    ],
  ])('gets nothing, and the reason is in its log: %s', async (_, stored, error) => {
    const { hook, happen, post, until, logged, json, database } = await createEventService()
    const { id, path } = await hook()
    await database.db.updateTable('webhook').set(stored).execute()
    await happen()
    await until(async () => (await logged(id))[0]?.status === 'retry_scheduled')
    const failure = { error: expect.stringMatching(error), error_code: 'secret_unreadable' }
    expect(await logged(id)).toMatchObject([{ status_code: null, ...failure }])
    expect((await json(`${path}/test`, { method: 'POST' })).data).toMatchObject({
      status: 'failed',
      ...failure,
    })
    expect(post.sent).toEqual([])
  })
})

describe('the event of a list', () => {
  const emails = ['ann@a.test', 'bob@a.test', 'nobody@a.test', 'info@a.test', 'x@none.example']

  test('has its counts, which sum up, and the URL of its results', async () => {
    const { hook, json, until, post } = await createEventService()
    await hook({ events: ['batch.completed', 'batch.failed'] })
    const { job_id } = await json('/v1/verify/batch', { body: { emails, metadata: { of: 'us' } } })
    await until(() => post.sent.length === 1)
    expect(JSON.parse(post.sent[0]?.body ?? '')).toMatchObject({
      event: 'batch.completed',
      data: {
        job_id,
        total: 5,
        valid: 2,
        invalid: 2,
        risky: 1,
        unknown: 0,
        failed: 0,
        download_url: `https://ev.test/v1/jobs/${job_id}/download`,
        metadata: { of: 'us' },
      },
    })
  })

  test('that failed has its progress', async () => {
    const service = await createEventService()
    await service.hook({ events: ['batch.completed', 'batch.failed'] })
    failStoring(service)
    const { job_id } = await service.json('/v1/verify/batch', { body: { emails } })
    await service.until(() => service.post.sent.length === 1)
    expect(JSON.parse(service.post.sent[0]?.body ?? '')).toMatchObject({
      event: 'batch.failed',
      data: {
        job_id,
        total: 5,
        processed: 0,
        error: 'server_error',
        message: 'The job could not be finished',
        metadata: {},
      },
    })
  })

  test('that was cancelled is not sent', async () => {
    const zone = { 'app.test': { A: ['8.8.8.8'] }, 'silent.test': 'never' } as const
    const { hook, json, pass, post } = await createEventService({ engine: { zone } })
    await hook({ events: ['batch.completed', 'batch.failed'] })
    const body = { emails: [...emails, 'ann@silent.test'] }
    const { job_id } = await json('/v1/verify/batch', { body })
    const job = await json(`/v1/jobs/${job_id}/cancel`, { method: 'POST' })
    expect(job).toMatchObject({ status: 'cancelled' })
    await pass(60_000)
    expect(post.sent).toEqual([])
    expect((await json('/v1/events')).data).toMatchObject({ items: [] })
  })
})

describe('the requests to a webhook', () => {
  test('are at most four at a time; the next starts once an attempt is stored', async () => {
    const service = await createEventService()
    const { hook, happen, post, until, pass } = service
    const { id } = await hook()
    const held = holdRequests(post)
    await happen(10)
    for (const sent of [4, 8, 10]) {
      await until(() => post.sent.length === sent)
      await pass(1_000)
      expect([post.sent.length, held.inFlight]).toEqual([sent, sent === 10 ? 2 : 4])
      held.answer(200)
    }
    await untilLogged(service, id, ...Array(10).fill('delivered'))
    expect(new Set(post.sent.map(({ body }) => body)).size).toBe(10)
  })

  test('do not delay those to another one', async () => {
    const service = await createEventService()
    await service.hook(at('silent'))
    const { id } = await service.hook(at('quick'))
    service.post.answer(({ url }) => (url.endsWith('silent') ? new Promise(() => {}) : 200))
    await service.happen(6)
    await untilLogged(service, id, ...Array(6).fill('delivered'))
    expect(sentTo(service, 'silent')).toHaveLength(4)
  })

  test('verify with the old or the new secret while it is rotated, and none is lost', async () => {
    const service = await createEventService()
    const { hook, happen, post, until, json } = service
    const { id, path, secret } = await hook()
    const held = holdRequests(post)
    const secrets = [secret]
    await happen(12)
    for (const sent of [4, 8, 12]) {
      await until(() => post.sent.length === sent)
      const current = secrets.slice(-2)
      for (const one of post.sent.slice(-4)) {
        expect(current.map(text => verify(one, text))).toEqual(current.map(() => true))
      }
      const { data } = (await json(`${path}/secret`, { method: 'POST' })) as {
        data: { secret: string }
      }
      secrets.push(data.secret)
      held.answer(200)
    }
    await untilLogged(service, id, ...Array(12).fill('delivered'))
  })
})

describe('a webhook that changes while it is sent to', () => {
  test('gets nothing more once it is deleted', async () => {
    const service = await createEventService()
    const { hook, happen, post, until, pass, request, lines } = service
    const { id, path } = await hook()
    post.answer(500)
    await happen(2)
    await untilLogged(service, id, 'retry_scheduled', 'retry_scheduled')
    const held = holdRequests(post)
    await happen()
    await until(() => held.inFlight > 0)
    const sent = post.sent.length
    await request(path, { method: 'DELETE' })
    held.answer(500)
    await pass(600_000)
    expect(post.sent).toHaveLength(sent)
    expect(lines.filter(({ level }) => level === 'error')).toEqual([])
  })

  test('gets nothing while it is disabled, and what is open once it is enabled', async () => {
    const service = await createEventService()
    const { hook, happen, post, pass, patch } = service
    const { id, path } = await hook()
    post.answer(500)
    await happen()
    await untilLogged(service, id, 'retry_scheduled')
    const sent = post.sent.length
    await patch(path, { active: false })
    await happen()
    await pass(120_000)
    expect(post.sent).toHaveLength(sent)
    post.answer(200)
    await patch(path, { active: true })
    // The event in between was not stored for it.
    await untilLogged(service, id, 'delivered')
  })

  test('gets the rest at its new URL, without the custom headers if it is of another origin', async () => {
    const service = await createEventService()
    const { hook, happen, post, until, patch } = service
    const { id, path } = await hook({ headers: { 'X-Token': 'a' } })
    const held = holdRequests(post)
    await happen(6)
    await until(() => held.inFlight === 4)
    await patch(path, { url: 'https://app.test:8443/moved' })
    held.answer(200)
    await until(() => held.inFlight === 2)
    held.answer(200)
    await untilLogged(service, id, ...Array(6).fill('delivered'))
    expect(post.sent.map(({ url, headers }) => [new URL(url).port, headers['X-Token']])).toEqual([
      ...Array(4).fill(['', 'a']),
      ...Array(2).fill(['8443', undefined]),
    ])
  })
})

describe('the state of a webhook', () => {
  test('is failing from its first failure until its first success or another URL', async () => {
    const service = await createEventService()
    const { hook, happen, post, patch, clock } = service
    const { id, path } = await hook()
    const other = await hook(at('other'))
    const deliver = async (status: number, count: number, state: string) => {
      post.answer(({ url }) => (url.endsWith('other') ? 200 : status))
      await happen()
      await service.until(
        async () => (await service.logged(id, `?status=${state}`)).length === count,
      )
      return (await webhook(service, path)).failing_since
    }
    const first = await deliver(500, 1, 'retry_scheduled')
    expect(Date.parse(String(first))).toBeLessThanOrEqual(clock.now())
    expect(await deliver(500, 2, 'retry_scheduled')).toBe(first)
    expect((await webhook(service, other.path)).failing_since).toBeNull()
    await patch(path, { active: true, url: 'https://app.test/hook', description: 'ours' })
    expect((await webhook(service, path)).failing_since).toBe(first)
    await patch(path, at('moved'))
    expect((await webhook(service, path)).failing_since).toBeNull()
    expect(await deliver(500, 3, 'retry_scheduled')).not.toBeNull()
    expect(await deliver(200, 1, 'delivered')).toBeNull()
    const count = post.sent.filter(({ url }) => !url.endsWith('other')).length
    expect(await webhook(service, path)).toMatchObject({
      success_rate: Math.round(10_000 / count) / 10_000,
      daily_attempts: [{ date: '2026-06-01', delivered: 1, failed: count - 1 }],
    })
  })

  test('is disabled after a 410: that event has failed, and the others wait', async () => {
    const service = await createEventService()
    const { hook, happen, post, until, pass, patch } = service
    const { id, path } = await hook()
    const held = holdRequests(post)
    await happen(5)
    await until(() => held.inFlight === 4)
    held.answer(410)
    await until(async () => (await service.logged(id, '?status=failed')).length === 4)
    await pass(120_000)
    expect(post.sent).toHaveLength(4)
    expect(await webhook(service, path)).toMatchObject({
      active: false,
      disabled_reason: expect.stringMatching(/410 Gone/),
      disabled_code: 'gone',
    })
    expect(service.lines.map(({ message }) => message)).toEqual(
      expect.arrayContaining(['webhook endpoint disabled', 'webhook delivery failed']),
    )
    post.answer(200)
    await patch(path, { active: true })
    await until(async () => (await service.logged(id, '?status=delivered')).length === 1)
    expect(await webhook(service, path)).toMatchObject({
      disabled_reason: null,
      failing_since: null,
    })
  })

  test('is not changed by a response at its former URL, or after it was disabled by hand', async () => {
    const service = await createEventService()
    const { hook, happen, post, until, patch } = service
    for (const change of [at('moved'), { active: false }]) {
      const { id, path } = await hook()
      const held = holdRequests(post)
      await happen()
      await until(() => held.inFlight > 0)
      await patch(path, change)
      const { active, updated_at } = await webhook(service, path)
      held.answer(410)
      await untilLogged(service, id, 'failed')
      const state = { active, updated_at, disabled_reason: null, disabled_code: null }
      expect(await webhook(service, path)).toMatchObject(state)
      if (active) expect(await webhook(service, path)).toMatchObject({ failing_since: null })
      await patch(path, { active: false })
    }
  })
})

describe('a delivery that is retried by hand', () => {
  test('is the same event in a new cycle, and its attempts are counted on, sixty of them', async () => {
    const service = await createEventService()
    const { hook, happen, post, until, request } = service
    const { id, path } = await hook()
    await happen()
    await untilLogged(service, id, 'delivered')
    const [{ id: deliveryId } = { id: '' }] = await service.logged(id)
    for (let n = 2; n <= 63; n++) {
      await request(`${path}/deliveries/${deliveryId}/retry`, { method: 'POST' })
      await until(() => post.sent.length === n)
      await untilLogged(service, id, 'delivered')
    }
    const { data } = await service.json(`${path}/deliveries/${deliveryId}`)
    const { attempts } = data as { attempts: { number: number; trigger: string }[] }
    expect(attempts.map(({ number }) => number)).toEqual(
      Array.from({ length: 60 }, (_, n) => n + 4),
    )
    expect(attempts.at(-1)).toMatchObject({ number: 63, trigger: 'manual' })
    expect(new Set(post.sent.map(({ body }) => body)).size).toBe(1)
  })

  test('while it is in flight is not changed by the attempt of the cycle before', async () => {
    const service = await createEventService()
    const { hook, happen, post, until, request } = service
    const { id, path } = await hook()
    const held = holdRequests(post)
    await happen()
    await until(() => held.inFlight === 1)
    const [{ id: deliveryId } = { id: '' }] = await service.logged(id)
    post.answer(500)
    held.answer(500)
    await untilLogged(service, id, 'retry_scheduled')
    const again = holdRequests(post)
    await until(() => again.inFlight === 1)
    await request(`${path}/deliveries/${deliveryId}/retry`, { method: 'POST' })
    again.answer(200)
    await until(() => again.inFlight === 1)
    expect(await service.logged(id)).toMatchObject([
      { status: 'pending', trigger: 'manual', attempt: 0 },
    ])
    again.answer(200)
    await untilLogged(service, id, 'delivered')
    const { data } = await service.json(`${path}/deliveries/${deliveryId}`)
    expect(data).toMatchObject({
      attempts: [{ trigger: 'scheduled' }, { trigger: 'scheduled' }, { trigger: 'manual' }],
    })
  })

  test('with all others that failed since a time', async () => {
    const service = await createEventService()
    const { hook, happen, post, json, pass, clock, until } = service
    const { id, path } = await hook()
    post.answer(410)
    const since: string[] = []
    for (let n = 1; n <= 3; n++) {
      await pass(1_000)
      since.push(new Date(clock.now()).toISOString())
      await happen()
      await until(async () => (await service.logged(id, '?status=failed')).length === n)
      await service.patch(path, { active: true })
    }
    await json(`${path}/test`, { method: 'POST' })
    post.answer(200)
    const recover = () => json(`${path}/recover`, { body: { since: since[1] } })
    expect((await recover()).data).toEqual({ recovered: 2 })
    await untilLogged(service, id, 'failed', 'delivered', 'delivered', 'failed')
    expect((await recover()).data).toEqual({ recovered: 0 })
  })
})

describe('the log of a webhook', () => {
  test('is read in pages, filtered and searched, newest first', async () => {
    const service = await createEventService()
    const { hook, happen, post, json } = service
    const { id, path } = await hook()
    const other = await hook({ ...at('other'), events: ['quota.warning'] })
    post.answer(({ body }) => (body.includes('valid3@') ? 503 : 200))
    await happen(5)
    await service.until(async () => {
      const log = await service.logged(id)
      return log.length === 5 && log.every(({ status }) => status !== 'pending')
    })
    await json(`${path}/test`, { body: { event: 'batch.failed' } })
    const all = (await service.logged(id)).map(one => one.id)
    expect(all).toHaveLength(6)
    const page = async (query: string) => {
      const { data } = await json(`${path}/deliveries?${query}`)
      return data as { items: { id: string }[]; next_cursor: string | null }
    }
    const pages: string[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { items, next_cursor } = await page(`limit=2${cursor && `&cursor=${cursor}`}`)
      pages.push(...items.map(one => one.id))
      cursor = next_cursor
    }
    expect(pages).toEqual(all)
    const found = async (query: string) => (await page(query)).items.map(one => all.indexOf(one.id))
    expect(await found('event=batch.failed')).toEqual([0])
    expect(await found('status=delivered&event=verification.completed')).toHaveLength(4)
    expect(await found('search=VALID3@a.example')).toHaveLength(1)
    expect(await found(`search=${all[4]}`)).toEqual([4])
    expect(await found('search=503')).toEqual(await found('search=valid3'))
    expect(await found('search=absent')).toEqual([])
    expect(await service.logged(other.id)).toEqual([])
    expect((await service.request(`${other.path}/deliveries/${all[0]}`)).status).toBe(404)
  })
})

describe('two processes that deliver the same event, of which the first stalls', () => {
  test.each<[string, number, number, string]>([
    ['fails as well', 500, 500, 'retry_scheduled'],
    ['fails and the other succeeded', 200, 500, 'delivered'],
    ['is answered 410 and the other succeeded', 200, 410, 'delivered'],
    ['succeeds as well', 200, 200, 'delivered'],
    ['succeeds and the other failed', 500, 200, 'retry_scheduled'],
  ])(
    'its request %s: the attempt is stored, and nothing counts twice',
    async (_, quick, late, state) => {
      const service = await createEventService()
      const { hook, happen, post, until, pass, start } = service
      const { id, path } = await hook()
      const held = holdRequests(post)
      await happen()
      await until(() => held.inFlight === 1)
      await pass(1_000)
      const other = fakeTransport()
      other.answer(quick)
      start(other)
      await untilLogged(service, id, state)
      const [before] = await service.logged(id)
      held.answer(late)
      await waitUntil(async () => {
        const { data } = await service.json(`${path}/deliveries/${before?.id}`)
        return (data as { attempts: object[] }).attempts.length === 2
      })
      expect(other.sent[0]?.body).toBe(post.sent[0]?.body)
      expect(await service.logged(id)).toEqual([before])
      const failed = quick === 500 && late === 500
      expect(await webhook(service, path)).toMatchObject({
        active: true,
        failing_since: failed ? expect.any(String) : null,
        daily_attempts: [{ delivered: quick === 200 ? 1 : 0, failed: quick === 200 ? 0 : 1 }],
      })
      // More than the interval of the poll for alerts.
      await pass(15_000)
      expect(service.notify.tried).toEqual([])
    },
  )
})

describe('an alert on several processes', () => {
  test('that find it at the same time is sent by one of them', async () => {
    const service = await createEventService()
    const { hook, happen, post, until, pass, notify } = service
    const { id } = await hook()
    await service.stopAlerts()
    post.answer(410)
    await happen()
    await untilLogged(service, id, 'failed')
    for (let n = 0; n < 3; n++) service.startAlerts()
    await until(() => notify.sent.length > 0)
    await pass(60_000)
    expect(notify.tried).toHaveLength(1)
  })

  test('is sent once to the address of the account, with all failures until then', async () => {
    const timings = { deliveries: { duePollMs: 5_000 } }
    const service = await createEventService({ fastRetries: true, timings })
    const { hook, happen, post, until, pass, notify } = service
    await service.patch('/v1/account', { email: 'owner@shop.example' })
    const { id } = await hook()
    service.startAlerts()
    post.answer(500)
    notify.handleWith(async () => {
      throw new Error('451 Try later')
    })
    await happen()
    await until(() => notify.tried.length === 1)
    await pass(60_000)
    expect(notify.tried).toHaveLength(1)
    await happen(2)
    await untilLogged(service, id, 'failed', 'failed', 'failed')
    notify.handleWith(async () => {})
    await until(() => notify.sent.length === 1)
    await happen()
    await until(() => notify.sent.length === 2)
    await pass(120_000)
    expect(notify.sent).toMatchObject([
      { to: 'owner@shop.example', subject: expect.stringMatching(/^ev: 3 events could not/) },
      { to: 'owner@shop.example', subject: expect.stringMatching(/^ev: 1 event could not/) },
    ])
    expect(notify.tried).toHaveLength(3)
  })
})
