import { describe, expect, test } from 'vitest'
import { HANG_UP } from '../../support/mx.ts'
import { ask, createTestProber, each, MANNERS, people } from '../../support/prober.ts'
import { isUnguessable, knows, recipientOf, toRecipients } from '../../support/recipients.ts'
import { drainEventLoop } from '../../support/wait.ts'

describe('the catch-all question', () => {
  const randoms = (home: ReturnType<typeof createTestProber>) =>
    home.recipients().filter(isUnguessable)
  const toRandom = (said: string | null) =>
    toRecipients(to => (isUnguessable(to) ? said : undefined))

  test('is asked once for a domain, after a real recipient was accepted', async () => {
    const home = createTestProber(() => undefined, { row: { recipientsPerTransaction: 2 } })
    const walk = await home.run([...people(5), 'zoe@z.test'])
    expect(walk.told.map(({ probed }) => probed.catchAll)).toEqual(Array(6).fill(true))
    expect(randoms(home).map(to => to.split('@')[1])).toEqual(['a.test', 'z.test'])
    const first = home.recipients().findIndex(isUnguessable)
    expect(home.recipients().slice(0, first)).toEqual(people(2))
    await home.run(['late@a.test'])
    expect(randoms(home)).toHaveLength(2)
  })

  test('is not asked when nobody was accepted', async () => {
    const home = createTestProber(knows())
    const walk = await home.run(people(3))
    expect(randoms(home)).toEqual([])
    expect(walk.told.map(({ probed }) => probed.catchAll)).toEqual([null, null, null])
  })

  test.each([true, false])('is not asked when it is known beforehand to be %s', async known => {
    const home = createTestProber(() => undefined)
    const walk = await home.run([ask('ann@a.test', ['mx.test'], known)])
    expect(walk.only().catchAll).toBe(known)
    const single = await home.single(ask('bob@a.test', ['mx.test'], known))
    expect(single.only().catchAll).toBe(known)
    expect(randoms(home)).toEqual([])
  })

  test.each([
    ['250 2.1.5 Ok', true],
    ['252 2.1.5 Cannot verify', true],
    ['251 will forward', true],
    ['550 5.1.1 No such user', false],
    ['553 5.1.3 No such user here', false],
    ['450 4.2.0 Greylisted', null],
    ['450 4.7.1 Throttled, slow down', null],
    ['421 4.3.2 closing', null],
    ['554 5.7.1 Your address is listed by a blocklist', null],
    ['552 5.2.2 Mailbox full', null],
    ['550 5.7.133 Sender not authenticated for group', null],
    ['354 go on', null],
    ['what?', null],
    [null, null],
  ])('answered %j means %s', async (said, catchAll) => {
    for (const single of [true, false]) {
      const home = createTestProber(toRandom(said))
      const walk = await home.begin(['ann@a.test'], { single }).end()
      expect(walk.only()).toMatchObject({ catchAll, answer: { kind: 'accepted' } })
      // What is no evidence is not remembered.
      expect(home.prober.catchAll.get('a.test')).toBe(catchAll)
    }
  })

  test.each([true, false])(
    'uses one random name for a domain until it is decided: single %s',
    async single => {
      let reply = '450 4.2.0 Greylisted'
      const home = createTestProber(toRecipients(to => (isUnguessable(to) ? reply : undefined)))
      for (const email of ['ann@a.test', 'bob@a.test']) {
        const walk = await home.begin([email], { single }).end()
        expect(walk.only().catchAll).toBeNull()
      }
      reply = '550 5.1.1 No such user'
      expect((await home.begin(['cyd@a.test'], { single }).end()).only().catchAll).toBe(false)
      expect(randoms(home)).toHaveLength(3)
      expect(new Set(randoms(home)).size).toBe(1)
    },
  )

  test.each(MANNERS)(
    'is asked of a server that greylists, so that the retry decides: %s',
    async (_, answer) => {
      const seen = new Set<string>()
      const greylist = toRecipients(to => {
        if (seen.has(to)) return undefined
        seen.add(to)
        return '450 4.2.0 Greylisted, try again'
      })
      const home = createTestProber((line, session) => answer?.(line) ?? greylist(line, session))
      const emails = people(3)
      const first = await home.run(emails)
      expect(first.answers()).toEqual(each(emails, 'deferred/greylist'))
      expect(randoms(home)).toHaveLength(1)
      // Once is enough: others that are deferred meanwhile do not show it again.
      await home.run(['zoe@a.test'])
      expect(randoms(home)).toHaveLength(1)
      const second = await home.run(emails)
      expect(second.told.map(({ probed }) => probed.catchAll)).toEqual([true, true, true])
      expect(new Set(randoms(home)).size).toBe(1)
    },
  )

  test('has no evidence in a connection that ends', async () => {
    const home = createTestProber(line => (isUnguessable(recipientOf(line)) ? HANG_UP : undefined))
    expect((await home.run(['ann@a.test'])).only()).toMatchObject({
      catchAll: null,
      answer: { kind: 'accepted' },
    })
  })

  test.each([
    ['in step: it is not asked here', true, 0],
    ['not in step: it is asked here', false, 1],
  ])('told by another connection counts when that is known to be %s', async (_, inStep, asked) => {
    const home = createTestProber(knows('p00'))
    const other = Promise.withResolvers<boolean>()
    home.prober.catchAll.lock('a.test')?.resolve(false, other.promise)
    const walk = home.begin(people(2))
    await drainEventLoop()
    expect(walk.answers()).toEqual(['p01@a.test rejected/no-mailbox'])
    other.resolve(inStep)
    await walk.end()
    expect(walk.told.at(-1)).toMatchObject({
      email: 'p00@a.test',
      probed: { catchAll: false, answer: { kind: 'accepted' } },
    })
    expect(randoms(home)).toHaveLength(asked)
  })

  test('is asked by a single question itself while that is not known', async () => {
    const home = createTestProber(knows('p00'))
    home.prober.catchAll.lock('a.test')?.resolve(true, new Promise(() => {}))
    expect((await home.single('p00@a.test')).only().catchAll).toBe(false)
    expect(randoms(home)).toHaveLength(1)
  })

  test('goes in the same write as a single recipient, after it', async () => {
    const home = createTestProber(() => undefined)
    const walk = await home.single('ann@a.test')
    expect(home.writes[0]?.[1]).toMatch(
      /^MAIL FROM:<>\r\nRCPT TO:<ann@a\.test>\r\nRCPT TO:<[a-z][a-z0-9]{19}@a\.test>\r\nQUIT\r\n$/,
    )
    expect(home.writes[0]).toHaveLength(2)
    expect(walk.only().catchAll).toBe(true)
  })

  test('goes in a transaction of its own where the operator takes one recipient in each', async () => {
    const home = createTestProber(() => undefined, { row: { recipientsPerTransaction: 1 } })
    const walk = await home.single('ann@a.test')
    expect(home.said()[0]).toEqual([
      'MAIL FROM:<>',
      'RCPT TO:<ann@a.test>',
      'RSET',
      'MAIL FROM:<>',
      expect.stringMatching(/^RCPT/),
    ])
    expect(walk.only().catchAll).toBe(true)
  })

  test('in a transaction that was refused has no evidence, whatever RCPT is told', async () => {
    const home = createTestProber(
      (line, { lines }) =>
        line.startsWith('MAIL') && lines.includes('RSET') ? '503 5.5.1 Bad sequence' : undefined,
      { row: { recipientsPerTransaction: 1 } },
    )
    expect((await home.single('ann@a.test')).only().catchAll).toBeNull()
  })

  test('asked together with a recipient who is refused tells nothing', async () => {
    const home = createTestProber(
      toRecipients(to => (isUnguessable(to) ? undefined : '550 5.1.1 No such user')),
    )
    const walk = await home.single('ann@a.test')
    expect(walk.only()).toMatchObject({ catchAll: null, answer: { kind: 'rejected' } })
    expect(home.prober.catchAll.get('a.test')).toBeNull()
  })

  test('is not asked again with a single recipient of a domain that is known', async () => {
    const home = createTestProber(knows('ann@a.test'))
    await home.single('ann@a.test')
    expect((await home.single('ann@a.test')).only().catchAll).toBe(false)
    expect(randoms(home)).toHaveLength(1)
  })

  test('waits for the reply to a single recipient without PIPELINING', async () => {
    const home = createTestProber(line =>
      line.startsWith('EHLO') ? '250 mx.test' : knows()(line, {} as never),
    )
    await home.single('ann@a.test')
    expect(randoms(home)).toEqual([])
  })

  test.each([true, false])(
    'is asked once by two lanes at the same time: single %s',
    async single => {
      const home = createTestProber(() => undefined)
      const walks = ['ann@a.test', 'bob@a.test'].map(email => home.begin([email], { single }))
      for (const walk of walks) await walk.end()
      expect(walks.map(walk => walk.only().catchAll)).toEqual([true, true])
      expect(home.mx.dialled).toHaveLength(2)
      expect(randoms(home)).toHaveLength(1)
    },
  )

  test('unasked after all by one lane is asked by the lane that waits', async () => {
    // The first one to ask holds the turn, but its own recipient is unknown.
    const home = createTestProber(knows('bob@a.test'))
    const walks = ['ann@a.test', 'bob@a.test'].map(email => home.begin([email], { single: true }))
    for (const walk of walks) await walk.end()
    expect(walks.map(walk => walk.only().catchAll)).toEqual([null, false])
  })

  test('does not hold up who has no more time, while another lane asks', async () => {
    const home = createTestProber(toRandom(null))
    const holder = home.begin(['ann@a.test'])
    await drainEventLoop()
    const waiting = home.begin(['bob@a.test'])
    await drainEventLoop()
    await drainEventLoop()
    expect(waiting.told).toEqual([])
    waiting.abort()
    await drainEventLoop()
    expect(waiting.only()).toMatchObject({ catchAll: null, answer: { kind: 'accepted' } })
    await holder.end()
  })
})
