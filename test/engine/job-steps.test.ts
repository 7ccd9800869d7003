import { describe, expect, test } from 'vitest'
import type { ProbeListSink } from '../../src/engine/engine.ts'
import type { Result } from '../../src/index.ts'
import { createTestEngine, reasonsOf } from '../support/engine.ts'
import { users } from '../support/recipients.ts'
import { drainEventLoop } from '../support/wait.ts'

const sinkTo = (results: Result[]): ProbeListSink => ({
  probed: (_, { result }) => results.push(result),
  later: ({ text }) => {
    throw new Error(`${text} is to be probed later`)
  },
})

describe('the two steps of a job', () => {
  test('route returns one independent answer for each text, in order', async () => {
    const { engine, settled } = createTestEngine({ zone: { 'broken.test': 'server' } })
    const texts = ['ann@a.test', 'nonsense', 'ann@broken.test', 'ann@a.test']
    const prepared = await settled(engine.route(texts))
    expect(
      prepared.map(one => ('result' in one ? one.result.verdict.reason : one.task.operator.name)),
    ).toEqual(['a.test', 'invalid_email', 'dns_error', 'a.test'])
  })

  test('routeOne does not wait for other addresses', async () => {
    const { engine } = createTestEngine({ zone: { 'silent.test': 'never' } })
    const silent = engine.routeOne('ann@silent.test')
    const other = engine.routeOne('ann@a.test')
    await drainEventLoop()
    expect('task' in (await other)).toBe(true)
    await engine.close()
    expect(await silent).toMatchObject({ result: { verdict: { reason: 'dns_error' } } })
  })

  test('resume rebuilds an item from its route, even in another process', async () => {
    const { engine, settled } = createTestEngine()
    const [one] = await settled(engine.route(['ann@a.test']))
    if (one === undefined || !('task' in one)) throw new Error('no task')
    const route = JSON.parse(JSON.stringify(one.task.route))
    const task = engine.resume('ann@a.test', route)
    if (task === null) throw new Error('no task')
    const results: Result[] = []
    const { signal } = new AbortController()
    const probing = engine.probe(task.operator, [task], sinkTo(results), { signal })
    await settled(probing)
    expect(reasonsOf(results)).toEqual(['ann@a.test accepted_email'])
  })

  test.each([{ blocked: ['a.test'] }, { disposable: ['a.test'] }, { spamTrap: ['ann@a.test'] }])(
    'resume returns null for an item that is now on %o, and nothing is probed',
    lists => {
      const { engine } = createTestEngine({ engine: { lists } })
      const route = { kind: 'implicit', host: 'a.test' } as const
      expect(engine.resume('ann@a.test', route)).toBeNull()
      expect(engine.resume('ann@b.test', route)).not.toBeNull()
    },
  )

  test('resume returns null if the exchanger belongs to a disposable service', () => {
    const { engine } = createTestEngine({ engine: { lists: { allow: ['b.test'] } } })
    const route = { kind: 'implicit', host: 'mx.mailinator.com' } as const
    expect(engine.resume('ann@a.test', route)).toBeNull()
    expect(engine.resume('ann@b.test', route)).not.toBeNull()
  })

  test('resume returns null for an invalid address, which has no route', () => {
    const { engine } = createTestEngine()
    expect(() => engine.resume('nonsense', { kind: 'implicit', host: 'a.test' })).toThrow(
      /no address/,
    )
  })

  test.each<
    [string, (services: { abort: AbortController; close: () => Promise<void> }) => unknown]
  >([
    ['an abort', ({ abort }) => abort.abort()],
    ['a close of the engine', ({ close }) => close()],
  ])('%s gives each task its one result, and closes the connection', async (_, end) => {
    const { engine, settled, mx } = createTestEngine({ script: { greeting: null } })
    const prepared = await settled(engine.route(users(5)))
    const tasks = prepared.flatMap(one => ('task' in one ? [one.task] : []))
    const [first] = tasks
    if (first === undefined) throw new Error('no task')
    const results: Result[] = []
    const abort = new AbortController()
    const { signal } = abort
    const probing = engine.probe(first.operator, tasks, sinkTo(results), { signal })
    await drainEventLoop()
    void end({ abort, close: () => engine.close() })
    await settled(probing)
    await drainEventLoop()
    expect(results.map(({ email }) => email).toSorted()).toEqual(users(5))
    expect(new Set(results.map(({ verdict }) => verdict.risk))).toEqual(new Set(['unknown']))
    expect(mx.sessions.map(({ closed }) => closed)).toEqual([true])
  })
})
