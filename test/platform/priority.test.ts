import { describe, expect, test } from 'vitest'
import { type BackgroundWork, type LoopTimes, Priority } from '../../src/platform/priority.ts'
import { fakeClock } from '../support/clock.ts'
import { drainEventLoop } from '../support/wait.ts'

/** A Priority with a simulated event loop load. */
function loop() {
  const clock = fakeClock()
  const times = { active: 0, idle: 0 }
  const priority = new Priority(clock, (): LoopTimes => ({ ...times }))
  const started: string[] = []
  const ends: (() => void)[] = []
  return {
    clock,
    priority,
    started,
    ends,
    /** Asks to start work on `rows` rows; a probe has as many recipients. */
    ask(work: BackgroundWork, name: string = work, rows = 25) {
      const start =
        work === 'probe'
          ? priority.startProbe(rows).then(end => void ends.push(end))
          : priority.yieldToRequests(work, rows)
      void start.then(() => started.push(name))
    },
    /** Busy time, ms; the rest was idle. */
    async pass(ms: number, busyMs: number) {
      times.active += busyMs
      times.idle += ms - busyMs
      await clock.advance(ms)
    },
  }
}

describe('background work', () => {
  test('starts in the next turn of the event loop without requests', async () => {
    const { ask, started } = loop()
    ask('route')
    ask('import')
    expect(started).toEqual([])
    await drainEventLoop()
    expect(started).toEqual(['route', 'import'])
  })

  test('yields to an import, which yields only to requests', async () => {
    const { ask, pass, started } = loop()
    ask('import')
    await drainEventLoop()
    for (const work of ['route', 'import', 'route', 'import'] as const) ask(work)
    await drainEventLoop()
    expect(started.toSorted()).toEqual(['import', 'import', 'import', 'route'])
    await pass(29, 29)
    expect(started).toHaveLength(4)
    await pass(1, 1)
    await drainEventLoop()
    expect(started.at(-1)).toBe('route')
  })

  test('waits for the end of a request, and until the event loop is half idle', async () => {
    const { ask, pass, priority, started } = loop()
    const endRequest = priority.startRequest()
    ask('import', 'first')
    await drainEventLoop()
    expect(started).toEqual(['first'])
    ask('import', 'second')
    await drainEventLoop()
    await pass(10, 0)
    expect(started).toEqual(['first'])
    endRequest()
    await pass(12, 12)
    expect(started).toEqual(['first'])
    await pass(2, 0)
    expect(started).toEqual(['first', 'second'])
  })

  test('does not wait for a request that waits for a mail server', async () => {
    const { ask, pass, priority, started } = loop()
    priority.startRequest()
    await pass(100, 100)
    ask('import', 'first')
    await drainEventLoop()
    ask('import', 'second')
    await drainEventLoop()
    await pass(10, 6)
    expect(started).toEqual(['first'])
    await pass(2, 0)
    expect(started).toEqual(['first', 'second'])
  })

  test('continues under constant load, one unit per 30 ms', async () => {
    const { ask, pass, priority, started } = loop()
    priority.startRequest()
    await pass(100, 100)
    for (let n = 0; n < 4; n++) ask('probe', `${n}`)
    await drainEventLoop()
    expect(started).toEqual(['0'])
    await pass(29, 29)
    expect(started).toEqual(['0'])
    await pass(1, 1)
    expect(started).toEqual(['0', '1'])
    await pass(30, 30)
    expect(started).toEqual(['0', '1', '2'])
  })

  test('is started round-robin by kind', async () => {
    const { ask, pass, priority, started } = loop()
    priority.startRequest()
    for (let n = 0; n < 3; n++) ask('probe')
    for (const work of ['route', 'import'] as const) ask(work)
    for (let n = 0; n < 5; n++) {
      await drainEventLoop()
      await pass(30, 30)
    }
    await drainEventLoop()
    expect(started).toEqual(['probe', 'route', 'import', 'probe', 'probe'])
  })

  test('of few rows starts together, so that short lists do not delay a long one', async () => {
    const { ask, pass, priority, started } = loop()
    priority.startRequest()
    await pass(100, 100)
    for (let n = 0; n < 30; n++) ask('route', 'short', 1)
    ask('route', 'long')
    await drainEventLoop()
    expect(started).toEqual(Array(25).fill('short'))
    await pass(30, 30)
    expect(started.slice(25)).toEqual([...Array(5).fill('short'), 'long'])
  })

  test('counts a connection as twelve rows', async () => {
    const { ask, pass, priority, started } = loop()
    priority.startRequest()
    await pass(100, 100)
    for (let n = 0; n < 3; n++) ask('probe', 'one recipient', 1)
    await drainEventLoop()
    expect(started).toHaveLength(2)
    await pass(30, 30)
    expect(started).toHaveLength(3)
  })

  test('yields for a second after the last request', async () => {
    const { ask, clock, pass, priority, started } = loop()
    const endRequest = priority.startRequest()
    endRequest()
    await clock.advance(999)
    ask('route', 'before')
    await drainEventLoop()
    ask('route', 'during')
    await drainEventLoop()
    expect(started).toEqual(['before'])
    await pass(1, 1)
    ask('route', 'after')
    await drainEventLoop()
    expect(started).toContain('after')
  })

  test('has more than eight probes in flight only while the event loop is idle', async () => {
    const { ask, ends, pass, started } = loop()
    for (let n = 0; n < 8 + 3; n++) ask('probe')
    await drainEventLoop()
    expect(started).toHaveLength(8)
    await pass(10, 10)
    expect(started).toHaveLength(8)
    await pass(1, 0)
    await drainEventLoop()
    expect(started).toHaveLength(8 + 1)
    for (const end of ends.splice(0, 2)) end()
    await pass(1, 1)
    await drainEventLoop()
    expect(started).toHaveLength(8 + 2)
  })

  test('starts without delay after stop()', async () => {
    const { ask, pass, priority, started } = loop()
    priority.startRequest()
    await pass(100, 100)
    for (let n = 0; n < 3; n++) ask('probe')
    await drainEventLoop()
    priority.stop()
    await pass(1, 1)
    await drainEventLoop()
    expect(started).toHaveLength(3)
  })
})
