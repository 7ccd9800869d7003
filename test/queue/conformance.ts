import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Handler, Queue, Reschedule } from '../../src/queue/queue.ts'

/** A queue with its clock: a fake one, or the real one for a queue in a database. */
export type QueueBench = {
  readonly queue: Queue
  /** Long enough for a wrong start to happen: several polls. */
  readonly waitMs: number
  now(): number
  /** Advances the clock by `ms`. */
  pass(ms: number): Promise<void>
  /** Advances the clock until the event has happened. */
  until<T>(event: Promise<T>): Promise<T>
  dispose(): Promise<void>
}

/** The guarantees of every queue; each implementation runs this suite. */
export function queueConformance(name: string, makeQueue: () => Promise<QueueBench>): void {
  describe(`the queue ${name}`, () => {
    let bench: QueueBench
    let queue: Queue
    let recorders: RunRecorder[] = []
    const newRecorder = () => {
      const recorder = new RunRecorder()
      recorders.push(recorder)
      return recorder
    }

    beforeEach(async () => {
      bench = await makeQueue()
      queue = bench.queue
      recorders = []
    })

    afterEach(async () => {
      const closing = queue.close()
      for (const recorder of recorders) recorder.endAll()
      await bench.until(closing)
      await bench.dispose()
    })

    test('runs an enqueued task once and removes it', async () => {
      const recorder = newRecorder()
      queue.work('k', recorder.handler, { concurrency: 5 })
      await queue.put('k', 'a')
      await bench.until(recorder.started('a'))
      recorder.end('a', 'done')
      await bench.pass(bench.waitMs)
      expect(recorder.order).toEqual(['a'])
    })

    test('keeps tasks that are enqueued before a worker starts', async () => {
      const recorder = newRecorder()
      await queue.put('k', 'a')
      await bench.pass(bench.waitMs)
      queue.work('k', recorder.handler, { concurrency: 1 })
      await bench.until(recorder.started('a'))
    })

    test('does not enqueue a waiting key a second time', async () => {
      const recorder = newRecorder()
      for (let n = 0; n < 3; n++) await queue.put('k', 'a')
      queue.work('k', recorder.handler, { concurrency: 5 })
      await bench.until(recorder.started('a'))
      recorder.end('a', 'done')
      await bench.pass(bench.waitMs)
      expect(recorder.order).toEqual(['a'])
    })

    test('never runs a key twice at once, and runs it once more if it is enqueued while it runs', async () => {
      const recorder = newRecorder()
      queue.work('k', recorder.handler, { concurrency: 5 })
      await queue.put('k', 'a')
      await bench.until(recorder.started('a'))
      for (let n = 0; n < 3; n++) await queue.put('k', 'a')
      await bench.pass(bench.waitMs)
      expect(recorder.order).toEqual(['a'])
      recorder.end('a', 'done')
      await bench.until(recorder.started('a', 2))
      recorder.end('a', 'done')
      await bench.pass(bench.waitMs)
      expect(recorder.order).toEqual(['a', 'a'])
      expect(recorder.twiceAtOnce).toEqual([])
    })

    test('treats the same key of two kinds as two tasks', async () => {
      const [one, other] = [newRecorder(), newRecorder()]
      queue.work('k', one.handler, { concurrency: 1 })
      queue.work('l', other.handler, { concurrency: 1 })
      await queue.put('k', 'a')
      await queue.put('l', 'a')
      await bench.until(Promise.all([one.started('a'), other.started('a')]))
    })

    test('runs no task before it is due', async () => {
      const recorder = newRecorder()
      queue.work('k', recorder.handler, { concurrency: 5 })
      // The first one may take long, as it opens connections.
      await queue.put('k', 'first')
      await bench.until(recorder.started('first'))
      const dueAt = bench.now() + 2 * bench.waitMs
      await queue.put('k', 'later', dueAt)
      await queue.put('k', 'now')
      await bench.until(recorder.started('later'))
      expect(bench.now()).toBeGreaterThanOrEqual(dueAt)
      expect(recorder.order).toEqual(['first', 'now', 'later'])
    })

    test('uses the earlier of two due times of a key, in any order', async () => {
      const recorder = newRecorder()
      queue.work('k', recorder.handler, { concurrency: 5 })
      const [soon, late] = [bench.now() + bench.waitMs, bench.now() + 3_600_000]
      await queue.put('k', 'a', late)
      await queue.put('k', 'a', soon)
      await queue.put('k', 'b', soon)
      await queue.put('k', 'b', late)
      await bench.until(Promise.all([recorder.started('a'), recorder.started('b')]))
      expect(bench.now()).toBeGreaterThanOrEqual(soon)
      expect(bench.now()).toBeLessThan(late)
    })

    test('runs a task again at the time that its handler returns', async () => {
      const recorder = newRecorder()
      queue.work('k', recorder.handler, { concurrency: 1 })
      await queue.put('k', 'a')
      await bench.until(recorder.started('a'))
      const dueAt = bench.now() + 2 * bench.waitMs
      recorder.end('a', { dueAt })
      await bench.until(recorder.started('a', 2))
      expect(bench.now()).toBeGreaterThanOrEqual(dueAt)
    })

    test('uses the earlier of the time a handler returns and that of a concurrent put', async () => {
      const recorder = newRecorder()
      queue.work('k', recorder.handler, { concurrency: 1 })
      await queue.put('k', 'a')
      await bench.until(recorder.started('a'))
      const late = bench.now() + 3_600_000
      await queue.put('k', 'a')
      recorder.end('a', { dueAt: late })
      await bench.until(recorder.started('a', 2))
      expect(bench.now()).toBeLessThan(late)
    })

    test('respects the concurrency limit and runs all tasks', async () => {
      const recorder = newRecorder()
      const keys = Array.from({ length: 10 }, (_, n) => `key${n}`)
      for (const key of keys) await queue.put('k', key)
      queue.work('k', recorder.handler, { concurrency: 3 })
      for (const [n, key] of keys.entries()) {
        await bench.until(recorder.count(Math.min(n + 3, keys.length)))
        await bench.pass(bench.waitMs / 10)
        expect(recorder.runningMax).toBe(3)
        recorder.end(key, 'done')
      }
    })

    test('runs tasks in the order in which they were enqueued', async () => {
      const recorder = newRecorder()
      const keys = Array.from({ length: 8 }, (_, n) => `key${(n * 5) % 8}`)
      for (const key of keys) await queue.put('k', key)
      queue.work('k', recorder.handler, { concurrency: 1 })
      for (const key of keys) {
        await bench.until(recorder.started(key))
        recorder.end(key, 'done')
      }
      expect(recorder.order).toEqual(keys)
    })

    test('runs each of many keys enqueued at once exactly once', async () => {
      const recorder = newRecorder()
      const keys = Array.from({ length: 30 }, (_, n) => `key${n}`)
      await queue.put('k', 'key3')
      await queue.putAll('k', [...keys, 'key5'])
      await queue.putAll('k', [])
      queue.work('k', recorder.handler, { concurrency: 50 })
      await bench.until(recorder.count(30))
      for (const key of keys) recorder.end(key, 'done')
      await bench.pass(bench.waitMs)
      expect(recorder.order.toSorted()).toEqual(keys.toSorted())
    })

    test('keeps the earlier time of waiting keys when many are enqueued with a time', async () => {
      const recorder = newRecorder()
      const [soon, late] = [bench.now() + bench.waitMs, bench.now() + 3_600_000]
      await queue.put('k', 'a', soon)
      await queue.put('k', 'b', late)
      await queue.putAll('k', ['a', 'b', 'c'], late)
      await queue.putAll('k', ['b'], soon)
      queue.work('k', recorder.handler, { concurrency: 5 })
      await bench.until(Promise.all([recorder.started('a'), recorder.started('b')]))
      await bench.pass(bench.waitMs)
      expect(recorder.order.toSorted()).toEqual(['a', 'b'])
      expect(bench.now()).toBeGreaterThanOrEqual(soon)
    })

    test('runs a task that was due in an hour at once when it is enqueued as due now', async () => {
      const recorder = newRecorder()
      queue.work('k', recorder.handler, { concurrency: 1 })
      await queue.put('k', 'a', bench.now() + 3_600_000)
      await queue.put('k', 'a')
      await bench.until(recorder.started('a'))
    })

    test('preserves keys with any characters', async () => {
      const recorder = newRecorder()
      const keys = [
        'google.com|a#3',
        ' ',
        'ü“\u{1f600}',
        `'"\\%_;--`,
        '\0',
        '\ud800',
        'x'.repeat(300),
      ]
      const kinds = ['k', 'probe/egress a', 'probe/ä_#']
      for (const kind of kinds) {
        await queue.putAll(kind, keys)
        queue.work(kind, (key, lease) => recorder.handler(`${kind}: ${key}`, lease), {
          concurrency: 9,
        })
      }
      await bench.until(recorder.count(keys.length * kinds.length))
      const wanted = kinds.flatMap(kind => keys.map(key => `${kind}: ${key}`))
      expect(recorder.order.toSorted()).toEqual(wanted.toSorted())
    })

    test('runs a task that is due again at once after those that wait', async () => {
      const recorder = newRecorder()
      for (const key of ['a', 'b', 'c']) await queue.put('k', key)
      queue.work('k', recorder.handler, { concurrency: 1 })
      for (const key of ['a', 'b', 'c', 'a']) {
        await bench.until(recorder.started(key, key === 'a' && recorder.order.length > 2 ? 2 : 1))
        recorder.end(key, { dueAt: bench.now() })
      }
      await bench.until(recorder.count(5))
      expect(recorder.order).toEqual(['a', 'b', 'c', 'a', 'b'])
    })

    test('runs other tasks while a failed one waits', async () => {
      const recorder = newRecorder()
      for (const key of ['a', 'b', 'c']) await queue.put('k', key)
      queue.work('k', recorder.handler, { concurrency: 1 })
      await bench.until(recorder.started('a'))
      recorder.fail('a')
      for (const key of ['b', 'c']) {
        await bench.until(recorder.started(key))
        recorder.end(key, 'done')
      }
      await bench.until(recorder.started('a', 2))
      expect(recorder.order).toEqual(['a', 'b', 'c', 'a'])
    })

    test('does not abort the lease of a task without competition', async () => {
      let lost: boolean | null = null
      const recorder = newRecorder()
      queue.work(
        'k',
        async (key, lease) => {
          const next = await recorder.handler(key, lease)
          lost = lease.lost.aborted
          return next
        },
        { concurrency: 1 },
      )
      await queue.put('k', 'a')
      await bench.until(recorder.started('a'))
      await bench.pass(bench.waitMs)
      recorder.end('a', 'done')
      await bench.pass(bench.waitMs)
      expect(lost).toBe(false)
    })

    test('ignores a put after the close', async () => {
      const recorder = newRecorder()
      queue.work('k', recorder.handler, { concurrency: 1 })
      await bench.until(queue.close())
      await queue.put('k', 'a')
      await queue.putAll('l', ['a', 'b'])
      await bench.pass(bench.waitMs)
      expect(recorder.order).toEqual([])
    })

    test('retries a task whose handler throws', async () => {
      const recorder = newRecorder()
      queue.work('k', recorder.handler, { concurrency: 1 })
      await queue.put('k', 'a')
      await bench.until(recorder.started('a'))
      recorder.fail('a')
      await bench.until(recorder.started('a', 2))
      recorder.end('a', 'done')
      await bench.pass(bench.waitMs)
      expect(recorder.order).toEqual(['a', 'a'])
    })

    test('signals running tasks on stop, waits for them, and claims no new ones', async () => {
      const recorder = newRecorder()
      const worker = queue.work('k', recorder.handler, { concurrency: 1 })
      await queue.put('k', 'a')
      await queue.put('k', 'b')
      await bench.until(recorder.started('a'))
      let stopped = false
      const stopping = worker.stop().then(() => {
        stopped = true
      })
      await bench.pass(bench.waitMs)
      expect({ told: recorder.told, stopped }).toEqual({ told: ['a'], stopped: false })
      recorder.end('a', { dueAt: bench.now() })
      await bench.until(stopping)
      await queue.put('k', 'c')
      await bench.pass(2 * bench.waitMs)
      expect(recorder.order).toEqual(['a'])
    })

    test('can be stopped twice, and before any task ran', async () => {
      const recorder = newRecorder()
      const worker = queue.work('k', recorder.handler, { concurrency: 1 })
      await bench.until(Promise.all([worker.stop(), worker.stop()]))
      await bench.until(worker.stop())
      await bench.until(queue.close())
      await bench.until(queue.close())
      expect(recorder.order).toEqual([])
    })

    test('stops the workers of all kinds on close', async () => {
      const [one, other] = [newRecorder(), newRecorder()]
      queue.work('k', one.handler, { concurrency: 1 })
      queue.work('l', other.handler, { concurrency: 1 })
      await queue.put('k', 'a')
      await queue.put('l', 'b')
      await bench.until(Promise.all([one.started('a'), other.started('b')]))
      const closing = queue.close()
      await bench.pass(bench.waitMs)
      expect([...one.told, ...other.told]).toEqual(['a', 'b'])
      one.end('a', 'done')
      other.end('b', 'done')
      await bench.until(closing)
    })
  })
}

