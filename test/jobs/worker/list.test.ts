import { describe, expect, test } from 'vitest'
import type { Database } from '../../../src/db/database.ts'
import type { Result } from '../../../src/engine/verdict/verdict.ts'
import { startJob } from '../../../src/jobs/job-state.ts'
import { HOUR, MINUTE, SECOND } from '../../../src/platform/clock.ts'
import { isRandomRecipient, knows, mail, toRecipients } from '../../support/engine.ts'
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

  test('stops at once during a greylist wait and keeps the number of tries', async () => {
    const stopping = new AbortController()
    const { work, database, clock } = await createTestJob({
      texts: ['ann@a.test'],
      script: toRecipients(to => (isRandomRecipient(to) ? UNKNOWN : GREYLISTED)),
    })
    clock.after(MINUTE, () => stopping.abort())
    const before = clock.now()
    await work({ stopping: stopping.signal })
    expect(clock.now() - before).toBeLessThan(2 * MINUTE)
    const [item] = await database.db.selectFrom('item').selectAll().execute()
    expect(item).toMatchObject({ state: 'routed', tries: 1 })
    expect(Number(item?.due_at)).toBeGreaterThanOrEqual(before + 5 * MINUTE)
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

describe('a list that was killed after its answers were cached and before its results were stored', () => {
  /** What is stored then: the job and its answers, without results. */
  async function forgetResults({ db }: Database): Promise<void> {
    await db
      .updateTable('item')
      .set({ state: 'queued', result: null, class: null, operator: null, domain: null })
      .execute()
    await db
      .updateTable('job')
      .set({ state: 'queued', finished_at: null, done: 0, failed: 0, unknown: 0, risky: 0 })
      .set({ deliverable: 0, undeliverable: 0 })
      .execute()
  }

  const stable = (results: readonly (Result | null)[]) =>
    results.map(result => ({ ...result, tookMs: 0, evidence: { ...result?.evidence, timings: 0 } }))

  test('has the same results as an undisturbed one, and asks for nothing again', async () => {
    const services = await createTestJob({
      texts: ['ann@a.test', 'gone@a.test', 'ann@b.test'],
      script: knows('ann'),
    })
    await services.work({ cache: true })
    const [undisturbed, asked] = [await services.results(), services.asked()]
    await forgetResults(services.database)
    await services.clock.advance(MINUTE)
    expect(await services.work({ cache: true })).toMatchObject({ state: 'completed', done: 3 })
    expect(stable(await services.results())).toEqual(stable(undisturbed))
    expect(undisturbed.map(result => result?.cached)).toEqual([false, false, false])
    expect(services.asked()).toEqual(asked)
  })

  test('makes the catch-all test that it had not finished', async () => {
    let random = 0
    const services = await createTestJob({
      texts: ['ann@a.test'],
      script: toRecipients(to => {
        if (!isRandomRecipient(to)) return OK
        return random++ === 0 ? GREYLISTED : UNKNOWN
      }),
    })
    await services.work({ cache: true, wait: false })
    expect((await services.results())[0]?.evidence.catchAll).toBeNull()
    await forgetResults(services.database)
    await services.work({ cache: true })
    expect((await services.results())[0]).toMatchObject({
      cached: false,
      verdict: { reason: 'accepted_email' },
    })
  })

  test('still marks the answers that an earlier list was given', async () => {
    const services = await createTestJob({ texts: ['ann@a.test'], script: knows('ann') })
    await services.work({ cache: true })
    await forgetResults(services.database)
    await services.clock.advance(MINUTE)
    const created_at = services.clock.now()
    await services.database.db.updateTable('job').set({ created_at }).execute()
    await services.work({ cache: true })
    expect((await services.results()).map(result => result?.cached)).toEqual([true])
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

describe('an item that cannot be restored', () => {
  test.each([
    ['its route is no longer valid', { route: 'null' }, 'accepted_email'],
    ['its route is damaged', { route: '{"kind"' }, 'accepted_email'],
    [
      'its text is not an address by the current rules',
      { text: 'ann..lee@a.test' },
      'invalid_email',
    ],
  ])('because %s is routed again and stops nothing', async (_, change, reason) => {
    const { work, database, reasons } = await createTestJob({
      texts: ['ann@a.test', 'bob@a.test'],
      script: knows('ann', 'bob'),
      zone: mail('a.test', '192.0.2.1'),
    })
    // The state left by an earlier version of ev.
    await startJob(database, 'job_a')
    await database.db
      .updateTable('item')
      .set({ state: 'routed', operator: 'a.test', domain: 'a.test', route: 'null', ...change })
      .where('position', '=', 1)
      .execute()
    expect(await work()).toMatchObject({ state: 'completed', done: 2 })
    expect(await reasons()).toEqual([reason, 'accepted_email'])
  })

  test('of an operator that the settings now separate is probed at its own rate', async () => {
    const domains = ['one.test', 'two.test']
    const texts = domains.flatMap(domain => [1, 2, 3].map(n => `u${n}@${domain}`))
    const { work, database, mx } = await createTestJob({
      texts,
      zone: Object.fromEntries([
        ...domains.map(domain => [domain, { MX: [[10, `mx.${domain}`]] }]),
        ...domains.map((domain, n) => [`mx.${domain}`, { A: [`192.0.2.${n + 7}`] }]),
      ]),
      structures: { operators: { two: { hosts: ['mx.two.test'], 'recipients-per-session': 1 } } },
    })
    // The state left by an ev without these settings.
    await startJob(database, 'job_a')
    for (const [n, text] of texts.entries()) {
      const domain = text.slice(3)
      const route = JSON.stringify({
        kind: 'mx',
        hosts: [{ preference: 10, host: `mx.${domain}` }],
      })
      await database.db
        .updateTable('item')
        .set({ state: 'routed', operator: 'both.test', domain, route })
        .where('position', '=', n + 1)
        .execute()
    }
    expect(await work()).toMatchObject({ state: 'completed', done: 6 })
    const sizes = (host: string) =>
      mx.sessions.filter(({ to }) => to.host === host).map(({ lines }) => recipientsIn(lines))
    expect([sizes('mx.one.test'), sizes('mx.two.test')]).toEqual([[3], [1, 1, 1]])
  })

  test('is left for the next start if the job stops before the DNS answers', async () => {
    const { work, database, clock, reasons } = await createTestJob({
      texts: ['ann@never.test'],
      zone: { 'never.test': 'never' },
    })
    await startJob(database, 'job_a')
    await database.db
      .updateTable('item')
      .set({ state: 'routed', operator: 'a.test', domain: 'never.test', route: 'null' })
      .execute()
    const stopping = new AbortController()
    clock.after(SECOND, () => stopping.abort())
    const startedAt = clock.monotonicNow()
    await work({ stopping: stopping.signal })
    expect(clock.monotonicNow() - startedAt).toBeLessThan(2 * SECOND)
    expect(await reasons()).toEqual([null])
  })
})

const recipientsIn = (lines: readonly string[]) =>
  lines.filter(line => /^RCPT TO:<u\d@/.test(line)).length
