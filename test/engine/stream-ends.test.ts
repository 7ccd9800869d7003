import { describe, expect, test } from 'vitest'
import { createTestEngine } from '../support/engine.ts'
import { drainEventLoop } from '../support/wait.ts'

describe('an early end', () => {
  test('a break stops all work: connections, lookups and the wait for the source', async () => {
    async function* source() {
      yield* ['nonsense', 'ann@a.test', 'ann@silent.test']
      await new Promise(() => {})
    }
    let question: AbortSignal | undefined
    const { engine, mx, clock, zone } = createTestEngine({
      zone: { 'silent.test': 'never' },
      resolver: zone => ({
        resolve: (name, type, signal) => {
          if (name === 'silent.test') question = signal
          return zone.resolve(name, type, signal)
        },
      }),
      script: { greeting: null },
    })
    for await (const { email } of engine.verifyMany(source())) {
      expect(email).toBe('nonsense')
      await drainEventLoop()
      await clock.advance(200)
      await drainEventLoop()
      expect(mx.sessions.map(({ closed }) => closed)).toEqual([false])
      break
    }
    await drainEventLoop()
    expect(mx.sessions.map(({ closed }) => closed)).toEqual([true])
    expect(question?.aborted).toBe(true)
    const asked = zone.asked.length
    await clock.runAll()
    expect({
      asked: zone.asked.length,
      sessions: mx.sessions.length,
      pending: clock.pending,
    }).toEqual({ asked, sessions: 1, pending: 0 })
  })

  test('a break closes the source', async () => {
    const { engine } = createTestEngine()
    let closed = 0
    function* source() {
      try {
        for (let i = 0; ; i++) yield `nonsense ${i}`
      } finally {
        closed++
      }
    }
    for await (const _ of engine.verifyMany(source(), { windowMax: 10 })) break
    await drainEventLoop()
    expect(closed).toBe(1)
  })

  test('a source that fails to close breaks nothing', async () => {
    const { engine } = createTestEngine()
    const source: Iterable<string> = {
      [Symbol.iterator]: () => ({
        next: () => ({ done: false, value: 'nonsense' }),
        return: () => {
          throw new Error('will not')
        },
      }),
    }
    for await (const _ of engine.verifyMany(source, { windowMax: 10 })) break
    await drainEventLoop()
  })

  test('a source that throws: its earlier items have results, then the error follows', async () => {
    const { engine, settled } = createTestEngine()
    async function* source() {
      yield* ['ann@a.test', 'nobody@a.test', 'nonsense']
      throw new Error('the file ends here')
    }
    const emails: string[] = []
    const walk = async () => {
      for await (const { email } of engine.verifyMany(source())) emails.push(email)
    }
    await expect(settled(walk())).rejects.toThrow('the file ends here')
    expect(emails.toSorted()).toEqual(['ann@a.test', 'nobody@a.test', 'nonsense'])
  })

  test('a source that throws at once', async () => {
    const { many } = createTestEngine()
    const source: Iterable<string> = {
      [Symbol.iterator]: () => {
        throw new Error('no such file')
      },
    }
    await expect(many(source)).rejects.toThrow('no such file')
  })

  test('an abort ends it with the reason of the signal', async () => {
    const { engine, mx } = createTestEngine({ script: { greeting: null } })
    const abort = new AbortController()
    const walk = async () => {
      for await (const _ of engine.verifyMany(['ann@a.test'], { signal: abort.signal })) break
    }
    const walking = walk()
    await drainEventLoop()
    abort.abort(new Error('changed my mind'))
    await expect(walking).rejects.toThrow('changed my mind')
    await drainEventLoop()
    expect(mx.sessions.every(({ closed }) => closed)).toBe(true)
  })

  test('an aborted signal starts no probe', async () => {
    const { engine, zone } = createTestEngine()
    const signal = AbortSignal.abort(new Error('too late'))
    const walk = async () => {
      for await (const _ of engine.verifyMany(['ann@a.test'], { signal })) break
    }
    await expect(walk()).rejects.toThrow('too late')
    expect(zone.asked).toEqual([])
  })

  test('an engine that is closed ends its streams', async () => {
    const { engine, clock, mx } = createTestEngine({ script: { greeting: null } })
    const walk = async () => {
      for await (const _ of engine.verifyMany(['ann@a.test'])) break
    }
    const walking = walk()
    const failed = expect(walking).rejects.toMatchObject({ code: 'interrupted' })
    await drainEventLoop()
    await clock.advance(200)
    await drainEventLoop()
    await engine.close()
    await failed
    await drainEventLoop()
    expect(mx.sessions.map(({ closed }) => closed)).toEqual([true])
  })

  test('a stream that ended leaves no timer', async () => {
    const { many, clock } = createTestEngine()
    await many(['ann@a.test', 'nobody@a.test', 'nonsense'])
    await clock.advance(5_000)
    expect(clock.pending).toBe(0)
  })
})
