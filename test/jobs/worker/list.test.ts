import { describe, expect, test } from 'vitest'
import { HOUR, MINUTE } from '../../../src/platform/clock.ts'
import { isRandomRecipient, knows, toRecipients } from '../../support/engine.ts'
import { createTestJob } from '../../support/job.ts'

const OK = '250 2.1.5 Ok'
const UNKNOWN = '550 5.1.1 No such user'
const GREYLISTED = '450 4.2.0 Greylisted, try again in 300 seconds'

describe('a job', () => {
  test('has exactly one result per row, including invalid rows and duplicates', async () => {
    const texts = [
      ...['ann@a.test', 'gone@a.test', 'no address', 'ann@nowhere.test', 'ann@b.test', ''],
      ...['ann@a.test', 'ann@A.TEST', 'ann@null.test', 'ann@dark.test'],
    ]
    const { work, reasons, asked } = await createTestJob({
      texts,
      script: knows('ann'),
      zone: { 'null.test': { MX: [[0, '']] }, 'dark.test': 'server' },
    })
    expect(await work()).toMatchObject({
      state: 'completed',
      total: 10,
      done: 10,
      duplicates: 2,
      deliverable: 4,
      undeliverable: 4,
      unknown: 2,
      risky: 0,
    })
    expect(await reasons()).toEqual([
      ...['accepted_email', 'rejected_email', 'invalid_email', 'invalid_domain', 'accepted_email'],
      ...['no_address', 'accepted_email', 'accepted_email', 'does_not_accept_mail', 'dns_error'],
    ])
    expect(asked().toSorted()).toEqual(['ann@a.test', 'ann@b.test', 'gone@a.test'])
  })

  test('that needs no mail server is finished without one', async () => {
    const { work, mx, reasons } = await createTestJob({ texts: ['x', 'y', 'z'], script: knows() })
    expect(await work()).toMatchObject({ state: 'completed', undeliverable: 3 })
    expect(await reasons()).toEqual(Array(3).fill('invalid_email'))
    expect(mx.dialled).toEqual([])
  })

  test('of more rows than a page is routed and probed completely, in connections of a fixed length', async () => {
    const texts = Array.from({ length: 620 }, (_, n) => `user${n}@${n % 2 === 0 ? 'a' : 'b'}.test`)
    const { work, asked, mx } = await createTestJob({
      texts,
      script: toRecipients(to => (to.startsWith('user') ? OK : UNKNOWN)),
      flags: { recipientsPerSession: '10' },
    })
    expect(await work()).toMatchObject({ state: 'completed', deliverable: 620 })
    expect(asked()).toHaveLength(620)
    expect(new Set(asked()).size).toBe(620)
    const lengths = mx.sessions.map(
      ({ lines }) => lines.filter(line => /^RCPT TO:<user/.test(line)).length,
    )
    expect(Math.max(...lengths)).toBeLessThanOrEqual(10)
  })

  test('gathers items of an operator for at least 100 ms, but not until every domain is looked up', async () => {
    const stop = new AbortController()
    const texts = ['u1@one.test', 'ann@silent.test', 'u2@two.test', 'u3@two.test']
    const hosted = { MX: [[10, 'mx.a.test']] } as const
    const { work, clock, mx } = await createTestJob({
      texts,
      script: toRecipients(to => (to.startsWith('u') ? OK : UNKNOWN)),
      zone: { 'silent.test': 'never', 'one.test': hosted, 'two.test': hosted },
    })
    const startedAt = clock.monotonicNow()
    let dialledAt = 0
    const watch = setInterval(() => {
      if (mx.dialled.length === 0) return
      dialledAt ||= clock.monotonicNow()
      if (clock.monotonicNow() > startedAt + 20_000) stop.abort()
    }, 1)
    await work({ stopping: stop.signal }).finally(() => clearInterval(watch))
    // A domain whose name server does not respond delays no other.
    expect(dialledAt - startedAt).toBeGreaterThanOrEqual(100)
    expect(dialledAt - startedAt).toBeLessThan(1_000)
    expect(mx.sessions.map(({ lines }) => recipientsIn(lines))).toEqual([3])
  })

  test('probes at once when all items of an operator with one domain are routed', async () => {
    const stop = new AbortController()
    const texts = ['u1@a.test', 'ann@silent.test', 'u2@a.test', 'u3@a.test']
    const { work, clock, mx } = await createTestJob({
      texts,
      script: toRecipients(to => (to.startsWith('u') ? OK : UNKNOWN)),
      zone: { 'silent.test': 'never' },
    })
    const startedAt = clock.monotonicNow()
    const watch = setInterval(() => {
      const isDone = mx.sessions.some(({ closed }) => closed)
      if (isDone || clock.monotonicNow() > startedAt + 20_000) stop.abort()
    }, 1)
    await work({ stopping: stop.signal }).finally(() => clearInterval(watch))
    expect(mx.sessions.map(({ lines }) => recipientsIn(lines))).toEqual([3])
    expect(clock.monotonicNow() - startedAt).toBeLessThan(5_000)
  })

  test('probes at once when the items of an operator fill a connection', async () => {
    const stop = new AbortController()
    const texts = ['ann@silent.test', 'u1@a.test', 'u2@a.test', 'u3@a.test']
    const { work, clock, mx } = await createTestJob({
      texts,
      script: toRecipients(to => (to.startsWith('u') ? OK : UNKNOWN)),
      zone: { 'silent.test': 'never' },
      flags: { recipientsPerSession: '3' },
    })
    const startedAt = clock.monotonicNow()
    let dialledAt = 0
    const watch = setInterval(() => {
      if (mx.dialled.length > 0) dialledAt ||= clock.monotonicNow()
      const isDone = mx.sessions.some(({ closed }) => closed)
      if (isDone || clock.monotonicNow() > startedAt + 20_000) stop.abort()
    }, 1)
    await work({ stopping: stop.signal }).finally(() => clearInterval(watch))
    // The random recipient may be the third.
    expect(Math.max(...mx.sessions.map(({ lines }) => recipientsIn(lines)))).toBe(2)
    expect(dialledAt - startedAt).toBeLessThan(5_000)
  })

  test('respects the session limit of an operator', async () => {
    const texts = Array.from({ length: 60 }, (_, n) => `user${n}@a.test`)
    let open = 0
    let openMax = 0
    const { work } = await createTestJob({
      texts,
      script: {
        greeting: () => {
          open++
          openMax = Math.max(openMax, open)
          return undefined
        },
        answer: line => {
          if (line === 'QUIT') open--
          return toRecipients(to => (isRandomRecipient(to) ? UNKNOWN : OK))(line, {} as never)
        },
      },
      flags: { recipientsPerSession: '5', sessionsPerOperator: '3' },
    })
    expect(await work()).toMatchObject({ state: 'completed', deliverable: 60 })
    expect(openMax).toBe(3)
  })
})

