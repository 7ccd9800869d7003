import { describe, expect, test } from 'vitest'
import { HANG_UP } from '../../support/mx.ts'
import { ask, createTestProber, each, MANNERS, people } from '../../support/prober.ts'
import { isRandomRecipient, knows, recipientOf, toRecipients } from '../../support/recipients.ts'
import { drainEventLoop } from '../../support/wait.ts'

describe('the catch-all test', () => {
  const randoms = (home: ReturnType<typeof createTestProber>) =>
    home.recipients().filter(isRandomRecipient)
  const toRandom = (said: string | null) =>
    toRecipients(to => (isRandomRecipient(to) ? said : undefined))

  test('runs once per domain, after an accepted recipient', async () => {
    const home = createTestProber(() => undefined, { row: { recipientsPerTransaction: 2 } })
    const walk = await home.run([...people(5), 'zoe@z.test'])
    expect(walk.told.map(({ probed }) => probed.catchAll)).toEqual(Array(6).fill(true))
    expect(randoms(home).map(to => to.split('@')[1])).toEqual(['a.test', 'z.test'])
    const first = home.recipients().findIndex(isRandomRecipient)
    expect(home.recipients().slice(0, first)).toEqual(people(2))
    await home.run(['late@a.test'])
    expect(randoms(home)).toHaveLength(2)
  })

  test('does not run without an accepted recipient', async () => {
    const home = createTestProber(knows())
    const walk = await home.run(people(3))
    expect(randoms(home)).toEqual([])
    expect(walk.told.map(({ probed }) => probed.catchAll)).toEqual([null, null, null])
  })

  test.each([true, false])('does not run if the result is already known as %s', async known => {
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
    // Postfix with soft_bounce, or with unknown_local_recipient_reject_code = 450.
    ['450 4.1.1 Recipient address rejected: User unknown in local recipient table', false],
    ['450 4.1.1 User unknown, please try again later', null],
    ['450 4.1.1 Recipient address rejected: unverified address: lookup in progress', null],
    ['450 4.1.1 Requested action not taken', null],
    ['450 4.2.0 Greylisted', null],
    ['450 4.7.1 Throttled, slow down', null],
    ['421 4.3.2 closing', null],
    ['554 5.7.1 Your address is listed by a blocklist', null],
    ['552 5.2.2 Mailbox full', null],
    ['550 5.7.133 Sender not authenticated for group', null],
    ['354 go on', null],
    ['what?', null],
    [null, null],
  ])('interprets %j as %s', async (said, catchAll) => {
    for (const single of [true, false]) {
      const home = createTestProber(toRandom(said))
      const walk = await home.begin(['ann@a.test'], { single }).end()
      expect(walk.only()).toMatchObject({ catchAll, answer: { kind: 'accepted' } })
      // An undecided result is not cached.
      expect(home.prober.catchAll.get('a.test')).toBe(catchAll)
    }
  })

  test.each([true, false])(
    'learns nothing from a 450 for an unknown user if no recipient was accepted: single %s',
    async single => {
      const home = createTestProber(toRecipients(() => '450 4.1.1 User unknown'))
      const walk = await home.begin(['ann@a.test'], { single }).end()
      expect(walk.only()).toMatchObject({ catchAll: null, answer: { kind: 'deferred' } })
      expect(randoms(home)).toHaveLength(1)
      expect(home.prober.catchAll.get('a.test')).toBeNull()
    },
  )

  test.each([true, false])(
    'uses one random name for a domain until it is decided: single %s',
    async single => {
      let reply = '450 4.2.0 Greylisted'
      const home = createTestProber(toRecipients(to => (isRandomRecipient(to) ? reply : undefined)))
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
    'sends the random recipient to a greylisting server, so that the retry decides: %s',
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
      // Other deferred recipients do not send it again meanwhile.
      await home.run(['zoe@a.test'])
      expect(randoms(home)).toHaveLength(1)
      const second = await home.run(emails)
      expect(second.told.map(({ probed }) => probed.catchAll)).toEqual([true, true, true])
      expect(new Set(randoms(home)).size).toBe(1)
    },
  )

  test('is undecided if the connection ends', async () => {
    const home = createTestProber(line =>
      isRandomRecipient(recipientOf(line)) ? HANG_UP : undefined,
    )
    expect((await home.run(['ann@a.test'])).only()).toMatchObject({
      catchAll: null,
      answer: { kind: 'accepted' },
    })
  })

  test.each([
    ['in step: it is not asked here', true, 0],
    ['not in step: it is asked here', false, 1],
  ])('uses the result of another connection that turns out to be %s', async (_, inStep, asked) => {
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

  test('is repeated by a single verification while that is unknown', async () => {
    const home = createTestProber(knows('p00'))
    home.prober.catchAll.lock('a.test')?.resolve(true, new Promise(() => {}))
    expect((await home.single('p00@a.test')).only().catchAll).toBe(false)
    expect(randoms(home)).toHaveLength(1)
  })

  test('leaves in the same write as a single recipient, after it', async () => {
    const home = createTestProber(() => undefined)
    const walk = await home.single('ann@a.test')
    expect(home.writes[0]?.[1]).toMatch(
      /^MAIL FROM:<>\r\nRCPT TO:<ann@a\.test>\r\nRCPT TO:<[a-z][a-z0-9]{19}@a\.test>\r\nQUIT\r\n$/,
    )
    expect(home.writes[0]).toHaveLength(2)
    expect(walk.only().catchAll).toBe(true)
  })

  test('leaves in the same write as the next transaction of a list', async () => {
    const all = people(12)
    const home = createTestProber(knows(...all))
    await home.run(all)
    const next = all.slice(8).map(email => `RCPT TO:<${email}>`)
    expect(home.writes[0]?.[2]?.split('\r\n')).toEqual([
      expect.stringMatching(/^RCPT TO:<[a-z][a-z0-9]{19}@a\.test>$/),
      'RSET',
      'MAIL FROM:<>',
      ...next,
      '',
    ])
  })

  test('uses its own transaction if the operator accepts one recipient per transaction', async () => {
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

  test('is undecided in a refused transaction, whatever the reply to RCPT', async () => {
    const home = createTestProber(
      (line, { lines }) =>
        line.startsWith('MAIL') && lines.includes('RSET') ? '503 5.5.1 Bad sequence' : undefined,
      { row: { recipientsPerTransaction: 1 } },
    )
    expect((await home.single('ann@a.test')).only().catchAll).toBeNull()
  })

  test('is no evidence for a refused recipient', async () => {
    const home = createTestProber(
      toRecipients(to => (isRandomRecipient(to) ? undefined : '550 5.1.1 No such user')),
    )
    const walk = await home.single('ann@a.test')
    expect(walk.only()).toMatchObject({ catchAll: null, answer: { kind: 'rejected' } })
    expect(home.prober.catchAll.get('a.test')).toBeNull()
  })

  test('does not run again for a single recipient of a known domain', async () => {
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

  test.each([true, false])('runs once for two concurrent sessions: single %s', async single => {
    const home = createTestProber(() => undefined)
    const walks = ['ann@a.test', 'bob@a.test'].map(email => home.begin([email], { single }))
    for (const walk of walks) await walk.end()
    expect(walks.map(walk => walk.only().catchAll)).toEqual([true, true])
    expect(home.mx.dialled).toHaveLength(2)
    expect(randoms(home)).toHaveLength(1)
  })

  test('runs in a waiting session if the lock was dropped', async () => {
    // The first session holds the lock, but its own recipient is unknown.
    const home = createTestProber(knows('bob@a.test'))
    const walks = ['ann@a.test', 'bob@a.test'].map(email => home.begin([email], { single: true }))
    for (const walk of walks) await walk.end()
    expect(walks.map(walk => walk.only().catchAll)).toEqual([null, false])
  })

  test('does not block a session past its deadline while another one runs it', async () => {
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
