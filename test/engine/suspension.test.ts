import { describe, expect, test } from 'vitest'
import { MINUTE, SECOND } from '../../src/platform/clock.ts'
import { createTestEngine, reasonsOf } from '../support/engine.ts'
import type { MxScript, MxSession } from '../support/mx.ts'
import { refused } from '../support/mx.ts'
import { knows, users } from '../support/recipients.ts'
import { drainEventLoop } from '../support/wait.ts'

const PEOPLE = users(8)
const ACCEPTED = PEOPLE.map(text => `${text} accepted_email`)
/** Two connections serve the list at the same time. */
const TWO_CONNECTIONS = { sessionsPerOperator: 2, recipientsPerSession: 5 }
const polite = knows('ann', ...PEOPLE)
/** A server whose first connections get no reply to their recipients. */
const silentAtFirst: MxScript = {
  answer: (line, session) =>
    session.number < 2 && line.startsWith('RCPT') ? null : polite(line, session),
}

/** Runs until the first connection waits, suspends the process, and returns the results. */
async function runSuspended(
  run: (home: ReturnType<typeof createTestEngine>) => Promise<unknown>,
  o: {
    readonly options?: Parameters<typeof createTestEngine>[0]
    readonly suspendedMs: number
    readonly onResume?: (session: MxSession) => void
  },
) {
  const home = createTestEngine({ script: silentAtFirst, ...o.options })
  const running = run(home)
  await drainEventLoop()
  await home.clock.advance(200)
  await drainEventLoop()
  home.clock.stopProcess(o.suspendedMs)
  for (const session of home.mx.sessions) o.onResume?.(session)
  await home.settled(running)
  return { ...home, results: await running }
}

const collect =
  (...texts: string[]) =>
  async ({ engine }: ReturnType<typeof createTestEngine>) => {
    const all = []
    for await (const result of engine.verifyMany(texts)) all.push(result)
    return reasonsOf(all)
  }

describe('an address of a list whose probe failed while the process was suspended', () => {
  test.each<[string, { onResume?: (session: MxSession) => void }]>([
    ['because its time ran out', {}],
    ['because the server closed the connection', { onResume: session => session.hangUp() }],
    ['because the connection was reset', { onResume: session => session.reset() }],
  ])('is probed again: %s', async (_, more) => {
    const { results } = await runSuspended(collect(...PEOPLE), {
      suspendedMs: 5 * MINUTE,
      options: { engine: TWO_CONNECTIONS },
      ...more,
    })
    expect(results).toEqual(ACCEPTED)
  })

  test('is probed again if the connection was being opened, and its host does not count as down', async () => {
    let dials = 0
    const { results } = await runSuspended(collect(...PEOPLE), {
      suspendedMs: 5 * MINUTE,
      options: {
        dial: (mx, clock) => ({
          ...mx,
          async connect(to, signal) {
            if (dials++ >= 2) return mx.connect(to, signal)
            await new Promise(resolve => clock.after(9 * SECOND, () => resolve(null)))
            throw refused(to)
          },
        }),
        engine: TWO_CONNECTIONS,
        script: polite,
      },
    })
    expect(results).toEqual(ACCEPTED)
  })

  test('is looked up again if the DNS did not answer', async () => {
    let asked = 0
    const { results } = await runSuspended(collect('ann@a.test'), {
      suspendedMs: 5 * MINUTE,
      options: {
        script: polite,
        resolver: zone => ({
          resolve: (name, type, signal) =>
            type === 'MX' && asked++ === 0
              ? zone.resolve('silent.test', type, signal)
              : zone.resolve(name, type, signal),
        }),
        zone: { 'silent.test': 'never' },
      },
    })
    expect(results).toEqual(['ann@a.test accepted_email'])
  })

  test('keeps its result if the process was not suspended', async () => {
    const home = createTestEngine({
      script: { answer: line => (line.startsWith('RCPT') ? null : undefined) },
    })
    expect(reasonsOf(await home.many(['ann@a.test']))).toEqual(['ann@a.test timeout'])
  })
})

describe('a single verification whose probe failed while the process was suspended', () => {
  const engine = { deadlineMs: 30 * SECOND, replyTimeoutMs: 5 * SECOND }
  const verify = ({ engine }: ReturnType<typeof createTestEngine>) => engine.verify('ann@a.test')

  test('is probed again within its deadline', async () => {
    const { results } = await runSuspended(verify, {
      suspendedMs: 10 * SECOND,
      options: { engine },
    })
    expect(results).toMatchObject({ verdict: { reason: 'accepted_email' } })
  })

  test('ends as unknown after its deadline', async () => {
    const { results } = await runSuspended(verify, {
      suspendedMs: MINUTE,
      options: { engine, script: { greeting: null } },
    })
    expect(results).toMatchObject({ verdict: { reason: 'timeout', risk: 'unknown' } })
  })
})