describe('a job that is stopped', () => {
  test('records no unknown result because of the stop, continues later, and probes no address twice', async () => {
    const texts = Array.from({ length: 40 }, (_, n) => `user${n}@${n < 20 ? 'a' : 'b'}.test`)
    const stopping = new AbortController()
    let answered = 0
    const { work, reasons, asked } = await createTestJob({
      texts,
      script: toRecipients(to => {
        if (isRandomRecipient(to)) return UNKNOWN
        if (++answered === 7) stopping.abort()
        return OK
      }),
      flags: { recipientsPerSession: '5' },
    })
    const stopped = await work({ stopping: stopping.signal })
    expect(stopped.state).toBe('processing')
    expect(stopped.done).toBeGreaterThan(0)
    expect(stopped.done).toBeLessThan(texts.length)
    const first = await reasons()
    expect(new Set(first)).toEqual(new Set(['accepted_email', null]))
    expect(first.filter(reason => reason !== null)).toHaveLength(stopped.done)
    // Every probed address was recorded: a stop, unlike a crash, loses no answer.
    expect(asked()).toHaveLength(stopped.done)

    expect(await work()).toMatchObject({ state: 'completed', deliverable: 40, unknown: 0 })
    expect(asked().toSorted()).toEqual(texts.toSorted())
  })

  test('before its start does nothing and can be started later', async () => {
    const { work, mx, reasons } = await createTestJob({
      texts: ['ann@a.test'],
      script: knows('ann'),
    })
    expect(await work({ stopping: AbortSignal.abort() })).toMatchObject({ done: 0 })
    expect(mx.dialled).toEqual([])
    expect(await work()).toMatchObject({ state: 'completed' })
    expect(await reasons()).toEqual(['accepted_email'])
  })

  test('does not wait forever for a silent server', async () => {
    const stopping = new AbortController()
    const { work, clock, reasons } = await createTestJob({
      texts: ['ann@a.test'],
      script: toRecipients(() => {
        stopping.abort()
        return null
      }),
    })
    const before = clock.now()
    await work({ stopping: stopping.signal })
    expect(clock.now() - before).toBeLessThan(MINUTE / 4)
    expect(await reasons()).toEqual([null])
  })

  test('stops at once during a greylist wait, and continues its wait and its tries', async () => {
    const stopping = new AbortController()
    const at: number[] = []
    const services = await createTestJob({
      texts: ['ann@a.test'],
      script: toRecipients(to => {
        if (isRandomRecipient(to)) return UNKNOWN
        at.push(services.clock.now())
        return GREYLISTED
      }),
    })
    const { work, clock, reasons } = services
    clock.after(MINUTE, () => stopping.abort())
    const before = clock.now()
    await work({ stopping: stopping.signal })
    expect(clock.now() - before).toBeLessThan(2 * MINUTE)
    expect(await reasons()).toEqual([null])
    expect(await work()).toMatchObject({ state: 'completed', unknown: 1 })
    const [first = 0, second = 0] = at
    expect(at).toHaveLength(3)
    expect(second - first).toBeGreaterThanOrEqual(5 * MINUTE)
  })
})

