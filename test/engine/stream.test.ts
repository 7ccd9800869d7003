import { describe, expect, test } from 'vitest'
import { createTestEngine, mail, reasonsOf } from '../support/engine.ts'
import { isRandomRecipient, knows, toRecipients, users } from '../support/recipients.ts'
import { drainEventLoop } from '../support/wait.ts'

const YES = '250 2.1.5 Ok'
const NO = '550 5.1.1 No such user'
const GREY = '450 4.2.0 Greylisted, try again in 10 minutes'

describe('each input has exactly one result', () => {
  test('whatever it is', async () => {
    const { many, loggedErrors } = createTestEngine()
    const texts = ['ann@a.test', '', 'ann@a.test', 'nonsense', 'nobody@a.test', 'ann@nowhere.test']
    expect(reasonsOf(await many(texts))).toEqual([
      ' invalid_email',
      'ann@a.test accepted_email',
      'ann@a.test accepted_email',
      'ann@nowhere.test invalid_domain',
      'nobody@a.test rejected_email',
      'nonsense invalid_email',
    ])
    expect(loggedErrors).toEqual([])
  })

  test('and duplicates are probed only once', async () => {
    const { many, recipients } = createTestEngine()
    const results = await many(['ann@a.test', 'zoe@a.test', 'ann@A.TEST', 'zoe@a.test'])
    expect(reasonsOf(results)).toEqual([
      'ann@A.TEST accepted_email',
      'ann@a.test accepted_email',
      'zoe@a.test rejected_email',
      'zoe@a.test rejected_email',
    ])
    expect(recipients().filter(to => !isRandomRecipient(to))).toHaveLength(2)
  })

  test('of an empty list none', async () => {
    const { many, mx } = createTestEngine()
    expect(await many([])).toEqual([])
    expect(mx.dialled).toEqual([])
  })

  test('of a thousand over a hundred domains, with servers of all kinds', async () => {
    const domains = Array.from({ length: 100 }, (_, i) => `d${i}.test`)
    const zone = Object.assign({}, ...domains.map((name, i) => mail(name, `192.0.2.${i + 1}`)))
    const kinds = [YES, NO, GREY, '421 4.7.0 Slow down', '554 5.7.1 Blocked', 'nonsense']
    const script = toRecipients(to => kinds[Number(/@d(\d+)/.exec(to)?.[1]) % kinds.length])
    const { many } = createTestEngine({ zone, script })
    const texts = domains.flatMap(domain => users(10, domain))
    const results = await many(texts, { wait: false })
    expect(results.map(({ email }) => email).toSorted()).toEqual(texts.toSorted())
  })

  test('when the probe throws', async () => {
    const { many } = createTestEngine({
      script: {},
      engine: {
        random: {
          below: () => {
            throw new Error('no chance left')
          },
          token: () => '',
        },
      },
    })
    const texts = [...users(30), 'ann@a.test', 'ann@a.test']
    const results = await many(texts)
    expect(results.map(({ email }) => email).toSorted()).toEqual(texts.toSorted())
    expect(results.map(({ verdict }) => verdict.reason)).toContain('unexpected_error')
  })

  test('when the lookup throws', async () => {
    const { many } = createTestEngine({
      resolver: () => ({
        resolve: () => {
          throw new Error('broken')
        },
      }),
    })
    const results = await many(['ann@a.test', 'nonsense', 'bob@a.test'])
    expect(reasonsOf(results)).toEqual([
      'ann@a.test unexpected_error',
      'bob@a.test unexpected_error',
      'nonsense invalid_email',
    ])
  })

  test('from an asynchronous source', async () => {
    const { many } = createTestEngine()
    async function* source() {
      yield 'ann@a.test'
      await drainEventLoop()
      yield 'nobody@a.test'
    }
    expect(reasonsOf(await many(source()))).toEqual([
      'ann@a.test accepted_email',
      'nobody@a.test rejected_email',
    ])
  })
})

