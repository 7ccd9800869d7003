import { describe, expect, test } from 'vitest'
import { HOUR, MINUTE } from '../../src/base/clock.ts'
import type { Result } from '../../src/index.ts'
import { farDial } from './far.ts'
import { house, isUnguessable, knows, mail, quiet, reasonsOf, toRecipients } from './house.ts'

const YES = '250 2.1.5 Ok'
const NO = '550 5.1.1 No such user'
const GREY = '450 4.2.0 Greylisted, try again in 10 minutes'

const users = (count: number, domain = 'a.test') =>
  Array.from({ length: count }, (_, i) => `user${i}@${domain}`)

describe('each input has exactly one result', () => {
  test('whatever it is', async () => {
    const { many, complaints } = house()
    const texts = ['ann@a.test', '', 'ann@a.test', 'nonsense', 'nobody@a.test', 'ann@nowhere.test']
    expect(reasonsOf(await many(texts))).toEqual([
      ' invalid_email',
      'ann@a.test accepted_email',
      'ann@a.test accepted_email',
      'ann@nowhere.test invalid_domain',
      'nobody@a.test rejected_email',
      'nonsense invalid_email',
    ])
    expect(complaints).toEqual([])
  })

  test('and nobody is asked twice for what stands in the list twice', async () => {
    const { many, recipients } = house()
    const results = await many(['ann@a.test', 'zoe@a.test', 'ann@A.TEST', 'zoe@a.test'])
    expect(reasonsOf(results)).toEqual([
      'ann@A.TEST accepted_email',
      'ann@a.test accepted_email',
      'zoe@a.test rejected_email',
      'zoe@a.test rejected_email',
    ])
    expect(recipients().filter(to => !isUnguessable(to))).toHaveLength(2)
  })

  test('of an empty list none', async () => {
    const { many, mx } = house()
    expect(await many([])).toEqual([])
    expect(mx.dialled).toEqual([])
  })

  test('of a thousand over a hundred domains, with servers of all kinds', async () => {
    const domains = Array.from({ length: 100 }, (_, i) => `d${i}.test`)
    const zone = Object.assign({}, ...domains.map((name, i) => mail(name, `192.0.2.${i + 1}`)))
    const kinds = [YES, NO, GREY, '421 4.7.0 Slow down', '554 5.7.1 Blocked', 'nonsense']
    const script = toRecipients(to => kinds[Number(/@d(\d+)/.exec(to)?.[1]) % kinds.length])
    const { many } = house({ zone, script })
    const texts = domains.flatMap(domain => users(10, domain))
    const results = await many(texts, { wait: false })
    expect(results.map(({ email }) => email).toSorted()).toEqual(texts.toSorted())
  })

  test('when asking them throws', async () => {
    const { many } = house({
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

  test('when looking them up throws', async () => {
    const { many } = house({
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

  test('from an asynchronous source too', async () => {
    const { many } = house()
    async function* source() {
      yield 'ann@a.test'
      await quiet()
      yield 'nobody@a.test'
    }
    expect(reasonsOf(await many(source()))).toEqual([
      'ann@a.test accepted_email',
      'nobody@a.test rejected_email',
    ])
  })
})

describe('nobody waits for another', () => {
  test('a domain whose DNS is silent holds nobody back', async () => {
    const { engine, clock } = house({ zone: { 'silent.test': 'never' } })
    const results = engine.verifyMany(['ann@silent.test', 'ann@a.test', 'nonsense'])
    const iterator = results[Symbol.asyncIterator]()
    const first = iterator.next()
    await quiet()
    expect((await first).value).toMatchObject({ email: 'nonsense' })
    const second = iterator.next()
    await quiet()
    // Only the gathering of recipients for one connection takes time, and little.
    await clock.advance(200)
    await quiet()
    expect((await second).value).toMatchObject({ email: 'ann@a.test' })
    await iterator.return?.()
  })

  test('a source that is slow holds back nothing that it gave before', async () => {
    const { engine, settled } = house()
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

  test('a silent server holds back its own domain alone', async () => {
    const zone = mail('silent.test', '192.0.2.66')
    const { engine, settled, clock } = house({
      zone,
      script: {
        greeting: ({ to }) => (to.ip === '192.0.2.66' ? null : undefined),
        answer: knows('ann'),
      },
    })
    const begunAt = clock.ticks()
    const iterator = engine.verifyMany(['ann@silent.test', 'ann@a.test'])[Symbol.asyncIterator]()
    expect((await settled(iterator.next())).value).toMatchObject({ email: 'ann@a.test' })
    expect(clock.ticks() - begunAt).toBeLessThan(1_000)
    expect((await settled(iterator.next())).value).toMatchObject({
      email: 'ann@silent.test',
      verdict: { reason: 'timeout' },
    })
  })

  test('results come in the order in which they ripened', async () => {
    const { engine } = house()
    const texts = ['nonsense 1', 'nonsense 2', 'nonsense 3']
    const emails: string[] = []
    for await (const { email } of engine.verifyMany(texts)) {
      emails.push(email)
      // All the others ripen while this one is looked at.
      await quiet()
    }
    expect(emails).toEqual(texts)
  })
})

describe('a consumer that is slow', () => {
  test.each([1, 7, 100])('bounds what is under way: %i', async windowMax => {
    const { engine, settled } = house({ engine: { sessionsPerOperator: 5 } })
    let taken = 0
    let given = 0
    function* source() {
      for (const text of users(500)) {
        taken++
        yield text
      }
    }
    const iterator = engine.verifyMany(source(), { windowMax })[Symbol.asyncIterator]()
    for (;;) {
      const next = await settled(iterator.next())
      if (next.done === true) break
      given++
      await quiet()
      expect(taken - given).toBeLessThanOrEqual(windowMax)
    }
    expect({ taken, given }).toEqual({ taken: 500, given: 500 })
  })

  test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])(
    'cannot ask for a window of %s',
    async windowMax => {
      const { many } = house()
      await expect(many(['ann@a.test'], { windowMax })).rejects.toMatchObject({ code: 'usage' })
    },
  )

  test('nothing begins before the first result is asked for', async () => {
    const { engine, zone } = house()
    engine.verifyMany(['ann@a.test'])
    await quiet()
    expect(zone.asked).toEqual([])
  })
})

describe('a greylisted address', () => {
  /** Refuses each recipient and sender for now, until `waitMs` have passed since it was first asked. */
  function greylist(waitMs: number, now: () => number) {
    const firstAt = new Map<string, number>()
    const asked: { at: number; sender: string; ip: string }[] = []
    const script = (line: string, session: { lines: string[]; to: { ip: string } }) => {
      const to = /^RCPT TO:<(.*)>/.exec(line)?.[1]
      if (to === undefined) return undefined
      if (isUnguessable(to)) return NO
      const sender = session.lines.findLast(said => said.startsWith('MAIL')) ?? ''
      asked.push({ at: now(), sender, ip: session.to.ip })
      const first = firstAt.get(`${sender} ${to}`) ?? now()
      firstAt.set(`${sender} ${to}`, first)
      return now() - first >= waitMs ? YES : GREY
    }
    return { script, asked }
  }

  test('is asked again from the same sender, after the time that the server named', async () => {
    let now = () => 0
    const { script, asked } = greylist(10 * MINUTE, () => now())
    const { many, clock } = house({ script })
    now = clock.ticks
    const results = await many(['ann@a.test', 'nonsense'])
    expect(reasonsOf(results)).toEqual(['ann@a.test accepted_email', 'nonsense invalid_email'])
    expect(asked.map(({ sender }) => sender)).toEqual(['MAIL FROM:<>', 'MAIL FROM:<>'])
    const waitedMs = (asked[1]?.at ?? 0) - (asked[0]?.at ?? 0)
    expect(waitedMs).toBeGreaterThanOrEqual(10 * MINUTE)
    expect(waitedMs).toBeLessThan(11 * MINUTE)
  })

  test('is asked three times at most, and then ends as greylisted', async () => {
    const { script, asked } = greylist(24 * HOUR, () => 0)
    const { many } = house({ script })
    expect(reasonsOf(await many(['ann@a.test']))).toEqual(['ann@a.test greylisted'])
    expect(asked).toHaveLength(3)
  })

  test('ends at once when nobody wants to wait', async () => {
    const { script, asked } = greylist(10 * MINUTE, () => 0)
    const { many, clock } = house({ script })
    const begunAt = clock.ticks()
    expect(reasonsOf(await many(['ann@a.test'], { wait: false }))).toEqual([
      'ann@a.test greylisted',
    ])
    expect(asked).toHaveLength(1)
    expect(clock.ticks() - begunAt).toBeLessThan(MINUTE)
  })

  test('waits as the settings say', async () => {
    let now = () => 0
    const { script, asked } = greylist(30_000, () => now())
    const { many, clock } = house({ script, engine: { greylistDelayMs: 30_000 } })
    now = clock.ticks
    expect(reasonsOf(await many(['ann@a.test']))).toEqual(['ann@a.test accepted_email'])
    expect(asked).toHaveLength(2)
    expect((asked[1]?.at ?? 0) - (asked[0]?.at ?? 0)).toBeLessThan(MINUTE)
  })

  test('holds back nobody else while it waits', async () => {
    const zone = mail('grey.test', '192.0.2.2')
    const script = toRecipients(to => (to.endsWith('@grey.test') ? GREY : YES))
    const { engine, settled, clock } = house({ zone, script, engine: { concurrency: 1 } })
    const begunAt = clock.ticks()
    const iterator = engine.verifyMany(['ann@grey.test', 'ann@a.test'])[Symbol.asyncIterator]()
    expect((await settled(iterator.next())).value).toMatchObject({ email: 'ann@a.test' })
    expect(clock.ticks() - begunAt).toBeLessThan(MINUTE)
    await iterator.return?.()
  })
})

describe('an end before its time', () => {
  test('an early break stops all work: connections, questions, and waiting for the source', async () => {
    async function* source() {
      yield* ['nonsense', 'ann@a.test', 'ann@silent.test']
      await new Promise(() => {})
    }
    let question: AbortSignal | undefined
    const { engine, mx, clock, zone } = house({
      zone: { 'silent.test': 'never' },
      resolver: zone => ({
        resolve: (name, type, signal) => {
          if (name === 'silent.test') question = signal
          return zone.resolve(name, type, signal)
        },
      }),
      script: { greeting: null },
    })
    for await (const { email } of engine.verifyMany(source())) {
      expect(email).toBe('nonsense')
      await quiet()
      await clock.advance(200)
      await quiet()
      expect(mx.sessions.map(({ closed }) => closed)).toEqual([false])
      break
    }
    await quiet()
    expect(mx.sessions.map(({ closed }) => closed)).toEqual([true])
    expect(question?.aborted).toBe(true)
    const asked = zone.asked.length
    await clock.runAll()
    expect({
      asked: zone.asked.length,
      sessions: mx.sessions.length,
      pending: clock.pending,
    }).toEqual({ asked, sessions: 1, pending: 0 })
  })

  test('an early break closes the source', async () => {
    const { engine } = house()
    let closed = 0
    function* source() {
      try {
        for (let i = 0; ; i++) yield `nonsense ${i}`
      } finally {
        closed++
      }
    }
    for await (const _ of engine.verifyMany(source(), { windowMax: 10 })) break
    await quiet()
    expect(closed).toBe(1)
  })

  test('a source that cannot be closed spoils nothing', async () => {
    const { engine } = house()
    const source: Iterable<string> = {
      [Symbol.iterator]: () => ({
        next: () => ({ done: false, value: 'nonsense' }),
        return: () => {
          throw new Error('will not')
        },
      }),
    }
    for await (const _ of engine.verifyMany(source, { windowMax: 10 })) break
    await quiet()
  })

  test('a source that throws: what it gave before has its results, and then the error comes', async () => {
    const { engine, settled } = house()
    async function* source() {
      yield* ['ann@a.test', 'nobody@a.test', 'nonsense']
      throw new Error('the file ends here')
    }
    const emails: string[] = []
    const walk = async () => {
      for await (const { email } of engine.verifyMany(source())) emails.push(email)
    }
    await expect(settled(walk())).rejects.toThrow('the file ends here')
    expect(emails.toSorted()).toEqual(['ann@a.test', 'nobody@a.test', 'nonsense'])
  })

  test('a source that throws at once', async () => {
    const { many } = house()
    const source: Iterable<string> = {
      [Symbol.iterator]: () => {
        throw new Error('no such file')
      },
    }
    await expect(many(source)).rejects.toThrow('no such file')
  })

  test('a signal that aborts ends it with its reason', async () => {
    const { engine, mx } = house({ script: { greeting: null } })
    const abort = new AbortController()
    const walk = async () => {
      for await (const _ of engine.verifyMany(['ann@a.test'], { signal: abort.signal })) break
    }
    const walking = walk()
    await quiet()
    abort.abort(new Error('changed my mind'))
    await expect(walking).rejects.toThrow('changed my mind')
    await quiet()
    expect(mx.sessions.every(({ closed }) => closed)).toBe(true)
  })

  test('a signal that aborted before asks nobody', async () => {
    const { engine, zone } = house()
    const signal = AbortSignal.abort(new Error('too late'))
    const walk = async () => {
      for await (const _ of engine.verifyMany(['ann@a.test'], { signal })) break
    }
    await expect(walk()).rejects.toThrow('too late')
    expect(zone.asked).toEqual([])
  })

  test('an engine that is closed ends its streams', async () => {
    const { engine, clock, mx } = house({ script: { greeting: null } })
    const walk = async () => {
      for await (const _ of engine.verifyMany(['ann@a.test'])) break
    }
    const walking = walk()
    const failed = expect(walking).rejects.toMatchObject({ code: 'interrupted' })
    await quiet()
    await clock.advance(200)
    await quiet()
    await engine.close()
    await failed
    await quiet()
    expect(mx.sessions.map(({ closed }) => closed)).toEqual([true])
  })

  test('a stream that ended leaves no timer', async () => {
    const { many, clock } = house()
    await many(['ann@a.test', 'nobody@a.test', 'nonsense'])
    await clock.advance(5_000)
    expect(clock.pending).toBe(0)
  })
})

describe('how a list is asked', () => {
  test('the recipients of one domain share a connection', async () => {
    const { many, mx, recipients } = house()
    await many(users(15))
    expect(mx.sessions).toHaveLength(1)
    expect(recipients()).toHaveLength(15)
  })

  test('never more connections at once than the settings allow', async () => {
    const domains = Array.from({ length: 20 }, (_, i) => `d${i}.test`)
    const zone = Object.assign({}, ...domains.map((name, i) => mail(name, `192.0.2.${i + 1}`)))
    let now = 0
    let peak = 0
    const known = knows('user0')
    const { many } = house({
      zone,
      dial: (mx, clock) => farDial(mx, clock, 200),
      engine: { concurrency: 3 },
      script: {
        greeting: () => {
          peak = Math.max(peak, ++now)
          return undefined
        },
        answer: (line, session) => {
          if (line === 'QUIT') now--
          return known(line, session)
        },
      },
    })
    const results = await many(domains.flatMap(domain => users(2, domain)))
    expect(results).toHaveLength(40)
    expect(peak).toBe(3)
  })

  test('the unguessable recipient is asked once for a domain, whatever its length', async () => {
    const { many, recipients } = house({
      script: toRecipients(to => (isUnguessable(to) ? NO : YES)),
    })
    await many(users(60))
    expect(recipients().filter(isUnguessable)).toHaveLength(1)
  })

  test('a domain where nobody is known is not asked for an unguessable one', async () => {
    const { many, recipients } = house()
    await many(users(5))
    expect(recipients().filter(isUnguessable)).toEqual([])
  })

  test('without the mail server when that is wanted', async () => {
    const { many, mx } = house()
    const results = await many(['ann@a.test', 'nonsense'], { checkSmtp: false })
    expect(reasonsOf(results)).toEqual(['ann@a.test smtp_skipped', 'nonsense invalid_email'])
    expect(mx.dialled).toEqual([])
  })

  test('a remembered answer serves, unless it is to be asked anew', async () => {
    const { many, recipients } = house()
    await many(['ann@a.test'])
    const [second] = await many(['ann@a.test'])
    expect(second?.cached).toBe(true)
    const [third] = await many(['ann@a.test'], { forceRefresh: true })
    expect(third?.cached).toBe(false)
    expect(recipients().filter(to => to === 'ann@a.test')).toHaveLength(2)
  })

  test('one address in place of a list is a mistake, not a list of its letters', () => {
    const { engine } = house()
    expect(() => engine.verifyMany('ann@a.test')).toThrow(/verify\(\)/)
  })
})

describe('the two steps of a job', () => {
  test('the first gives one answer for each text, in order, and each is independent', async () => {
    const { engine, settled } = house({ zone: { 'broken.test': 'server' } })
    const texts = ['ann@a.test', 'nonsense', 'ann@broken.test', 'ann@a.test']
    const prepared = await settled(engine.route(texts))
    expect(
      prepared.map(one =>
        'result' in one ? one.result.verdict.reason : one.inquiry.operator.name,
      ),
    ).toEqual(['a.test', 'invalid_email', 'dns_error', 'a.test'])
  })

  test('one address alone is routed without waiting for others', async () => {
    const { engine } = house({ zone: { 'silent.test': 'never' } })
    const silent = engine.routeOne('ann@silent.test')
    const other = engine.routeOne('ann@a.test')
    await quiet()
    expect('inquiry' in (await other)).toBe(true)
    await engine.close()
    expect(await silent).toMatchObject({ result: { verdict: { reason: 'dns_error' } } })
  })

  test('an item is taken up again from its route, perhaps in another process', async () => {
    const { engine, settled } = house()
    const [one] = await settled(engine.route(['ann@a.test']))
    if (one === undefined || !('inquiry' in one)) throw new Error('no inquiry')
    const route = JSON.parse(JSON.stringify(one.inquiry.route))
    const inquiry = engine.resume('ann@a.test', route)
    const results: Result[] = []
    const { signal } = new AbortController()
    const probing = engine.probe(inquiry.operator, [inquiry], {
      signal,
      onResult: (_, result) => results.push(result),
    })
    await settled(probing)
    expect(reasonsOf(results)).toEqual(['ann@a.test accepted_email'])
  })

  test('a text that is no address cannot be taken up: it was never routed', () => {
    const { engine } = house()
    expect(() => engine.resume('nonsense', { kind: 'implicit', host: 'a.test' })).toThrow(
      /no address/,
    )
  })

  test.each<[string, (house: { abort: AbortController; close: () => Promise<void> }) => unknown]>([
    ['an abort', ({ abort }) => abort.abort()],
    ['a close of the engine', ({ close }) => close()],
  ])('%s gives each inquiry its one result, and closes the connection', async (_, end) => {
    const { engine, settled, mx } = house({ script: { greeting: null } })
    const prepared = await settled(engine.route(users(5)))
    const inquiries = prepared.flatMap(one => ('inquiry' in one ? [one.inquiry] : []))
    const [first] = inquiries
    if (first === undefined) throw new Error('no inquiry')
    const results: Result[] = []
    const abort = new AbortController()
    const probing = engine.probe(first.operator, inquiries, {
      signal: abort.signal,
      onResult: (_, result) => results.push(result),
    })
    await quiet()
    void end({ abort, close: () => engine.close() })
    await settled(probing)
    await quiet()
    expect(results.map(({ email }) => email).toSorted()).toEqual(users(5))
    expect(new Set(results.map(({ verdict }) => verdict.risk))).toEqual(new Set(['unknown']))
    expect(mx.sessions.map(({ closed }) => closed)).toEqual([true])
  })
})