describe('an item that is greylisted', () => {
  test('waits for the time that the server names, and is probed again', async () => {
    const at: number[] = []
    const services = await createTestJob({
      texts: ['ann@a.test', 'bob@a.test'],
      script: toRecipients(to => {
        if (isRandomRecipient(to)) return UNKNOWN
        if (!to.startsWith('ann')) return OK
        at.push(services.clock.now())
        return at.length === 1 ? GREYLISTED : OK
      }),
    })
    expect(await services.work()).toMatchObject({ state: 'completed', deliverable: 2 })
    const [first = 0, second = 0] = at
    expect(at).toHaveLength(2)
    expect(second - first).toBeGreaterThanOrEqual(5 * MINUTE)
    expect(second - first).toBeLessThan(6 * MINUTE)
    expect(services.asked().filter(to => to.startsWith('bob'))).toHaveLength(1)
  })

  test.each([
    ['back by an hour', -HOUR],
    ['back by twelve years', -12 * 365 * 24 * HOUR],
    ['ahead by a day', 24 * HOUR],
  ])('waits for as long although the wall clock is set %s meanwhile', async (_, jumpMs) => {
    const at: number[] = []
    const services = await createTestJob({
      texts: ['ann@a.test', 'bob@a.test'],
      script: toRecipients(to => {
        if (isRandomRecipient(to)) return UNKNOWN
        if (!to.startsWith('ann')) return OK
        at.push(services.clock.monotonicNow())
        if (at.length === 1) services.clock.after(MINUTE, () => services.clock.jump(jumpMs))
        return at.length < 3 ? GREYLISTED : OK
      }),
    })
    // Ahead by a day, a row that was given up for its age would end as greylisted.
    expect(await services.work()).toMatchObject({ state: 'completed', deliverable: 2 })
    const [first = 0, second = 0] = at
    expect(at).toHaveLength(3)
    expect(second - first).toBeGreaterThanOrEqual(5 * MINUTE)
    expect(second - first).toBeLessThan(6 * MINUTE)
  })

  test('is probed at most three times and ends as greylisted', async () => {
    const { work, reasons, asked } = await createTestJob({
      texts: ['ann@a.test'],
      script: toRecipients(to => (isRandomRecipient(to) ? UNKNOWN : GREYLISTED)),
    })
    expect(await work()).toMatchObject({ state: 'completed', unknown: 1 })
    expect(await reasons()).toEqual(['greylisted'])
    expect(asked()).toHaveLength(3)
  })

  test('waits for the configured delay, if there is one', async () => {
    const { work, clock } = await createTestJob({
      texts: ['ann@a.test'],
      script: toRecipients(to => (isRandomRecipient(to) ? UNKNOWN : GREYLISTED)),
      flags: { greylistDelayMs: '20' },
    })
    const before = clock.now()
    await work()
    expect(clock.now() - before).toBeGreaterThanOrEqual(40_000)
    expect(clock.now() - before).toBeLessThan(MINUTE)
  })

  test('does not wait if the job does not wait', async () => {
    const { work, clock, reasons, asked } = await createTestJob({
      texts: ['ann@a.test', 'ann@b.test'],
      script: (line, session) =>
        toRecipients(to =>
          isRandomRecipient(to) ? UNKNOWN : to.endsWith('a.test') ? GREYLISTED : OK,
        )(line, session),
    })
    const before = clock.now()
    expect(await work({ wait: false })).toMatchObject({ state: 'completed' })
    expect(clock.now() - before).toBeLessThan(MINUTE)
    expect(await reasons()).toEqual(['greylisted', 'accepted_email'])
    expect(asked()).toHaveLength(2)
  })
})

