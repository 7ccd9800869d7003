import { describe, expect, test } from 'vitest'
import { HOUR, MINUTE } from '../../../src/platform/clock.ts'
import { stay } from '../../support/mx.ts'
import { ask, createTestProber, people, sorted } from '../../support/prober.ts'
import { knows } from '../../support/recipients.ts'
import { startNow } from '../../support/start-now.ts'
import { drainEventLoop } from '../../support/wait.ts'

const ZONE = { 'mx1.test': { A: ['192.0.2.1'] }, 'mx2.test': { A: ['192.0.2.2'] } }

describe('probing', () => {
  test('runs one MX group after another, with one connection at a time', async () => {
    let most = 0
    const home = createTestProber(
      {
        answer: knows(),
        connect: () => {
          most = Math.max(most, home.mx.sessions.filter(({ closed }) => !closed).length)
        },
      },
      { zone: ZONE },
    )
    const walk = await home.run([
      ask('a@one.test', ['mx1.test']),
      ask('b@two.test', ['mx2.test']),
      ask('c@one.test', ['mx1.test']),
    ])
    expect(home.mx.dialled.map(({ host }) => host)).toEqual(['mx1.test', 'mx2.test'])
    expect(most).toBe(0)
    expect(sorted(walk.told.map(({ email }) => email))).toEqual([
      'a@one.test',
      'b@two.test',
      'c@one.test',
    ])
  })

  test('resolves at the last answer, while the connection holds its permit until it is closed', async () => {
    const home = createTestProber(
      (line, session) => (line === 'QUIT' ? stay(session) : knows()(line, session)),
      { row: { sessionsMax: 1 } },
    )
    const first = home.begin(['ann@a.test'])
    await drainEventLoop()
    expect(first.answered).toBe(true)
    expect(first.finished).toBe(false)
    const second = home.begin(['bob@a.test'])
    await drainEventLoop()
    expect(second.told).toEqual([])
    expect(home.mx.sessions).toHaveLength(1)
    // The server does not close, so the wait for it ends after a timeout.
    await second.end()
    expect(first.finished).toBe(true)
    expect(home.mx.sessions).toHaveLength(2)
  })

  test('without targets dials no host', async () => {
    const home = createTestProber(knows())
    expect((await home.run([])).told).toEqual([])
    expect(home.mx.dialled).toEqual([])
  })

  test('answers a repeated address twice', async () => {
    const home = createTestProber(knows())
    expect((await home.run(['ann@a.test', 'ann@a.test'])).told).toHaveLength(2)
  })

  test('limits the connections to an operator over all calls', async () => {
    let most = 0
    const home = createTestProber(
      (line, session) => {
        most = Math.max(most, home.mx.sessions.filter(({ closed }) => !closed).length)
        return knows()(line, session)
      },
      { row: { sessionsMax: 2, sessionsPerSecond: 100 } },
    )
    const walks = people(6).map(email => home.begin([email]))
    for (const walk of walks) await walk.end()
    expect(most).toBe(2)
  })

  test('shares one rate controller per operator', () => {
    const { prober } = createTestProber(knows())
    expect(prober.rateController('a.test')).toBe(prober.rateController('a.test'))
    expect(prober.rateController('a.test')).not.toBe(prober.rateController('b.test'))
  })

  test('keeps the rate controller longer than any pause', async () => {
    const { prober, clock } = createTestProber(knows())
    const pace = prober.rateController('a.test')
    pace.throttled(24 * HOUR)
    await clock.advance(66 * MINUTE)
    expect(prober.rateController('a.test')).toBe(pace)
    expect(startNow(prober.rateController('a.test'))).toMatchObject({ paused: true })
    await clock.advance(3 * HOUR)
    expect(prober.rateController('a.test')).not.toBe(pace)
  })

  test('names its egress', () => {
    expect(createTestProber(knows()).prober.egressName).toBe('default')
  })
})
