import { describe, expect, test } from 'vitest'
import { codeOf, greeted, turns } from './talk.ts'

type Talk = Awaited<ReturnType<typeof greeted>>

/** The value if the promise has resolved, else `undefined`. */
async function known(promise: Promise<boolean>): Promise<boolean | undefined> {
  await turns()
  return Promise.race([promise, Promise.resolve(undefined)])
}

/** A group of three commands and QUIT in one write. */
async function group(keywords: readonly string[] = ['PIPELINING']) {
  const all = await greeted(keywords)
  const { session } = all
  const outcomes = [session.mail(''), session.rcpt('a@a.test'), session.rcpt('b@a.test')]
  void session.quit(500)
  await turns()
  return { ...all, outcomes }
}

describe('QUIT after a group', () => {
  test('leaves in the same write with PIPELINING, and after the last reply without', async () => {
    expect((await group()).writes).toEqual([
      'MAIL FROM:<>\r\nRCPT TO:<a@a.test>\r\nRCPT TO:<b@a.test>\r\nQUIT\r\n',
    ])
    const { writes, say } = await group([])
    for (const reply of ['250 a', '250 b', '550 c']) await say(reply)
    expect(writes.at(-1)).toBe('QUIT\r\n')
  })

  test('is the last command', async () => {
    const { session, writes } = await group()
    expect(await session.rset()).toMatchObject({ broken: 'closed', stage: 'rset' })
    expect(writes).toHaveLength(1)
  })

  test('has a timeout that starts when its reply is due', async () => {
    const { session, say, clock, socket } = await group()
    await clock.advance(15_000)
    await say('250 a', '250 b')
    await clock.advance(15_000)
    await say('550 c')
    expect(await known(session.inStep)).toBeUndefined()
    await clock.advance(500)
    expect(await known(session.inStep)).toBe(true)
    await clock.advance(1_500)
    expect(socket.destroyed).toBe(true)
    await session.quit()
    expect(clock.pending).toBe(0)
  })
})

describe('replies are in step', () => {
  test.each<[string, (talk: Talk) => unknown, boolean]>([
    ['221 to QUIT', ({ say }) => say('250 a', '250 b', '550 c', '221 d'), true],
    // It may be the reply to the last recipient.
    ['421 to QUIT', ({ say }) => say('250 a', '250 b', '550 c', '421 d'), false],
    [
      '221, and more after it',
      ({ say }) => say('250 a', '250 b', '550 c', '221 d', '250 e\r\n25'),
      true,
    ],
    ['250 to QUIT', ({ say }) => say('250 a', '250 b', '550 c', '250 d'), false],
    ['550 to QUIT', ({ say }) => say('250 a', '250 b', '550 c', '550 d'), false],
    ['221 to RCPT', ({ say }) => say('250 a', '550 c', '221 d'), false],
    ['354 to MAIL', ({ say }) => say('354 a'), false],
    ['no reply', ({ say }) => say('what?'), false],
    [
      'half a reply to QUIT',
      ({ say, server }) => say('250 a', '250 b', '550 c').then(() => server.end('25')),
      false,
    ],
    ['half a reply to RCPT', ({ say, server }) => say('250 a').then(() => server.end('25')), true],
    ['a close', ({ say, server }) => say('250 a').then(() => server.end()), true],
    ['421 in the group', ({ say }) => say('250 a', '421 b'), true],
    ['our time being out', ({ session }) => session.close(), true],
  ])('with %s: %s', async (_, happens, inStep) => {
    const talk = await group()
    await happens(talk)
    expect(await known(talk.session.inStep)).toBe(inStep)
  })

  test.each<[string, string[], boolean]>([
    ['an odd reply to QUIT', ['250 a', '550 b', '250 bye'], true],
    ['an odd reply to RCPT', ['250 a', '354 b', '221 bye'], true],
    ['a reply to QUIT, and one more', ['250 a', '550 b', '550 b', '221 bye'], false],
  ])('without PIPELINING with %s: %s', async (_, replies, inStep) => {
    const { session, server, say } = await greeted()
    void session.mail('')
    void session.rcpt('a@a.test')
    void session.quit()
    for (const reply of replies) {
      await turns()
      await say(reply)
    }
    server.end()
    expect(await known(session.inStep)).toBe(inStep)
  })

  test('not yet with a partial reply to QUIT at its timeout', async () => {
    const { session, say, server, clock } = await group()
    await say('250 a', '250 b', '550 c')
    server.write('5')
    await turns()
    await clock.advance(500)
    expect(await known(session.inStep)).toBeUndefined()
    await say('50 c')
    expect(await known(session.inStep)).toBe(false)
  })

  test('unless one starts before its command was sent', async () => {
    const { session, server, writes } = await greeted()
    server.write('25')
    await turns()
    const mail = session.mail('')
    expect(codeOf(await mail)).toBe('garbage')
    expect(writes).toEqual([])
    expect(await known(session.inStep)).toBe(false)
  })

  test('unless one is unsolicited', async () => {
    const { session, say } = await greeted()
    await say('250 a')
    expect(await known(session.inStep)).toBe(false)
  })
})