/** A handler that records its runs, which last until the test ends them. */
export class RunRecorder {
  readonly order: string[] = []
  readonly twiceAtOnce: string[] = []
  /** Keys that were running when their leases signaled the stop. */
  readonly told: string[] = []
  runningMax = 0
  readonly #running = new Map<string, { end(next: Reschedule): void; fail(error: Error): void }>()
  #watchers: (() => void)[] = []
  #isDone = false

  readonly handler: Handler = (key, { stopping }) => {
    if (this.#running.has(key)) this.twiceAtOnce.push(key)
    this.order.push(key)
    stopping.addEventListener('abort', () => this.#running.has(key) && this.told.push(key))
    if (this.#isDone) return Promise.resolve('done')
    const run = new Promise<Reschedule>((end, fail) => this.#running.set(key, { end, fail }))
    this.runningMax = Math.max(this.runningMax, this.#running.size)
    for (const check of [...this.#watchers]) check()
    return run
  }

  end(key: string, next: Reschedule): void {
    this.#take(key).end(next)
  }

  fail(key: string): void {
    this.#take(key).fail(new Error('the handler failed'))
  }

  /** Ends all runs, and all later ones at once. */
  endAll(): void {
    this.#isDone = true
    for (const key of this.running) this.end(key, 'done')
  }

  /** Resolves once the key has started for the `times`-th time. */
  started(key: string, times = 1): Promise<void> {
    return this.#when(() => this.order.filter(one => one === key).length >= times)
  }

  /** Resolves once this number of runs has started in total. */
  count(runs: number): Promise<void> {
    return this.#when(() => this.order.length >= runs)
  }

  get running(): string[] {
    return [...this.#running.keys()]
  }

  #take(key: string) {
    const run = this.#running.get(key)
    if (run === undefined) throw new Error(`${key} does not run`)
    this.#running.delete(key)
    return run
  }

  #when(holds: () => boolean): Promise<void> {
    return new Promise(resolve => {
      const check = () => {
        if (!holds()) return
        this.#watchers = this.#watchers.filter(other => other !== check)
        resolve()
      }
      this.#watchers.push(check)
      check()
    })
  }
}
