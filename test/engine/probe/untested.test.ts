import { describe, expect, test } from 'vitest'
import type { ProbeTarget } from '../../../src/engine/probe/mx-groups.ts'
import { ask, createTestProber, people, ROW } from '../../support/prober.ts'
import { isRandomRecipient, toRecipients } from '../../support/recipients.ts'

const REPLY = { code: 250, enhanced: '2.1.5', text: 'Ok' }

/** Recipients that were accepted earlier in an untested domain. */
const accepted = (emails: readonly string[]): ProbeTarget[] =>
  emails.map(email => ({
    ...ask(email),
    accepted: {
      answer: { kind: 'accepted', why: 'recipient', stage: 'rcpt', reply: REPLY },
      egress: 'default',
      host: 'mx.test',
      ip: '192.0.2.1',
      tls: false,
      connectMs: 7,
      at: 1,
    },
  }))

const toRandom = (said: string | null) =>
  toRecipients(to => (isRandomRecipient(to) ? said : '550 5.1.1 The recipient was asked again'))

describe('recipients accepted before the test of their domain', () => {
  test.each([
    ['550 5.1.1 No such user', false],
    ['250 2.1.5 Ok', true],
  ])('are decided by one random recipient: %s', async (said, catchAll) => {
    const home = createTestProber(toRandom(said))
    const walk = await home.run([...accepted(people(30)), ...accepted(people(3, 'b.test'))])
    expect(walk.told).toHaveLength(33)
    for (const { probed } of walk.told) {
      expect(probed).toMatchObject({ answer: { kind: 'accepted' }, catchAll, asked: true })
      expect(probed).toMatchObject({ host: 'mx.test', ip: '192.0.2.1', connectMs: 7 })
    }
    expect(home.mx.dialled).toHaveLength(1)
    expect(home.recipients().map(to => to.split('@')[1])).toEqual(['a.test', 'b.test'])
    expect(home.recipients().every(isRandomRecipient)).toBe(true)
  })

  test('share one test, even if a transaction has one recipient', async () => {
    const home = createTestProber(toRandom('550 5.1.1 No such user'), {
      row: { recipientsPerTransaction: 1 },
    })
    await home.run(accepted(people(3)))
    expect(home.said()).toEqual([['MAIL FROM:<>', expect.stringMatching(/^RCPT TO:<[a-z]\w{19}@/)]])
  })

  test('need no connection if the domain has been tested since', async () => {
    const home = createTestProber(() => undefined)
    home.prober.catchAll.set('a.test', false)
    const walk = await home.run(accepted(people(2)))
    expect(walk.told.map(({ probed }) => probed.catchAll)).toEqual([false, false])
    expect(walk.told.map(({ probed }) => probed.asked)).toEqual([false, false])
    expect(home.mx.dialled).toEqual([])
  })

  test('do not share a transaction with new recipients', async () => {
    const home = createTestProber(
      toRecipients(to =>
        isRandomRecipient(to) || to === 'p00@a.test' ? '550 5.1.1 No' : undefined,
      ),
    )
    const [first, ...others] = accepted(people(3)) as [ProbeTarget, ...ProbeTarget[]]
    const walk = await home.run([first, 'new@a.test', ...others])
    expect(walk.told.map(({ probed }) => probed.catchAll)).toEqual(Array(4).fill(false))
    const recipients = home.recipients()
    expect(recipients.filter(to => !isRandomRecipient(to))).toEqual(['new@a.test'])
    expect(recipients).toHaveLength(2)
  })

  test.each<[string, Parameters<typeof createTestProber>[0]]>([
    ['greeted with 421', { greeting: '421 4.7.0 Too many connections' }],
    ['greeted with 554', { greeting: '554 5.7.1 You are listed' }],
    ['told 421 at MAIL', line => (line.startsWith('MAIL') ? '421 4.7.0 Slow down' : undefined)],
    ['told 550 at MAIL', line => (line.startsWith('MAIL') ? '550 5.7.1 Blocked' : undefined)],
    ['told 421 at RCPT', toRandom('421 4.7.0 Slow down')],
    ['told 450 at RCPT', toRandom('450 4.2.0 Greylisted')],
    ['told nothing', toRandom(null)],
    [
      'not let in',
      {
        connect: () => {
          throw new Error('refused')
        },
      },
    ],
  ])('stay accepted and untested when the egress is %s', async (_, script) => {
    const home = createTestProber(script)
    const walk = await home.run(accepted(people(3)))
    expect(walk.told).toHaveLength(3)
    for (const { probed } of walk.told) {
      expect(probed).toMatchObject({ answer: { kind: 'accepted', reply: REPLY }, catchAll: null })
    }
    // This does not count as a successful session.
    expect(home.recipients().filter(to => !isRandomRecipient(to))).toEqual([])
  })

  test('stay accepted without a probe during a pause', async () => {
    const home = createTestProber(() => undefined)
    home.prober.rateController('mx.test').throttled(null)
    const walk = await home.run(accepted(people(2)))
    expect(walk.told.map(({ probed }) => probed.asked)).toEqual([false, false])
    expect(walk.told.map(({ probed }) => probed.answer.kind)).toEqual(['accepted', 'accepted'])
    expect(home.mx.dialled).toEqual([])
  })

  test('still throttle the operator on a 421 to the random recipient', async () => {
    const home = createTestProber(toRandom('421 4.7.0 Slow down'))
    await home.run(accepted(people(2)))
    expect(home.prober.rateController('mx.test').readyInMs).toBeGreaterThan(ROW.sessionsPerSecond)
    expect(home.mx.dialled).toHaveLength(1)
  })
})
