import { describe, expect, test } from 'vitest'
import { SECOND } from '../../src/platform/clock.ts'
import { createTestEngine, reasonsOf } from '../support/engine.ts'
import { knows, users } from '../support/recipients.ts'

type TestEngine = NonNullable<Parameters<typeof createTestEngine>[0]>

const PEOPLE = users(8)
const ACCEPTED = PEOPLE.map(text => `${text} accepted_email`)
/** Two connections serve the list at the same time. */
const TWO_CONNECTIONS = { sessionsPerOperator: 2, recipientsPerSession: 5 }

/** The dial of a process that has no free descriptor or port for its first `count` connections. */
const withoutFiles =
  (code: string, count: number): NonNullable<TestEngine['dial']> =>
  mx => {
    let dials = 0
    return {
      ...mx,
      async connect(to, signal) {
        if (dials++ >= count) return mx.connect(to, signal)
        const syscall = 'connect'
        throw Object.assign(new Error(`connect ${code} ${to.ip}:${to.port}`), { code, syscall })
      },
    }
  }

/** The same for the first `count` MX queries. */
const withoutQueries =
  (count: number): NonNullable<TestEngine['resolver']> =>
  zone => {
    let queries = 0
    return {
      async resolve(name, type, signal) {
        if (type !== 'MX' || queries++ >= count) return zone.resolve(name, type, signal)
        return { fault: 'timeout', isOurs: true }
      },
    }
  }

describe('an address of a list waits while no file descriptor or port is free', () => {
  test.each<[string, TestEngine]>([
    ['in the process, for a connection', { dial: withoutFiles('EMFILE', 10) }],
    ['in the system, for a connection', { dial: withoutFiles('ENFILE', 10) }],
    ['for a DNS query', { resolver: withoutQueries(10) }],
    ['no port', { dial: withoutFiles('EADDRNOTAVAIL', 10) }],
    ['no port at a source address', { dial: withoutFiles('EADDRINUSE', 10) }],
    ['no memory for a socket', { dial: withoutFiles('ENOBUFS', 10) }],
    ['a proxy that is as busy', { dial: withoutFiles('EPROXYFAULT', 10) }],
  ])('%s', async (_, options) => {
    const script = knows(...PEOPLE)
    const { many } = createTestEngine({ ...options, script, engine: TWO_CONNECTIONS })
    expect(reasonsOf(await many(PEOPLE))).toEqual(ACCEPTED)
  })

  test('even in a list that does not wait for servers', async () => {
    const { many } = createTestEngine({
      dial: withoutFiles('EMFILE', 10),
      script: knows(...PEOPLE),
    })
    expect(reasonsOf(await many(PEOPLE, { wait: false }))).toEqual(ACCEPTED)
  })
})

describe('a single verification without a free file descriptor', () => {
  const engine = { deadlineMs: 10 * SECOND }

  test.each<[string, TestEngine]>([
    ['for a connection', { dial: withoutFiles('EMFILE', 5) }],
    ['for a DNS query', { resolver: withoutQueries(5) }],
  ])('%s tries again within its deadline', async (_, options) => {
    const { reason } = createTestEngine({ ...options, engine })
    expect(await reason('ann@a.test')).toBe('accepted_email')
  })

  test('ends as unknown, with the cause, and the server does not count as down', async () => {
    const { verify, reason } = createTestEngine({ dial: withoutFiles('EMFILE', 100), engine })
    const { verdict, evidence } = await verify('ann@a.test')
    expect(verdict).toMatchObject({ reason: 'smtp_skipped', risk: 'unknown' })
    expect(evidence.answer).toMatchObject({ why: 'own-limit' })
    expect(await reason('bob@a.test')).toBe('accepted_email')
  })
})
