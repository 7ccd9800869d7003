import { describe, expect, test } from 'vitest'
import { MINUTE, SECOND, sleep } from '../../src/platform/clock.ts'
import { createTestEngine } from '../support/engine.ts'
import type { MxScript } from '../support/mx.ts'
import { answerRcpt, isMissing, isRcpt, usersAndGone } from '../support/recipients.ts'
import type { ZoneEntry } from '../support/zone.ts'

const DELAY_MS = 90 * SECOND
const ADDRESSES = usersAndGone(60)

type Wait = (delayMs: number) => Promise<void>

/** Creates an engine; `script` gets a function that waits in its time. */
function createSlowEngine(script: (wait: Wait) => MxScript, zone: Record<string, ZoneEntry> = {}) {
  let wait: Wait = async () => {}
  const home = createTestEngine({ script: script(delayMs => wait(delayMs)), zone })
  wait = delayMs => sleep(home.clock, delayMs)
  return home
}

/** Verifies the list, and returns its reasons, its time and its number of connections. */
async function verifyList({ many, clock, mx }: ReturnType<typeof createTestEngine>) {
  const startedAt = clock.now()
  const dialled = mx.dialled.length
  const reasons = (await many(ADDRESSES)).map(({ verdict }) => verdict.reason)
  const count = (reason: string) => reasons.filter(one => one === reason).length
  return {
    accepted: count('accepted_email'),
    rejected: count('rejected_email'),
    timeouts: count('timeout'),
    minutes: (clock.now() - startedAt) / MINUTE,
    connections: mx.dialled.length - dialled,
  }
}

/** A server that delays its greeting. */
const greetsLate = (delayMs: number) => (wait: Wait) =>
  ({
    greeting: ({ say }) => {
      wait(delayMs).then(() => say('220 mx.a.test ESMTP'))
      return null
    },
    answer: answerRcpt,
  }) satisfies MxScript

/** A server that delays its replies to some commands. */
const repliesLate = (isDelayed: (line: string) => boolean) => (wait: Wait) =>
  ({
    answer: async line => {
      if (isDelayed(line)) await wait(DELAY_MS)
      return answerRcpt(line)
    },
  }) satisfies MxScript

describe('a list waits for a server that delays by 90 seconds', () => {
  test.each([
    ['its greeting', greetsLate(DELAY_MS), 4],
    ['EHLO', repliesLate(line => line.startsWith('EHLO')), 4],
    ['unknown recipients', repliesLate(isMissing), 14],
    ['each recipient', repliesLate(isRcpt), 70],
    ['each command', repliesLate(() => true), 75],
  ])('%s', async (_, script, minutesMax) => {
    const { minutes, connections, ...results } = await verifyList(createSlowEngine(script))
    expect(results).toEqual({ accepted: 48, rejected: 12, timeouts: 0 })
    expect(connections).toBeLessThanOrEqual(5)
    expect(minutes).toBeLessThanOrEqual(minutesMax)
  })
})

test.each<[string, MxScript]>([
  ['the greeting', { greeting: null }],
  ['EHLO', { answer: line => (line.startsWith('EHLO') ? null : undefined) }],
])('a list waits for a silent server once: %s', async (_, script) => {
  const { timeouts, minutes, connections } = await verifyList(createSlowEngine(() => script))
  expect({ timeouts, connections }).toEqual({ timeouts: 60, connections: 3 })
  // Two minutes, and half a minute of the second connection.
  expect(minutes).toBeLessThan(2.6)
})

test('a list no longer waits for an exchanger that is silent while another one answers', async () => {
  const zone = {
    'a.test': {
      MX: [
        [10, 'mx1.a.test'],
        [20, 'mx2.a.test'],
      ],
    },
    'mx1.a.test': { A: ['192.0.2.1'] },
    'mx2.a.test': { A: ['192.0.2.2'] },
  } satisfies Record<string, ZoneEntry>
  const silent = '192.0.2.1'
  const home = createSlowEngine(
    () => ({
      greeting: ({ to }) => (to.ip === silent ? null : undefined),
      answer: answerRcpt,
    }),
    zone,
  )
  const many = await home.many([...ADDRESSES, ...ADDRESSES.map(address => `x${address}`)])
  expect(many.filter(({ verdict }) => verdict.reason === 'timeout')).toEqual([])
  expect(home.mx.dialled.filter(({ ip }) => ip === silent).length).toBeLessThan(4)
})

test('single verifications that had no time for a slow server do not make a list give up', async () => {
  const home = createSlowEngine(greetsLate(25 * SECOND))
  const singles = ['ann', 'bob', 'eve'].map(name => home.engine.verify(`${name}@a.test`))
  const reasons = (await home.settled(Promise.all(singles))).map(({ verdict }) => verdict.reason)
  expect(new Set(reasons)).toEqual(new Set(['timeout']))
  const { accepted, rejected } = await verifyList(home)
  expect({ accepted, rejected }).toEqual({ accepted: 48, rejected: 12 })
})