describe('addresses do not wait for each other', () => {
  test('a domain without DNS replies does not delay others', async () => {
    const { engine, clock } = createTestEngine({ zone: { 'silent.test': 'never' } })
    const results = engine.verifyMany(['ann@silent.test', 'ann@a.test', 'nonsense'])
    const iterator = results[Symbol.asyncIterator]()
    const first = iterator.next()
    await drainEventLoop()
    expect((await first).value).toMatchObject({ email: 'nonsense' })
    const second = iterator.next()
    await drainEventLoop()
    // Only the gathering of recipients for one connection takes a little time.
    await clock.advance(200)
    await drainEventLoop()
    expect((await second).value).toMatchObject({ email: 'ann@a.test' })
    await iterator.return?.()
  })

  test('a slow source does not delay its earlier items', async () => {
    const { engine, settled } = createTestEngine()
    let more = () => {}
    async function* source() {
      yield 'ann@a.test'
      await new Promise<void>(resolve => {
        more = resolve
      })
      yield 'bob@a.test'
    }
    const iterator = engine.verifyMany(source())[Symbol.asyncIterator]()
    expect((await settled(iterator.next())).value).toMatchObject({ email: 'ann@a.test' })
    more()
    expect((await settled(iterator.next())).value).toMatchObject({ email: 'bob@a.test' })
    expect((await settled(iterator.next())).done).toBe(true)
  })

  test('an unresponsive server delays only its own domain', async () => {
    const zone = mail('silent.test', '192.0.2.66')
    const { engine, settled, clock } = createTestEngine({
      zone,
      script: {
        greeting: ({ to }) => (to.ip === '192.0.2.66' ? null : undefined),
        answer: knows('ann'),
      },
    })
    const startedAt = clock.monotonicNow()
    const iterator = engine.verifyMany(['ann@silent.test', 'ann@a.test'])[Symbol.asyncIterator]()
    expect((await settled(iterator.next())).value).toMatchObject({ email: 'ann@a.test' })
    expect(clock.monotonicNow() - startedAt).toBeLessThan(1_000)
    expect((await settled(iterator.next())).value).toMatchObject({
      email: 'ann@silent.test',
      verdict: { reason: 'timeout' },
    })
  })

  test('results arrive in order of completion', async () => {
    const { engine } = createTestEngine()
    const texts = ['nonsense 1', 'nonsense 2', 'nonsense 3']
    const emails: string[] = []
    for await (const { email } of engine.verifyMany(texts)) {
      emails.push(email)
      // All the others complete while this one is processed.
      await drainEventLoop()
    }
    expect(emails).toEqual(texts)
  })
})

describe('a slow consumer', () => {
  test.each([1, 7, 100])('limits the work in flight: %i', async windowMax => {
    const { engine, settled } = createTestEngine({ engine: { sessionsPerOperator: 5 } })
    let taken = 0
    let given = 0
    function* source() {
      for (const text of users(150)) {
        taken++
        yield text
      }
    }
    const iterator = engine.verifyMany(source(), { windowMax })[Symbol.asyncIterator]()
    for (;;) {
      const next = await settled(iterator.next())
      if (next.done === true) break
      given++
      await drainEventLoop()
      expect(taken - given).toBeLessThanOrEqual(windowMax)
    }
    expect({ taken, given }).toEqual({ taken: 150, given: 150 })
  })

  test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])(
    'cannot set a window of %s',
    async windowMax => {
      const { many } = createTestEngine()
      await expect(many(['ann@a.test'], { windowMax })).rejects.toMatchObject({ code: 'usage' })
    },
  )

  test('no work starts before the first result is requested', async () => {
    const { engine, zone } = createTestEngine()
    engine.verifyMany(['ann@a.test'])
    await drainEventLoop()
    expect(zone.asked).toEqual([])
  })
})
