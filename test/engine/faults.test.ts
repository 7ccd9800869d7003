import { describe, expect, test } from 'vitest'
import { CatchAllCache } from '../../src/engine/probe/catch-all.ts'
import { EgressPool } from '../../src/engine/probe/egress-pool.ts'
import type { ProbeTask } from '../../src/engine/probe/prepare.ts'
import { RateController } from '../../src/engine/rate-control/controller.ts'
import { DestinationLimits } from '../../src/engine/rate-control/destination-limits.ts'
import { processCache, type ResultCache } from '../../src/engine/result-cache.ts'
import type { EngineOptions } from '../../src/index.ts'
import { fakeClock } from '../support/clock.ts'
import { createTestEngine, reasonsOf } from '../support/engine.ts'
import { throwOnce, variedList } from '../support/faults.ts'
import { knows, users } from '../support/recipients.ts'
import { drainEventLoop } from '../support/wait.ts'

const LOOKUPS = ['primaryFor', 'ranked', 'limitsFor', 'prober', 'availableFor', 'mayAsk'] as const
const METHODS = [
  ...LOOKUPS.map(name => [name, EgressPool.prototype] as const),
  ['takesAny', EgressPool.prototype],
  ['isDeprioritised', EgressPool.prototype],
  ['uncertainForMs', EgressPool.prototype],
  ['start', RateController.prototype],
  ['succeeded', RateController.prototype],
  ['onReply', RateController.prototype],
  ['includes', DestinationLimits.prototype],
  ['start', DestinationLimits.prototype],
  ['get', CatchAllCache.prototype],
  ['set', CatchAllCache.prototype],
  ['acquire', CatchAllCache.prototype],
] as const

type TestEngine = Parameters<typeof createTestEngine>[0]

/** Verifies the varied list with an engine that `breakIt` has broken. */
async function expectResults(options: TestEngine = {}, breakIt = () => {}) {
  const { zone, expected, script } = variedList()
  const engine = { sessionsPerSecond: 2, ...options?.engine }
  const { many } = createTestEngine({ ...options, zone, script, engine })
  breakIt()
  const results = await many([...expected.keys()])
  expect(reasonsOf(results)).toEqual([...expected].map(one => one.join(' ')).toSorted())
}

describe('each address of a stream has its result although once throws', () => {
  test.each(METHODS)('%s', async (method, owner) => {
    let hasThrown = () => false
    await expectResults({}, () => {
      hasThrown = throwOnce(owner, method)
    })
    expect(hasThrown()).toBe(true)
  })

  test.each<[string, (fail: () => void) => TestEngine]>([
    ['the resolver', fail => ({ resolver: zone => failing(zone, ['resolve'], fail) })],
    ['the dial', fail => ({ dial: mx => failing(mx, ['connect'], fail) })],
    ['the cache, on a read', fail => ({ engine: cacheThat(fail, 'get') })],
    ['the cache, on a write', fail => ({ engine: cacheThat(fail, 'set') })],
  ])('%s', async (_, optionsFor) => {
    let isBroken = true
    const fail = () => {
      if (!isBroken) return
      isBroken = false
      throw new Error('broken')
    }
    await expectResults(optionsFor(fail))
    expect(isBroken).toBe(false)
  })

  test('the log, each time', async () => {
    const broken = () => {
      throw new Error('no space left')
    }
    await expectResults({
      engine: { log: { debug: broken, info: broken, warn: broken, error: broken } },
    })
  })
})

describe('an internal failure that stays', () => {
  test('becomes the result of its address only', async () => {
    const { many } = createTestEngine({
      resolver: zone => ({
        resolve(name, type, signal) {
          if (name === 'b.test') throw new Error('broken')
          return zone.resolve(name, type, signal)
        },
      }),
    })
    expect(reasonsOf(await many(['ann@a.test', 'ann@b.test']))).toEqual([
      'ann@a.test accepted_email',
      'ann@b.test unexpected_error',
    ])
  })

  test('of the selection of an egress ends the stream with an error that names it', async () => {
    const { engine, many } = createTestEngine()
    engine.egressPool.ranked = () => {
      throw new Error('no table')
    }
    await expect(many(['ann@a.test'])).rejects.toThrow('Selecting an egress failed: no table')
  })
})

describe('a method of the sink that throws ends the probe of a list with an error that names it', () => {
  const probe = async (broken: 'probed' | 'later' | 'returned') => {
    const people = users(60)
    const zone = Object.fromEntries(
      ['one', 'two', 'three'].flatMap(name => [
        [`${name}.test`, { MX: [[10, `mx.${name}.test`]] }],
        [`mx.${name}.test`, { A: ['192.0.2.80'] }],
      ]),
    )
    const home = createTestEngine({
      zone,
      script: knows(...people.filter((_, i) => i % 4 !== 3)),
      engine: {
        sessionsPerSecond: broken === 'later' ? 0.1 : 1_000,
        sessionsPerOperator: broken === 'later' ? 2 : 5,
        recipientsPerSession: 100,
      },
    })
    const texts =
      broken === 'later' ? ['one', 'two', 'three'].map(name => `ann@${name}.test`) : people
    const prepared = await home.engine.route(texts)
    const tasks = prepared.flatMap(one => ('task' in one ? [one.task] : []))
    const called: string[] = []
    const call = (name: string) => (_: ProbeTask | readonly ProbeTask[]) => {
      called.push(name)
      if (name === broken) throw new Error('no room')
    }
    const byOperator = Map.groupBy(tasks, ({ operator }) => operator.name)
    const probes = [...byOperator.values()].map(some =>
      home.engine.probe(
        (some[0] as ProbeTask).operator,
        some,
        { probed: call('probed'), later: call('later'), returned: call('returned') },
        { signal: new AbortController().signal },
      ),
    )
    const settled = await home.settled(Promise.allSettled(probes))
    await drainEventLoop()
    const errors = settled.flatMap(one => (one.status === 'rejected' ? [one.reason] : []))
    return { errors, called, closed: home.mx.sessions.every(({ closed }) => closed) }
  }

  test.each(['probed', 'later', 'returned'] as const)('%s', async name => {
    const { errors, called, closed } = await probe(name)
    expect(errors).toHaveLength(1)
    expect(errors[0]).toMatchObject({
      code: 'internal',
      message: `${name} of the sink of a probe failed: no room`,
    })
    expect(called.filter(one => one === name)).toHaveLength(1)
    // No other call of that probe follows, and its connection is closed.
    expect(closed).toBe(true)
  })
})

/** Returns `inner` with `fail` called before these methods. */
const failing = <T extends object>(inner: T, methods: readonly (keyof T)[], fail: () => void): T =>
  new Proxy(inner, {
    get(target, key) {
      const value = Reflect.get(target, key)
      if (!methods.includes(key as keyof T) || typeof value !== 'function') return value
      return (...given: unknown[]) => {
        fail()
        return value.apply(target, given)
      }
    },
  })

const cacheThat = (fail: () => void, method: keyof ResultCache): EngineOptions => ({
  resultCache: failing(processCache(fakeClock()), [method], fail),
})