describe('an operator', () => {
  const TEXTS = ['ann@a.test', 'bob@a.test', 'ann@b.test']
  /** Only the MX of a.test has a special greeting. */
  const withGreeting = (greeting: (number: number) => string | undefined) => {
    let number = 0
    return {
      greeting: (session: { to: { host: string } }) =>
        session.to.host === 'mx.a.test' ? greeting(number++) : undefined,
      answer: knows('ann', 'bob'),
    }
  }

  test('that requires a pause delays its own items, not those of others', async () => {
    const doneAt: Record<string, number> = {}
    const services = await createTestJob({
      texts: TEXTS,
      script: withGreeting(n =>
        n === 0 ? '421 4.7.0 Too many connections, try again later' : undefined,
      ),
    })
    const before = services.clock.now()
    expect(await services.work()).toMatchObject({ state: 'completed', deliverable: 3 })
    for (const [n, result] of (await services.results()).entries()) {
      doneAt[TEXTS[n] as string] = (result?.checkedAt ?? 0) - before
    }
    expect(doneAt['ann@b.test']).toBeLessThan(5_000)
    expect(doneAt['ann@a.test']).toBeGreaterThan(10_000)
  })

  test('that requires a pause is not waited for if the job does not wait', async () => {
    const { work, clock, reasons } = await createTestJob({
      texts: TEXTS,
      script: withGreeting(() => '421 4.7.0 Too many connections, try again later'),
    })
    const before = clock.now()
    expect(await work({ wait: false })).toMatchObject({ state: 'completed', unknown: 2 })
    expect(clock.now() - before).toBeLessThan(MINUTE)
    expect((await reasons())[2]).toBe('accepted_email')
  })

  test('that blocks the egress is not probed further; its items are blocked, and the rest of the list continues', async () => {
    const many = Array.from({ length: 30 }, (_, n) => `user${n}@a.test`)
    const { work, reasons, mx } = await createTestJob({
      texts: [...many, 'ann@b.test'],
      script: withGreeting(
        () => '554 5.7.1 Service unavailable; Client host blocked using bl.example',
      ),
      flags: { recipientsPerSession: '5' },
    })
    expect(await work({ wait: false })).toMatchObject({ unknown: 30, deliverable: 1 })
    expect(await reasons()).toEqual([...Array(30).fill('probe_blocked'), 'accepted_email'])
    const connections = mx.dialled.filter(({ host }) => host === 'mx.a.test')
    expect(connections.length).toBeLessThanOrEqual(2)
  })

  test('that blocks the egress is probed again for unprobed items before the list ends', async () => {
    const many = Array.from({ length: 30 }, (_, n) => `user${n}@a.test`)
    const { work, clock, reasons } = await createTestJob({
      texts: many,
      script: {
        greeting: () =>
          clock.now() - before < 2 * HOUR ? '554 5.7.1 Blocked using bl.example' : undefined,
        answer: knows(...many),
      },
      flags: { recipientsPerSession: '5' },
    })
    const before = clock.now()
    await work()
    const blocked = (await reasons()).filter(reason => reason === 'probe_blocked')
    // Items that were blocked stay so: of two connections at first, then of one each half hour.
    expect(blocked.length).toBeLessThanOrEqual((2 + 3) * 5)
    const accepted = (await reasons()).filter(reason => reason === 'accepted_email')
    expect(accepted).toHaveLength(30 - blocked.length)
    expect(clock.now() - before).toBeLessThan(3 * HOUR)
  })

  test('that is unreachable does not affect other operators', async () => {
    const { work, reasons } = await createTestJob({
      texts: TEXTS,
      script: {
        answer: knows('ann'),
        connect: ({ host }) => {
          if (host === 'mx.a.test') throw new Error('connect ECONNREFUSED')
        },
      },
    })
    await work()
    expect(await reasons()).toEqual(['no_connect', 'no_connect', 'accepted_email'])
  })
})

const recipientsIn = (lines: readonly string[]) =>
  lines.filter(line => /^RCPT TO:<u\d@/.test(line)).length
