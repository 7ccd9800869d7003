import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { isStorageError } from '../../../src/db/database.ts'
import { SECOND, systemClock, yieldToEventLoop } from '../../../src/platform/clock.ts'
import { type Log, silentLog } from '../../../src/platform/log.ts'
import { RunRecorder } from '../../queue/conformance.ts'
import { shiftedClock } from '../../support/clock.ts'
import { cutProxy } from '../../support/cut-proxy.ts'
import { FAST_TIMINGS } from '../../support/fast-timings.ts'
import { recordingLog } from '../../support/log.ts'
import {
  emptyPostgres,
  entriesIn,
  loseHeartbeat,
  NO_POLLING,
  openQueue,
} from '../../support/pg-queue.ts'
import { ask } from '../../support/postgres-server.ts'
import { waitUntil } from '../../support/wait.ts'

/** Opens a queue that reaches an empty database through a proxy that can cut connections. */
async function openBehindProxy(log: Log = silentLog) {
  const url = await emptyPostgres()
  const proxy = await cutProxy(url)
  onTestFinished(() => proxy.close())
  return { url, proxy, queue: await openQueue(proxy.url, { log }) }
}

describe('the queue while PostgreSQL is unavailable', () => {
  test('work resumes after recovery without loss, and each outage is logged once with its end', async () => {
    const { log, lines } = recordingLog()
    const { url, proxy, queue } = await openBehindProxy(log)
    const done: string[] = []
    const handler = async (key: string) => {
      await yieldToEventLoop()
      done.push(key)
      return 'done' as const
    }
    queue.work('k', handler, { concurrency: 5 })
    const keys = Array.from({ length: 400 }, (_, n) => `key${n}`)
    await queue.putAll('k', keys)
    for (let outage = 1; outage <= 3; outage++) {
      await waitUntil(() => done.length >= outage * 80)
      proxy.refuse()
      await waitUntil(() => lines.length === outage * 2 - 1)
      proxy.accept()
      await waitUntil(() => lines.length === outage * 2)
    }
    // An entry whose claim got no answer stays claimed until its heartbeat expires.
    await waitUntil(async () => {
      const entries = await entriesIn(url)
      const isStuck = entries.every(({ state }) => state === 'active')
      if (isStuck) for (const { singleton_key } of entries) await loseHeartbeat(url, singleton_key)
      return entries.length === 0
    })
    // Entries that ran during a cut may run again: their end could not be written.
    expect(new Set(done).size).toBe(keys.length)
    expect(done.length - keys.length).toBeLessThanOrEqual(3 * 2 * 5)
    expect(lines.map(({ level }) => level)).toEqual(Array(3).fill(['error', 'info']).flat())
    for (const { level, message, fields } of lines) {
      if (level === 'info') expect(message).toBe('queue database available again')
      else expect(fields.error).toMatch(/connection reset|Connection terminated/)
    }
  })

  test('a lasting outage is logged again after a minute', async () => {
    const url = await emptyPostgres()
    const proxy = await cutProxy(url)
    onTestFinished(() => proxy.close())
    const shifted = shiftedClock(systemClock)
    let failures = 0
    const after: typeof shifted.after = (delayMs, callback) => {
      // This is the wait after a failed fetch.
      if (delayMs === FAST_TIMINGS.queue.retryMs) failures++
      return shifted.after(delayMs, callback)
    }
    const { log, lines } = recordingLog()
    const queue = await openQueue(proxy.url, { log, clock: { ...shifted, after } })
    queue.work('k', async () => 'done', { concurrency: 5 })
    await queue.put('k', 'key')
    proxy.refuse()
    await waitUntil(() => lines.length === 1)
    for (let passed = 0; passed < 50 * SECOND; passed += 10 * SECOND) {
      shifted.pass(10 * SECOND)
      const before = failures
      await waitUntil(() => failures > before)
    }
    expect(lines).toHaveLength(1)
    shifted.pass(10 * SECOND)
    await waitUntil(() => lines.length === 2)
    expect(lines[1]?.fields.repeated).toBeGreaterThanOrEqual(5)
    expect(lines.map(({ level }) => level)).toEqual(['error', 'error'])
    proxy.accept()
  })

  test('a put fails with a storage error and can be retried', async () => {
    const { url, proxy, queue } = await openBehindProxy()
    await queue.put('k', 'before')
    proxy.refuse()
    const errors: unknown[] = []
    await waitUntil(async () => {
      await queue.putAll('k', ['a', 'b']).catch(error => errors.push(error))
      return errors.length > 3
    })
    proxy.accept()
    expect(errors.filter(error => !isStorageError(error))).toEqual([])
    await waitUntil(() =>
      queue.put('k', 'after').then(
        () => true,
        () => false,
      ),
    )
    const keys = (await entriesIn(url)).map(entry => entry.singleton_key)
    expect(keys).toEqual(expect.arrayContaining(['before', 'after']))
  })

  test('connections that are cut one by one are replaced', async () => {
    const url = await emptyPostgres()
    const queue = await openQueue(url)
    const desk = new RunRecorder()
    queue.work('k', desk.handler, { concurrency: 5 })
    for (let round = 0; round < 5; round++) {
      await ask(
        url,
        `select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and application_name = 'ev queue'`,
      )
      await waitUntil(() =>
        queue.put('k', `key${round}`).then(
          () => true,
          () => false,
        ),
      )
      await desk.started(`key${round}`)
      desk.end(`key${round}`, 'done')
    }
    await waitUntil(async () => (await entriesIn(url)).length === 0)
  })

  test('a listening connection that is cut is replaced, and entries put meanwhile are found', async () => {
    const url = await emptyPostgres()
    const one = await openQueue(url)
    const other = await openQueue(url, { timings: NO_POLLING })
    const desk = new RunRecorder()
    other.work('k', desk.handler, { concurrency: 5 })
    await one.put('k', 'before')
    await desk.started('before')
    await ask(
      url,
      `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and query like 'listen %'`,
    )
    await one.put('k', 'meanwhile')
    await desk.started('meanwhile')
    await one.put('k', 'after')
    await desk.started('after')
    desk.endAll()
  })

  test('at most three connections are open', async () => {
    const url = await emptyPostgres()
    const queue = await openQueue(url)
    const kinds = Array.from({ length: 8 }, (_, n) => `kind${n}`)
    for (const kind of kinds) queue.work(kind, async () => 'done', { concurrency: 50 })
    const keys = Array.from({ length: 200 }, (_, n) => `key${n}`)
    let connectionsMax = 0
    for (let round = 0; round < 5; round++) {
      const puts = Promise.all(kinds.map(kind => queue.putAll(kind, keys)))
      const [row] = await ask<{ count: string }>(
        url,
        `select count(*) from pg_stat_activity
        where datname = current_database() and application_name = 'ev queue'`,
      )
      connectionsMax = Math.max(connectionsMax, Number(row?.count))
      await puts
    }
    expect(connectionsMax).toBe(3)
  })

  test('opening the queue without its database fails with a storage error', async () => {
    const gone = `${inject('postgres')}no_such_database`
    await expect(openQueue(gone)).rejects.toMatchObject({ code: '3D000' })
    const closed = 'postgres://ev@127.0.0.1:1/ev'
    const failure = await openQueue(closed).catch((error: unknown) => error)
    expect(isStorageError(failure)).toBe(true)
  })
})

test('tasks stored before the clock of the server was set back run at once', async () => {
  const url = await emptyPostgres()
  const queue = await openQueue(url)
  await queue.putAll('k', ['a', 'b'])
  await ask(url, `update ev_boss.job set start_after = now() + interval '1 hour'`)
  const done: string[] = []
  const handler = async (key: string) => {
    done.push(key)
    return 'done' as const
  }
  queue.work('k', handler, { concurrency: 5 })
  await waitUntil(() => done.length === 2)
  expect(done.toSorted()).toEqual(['a', 'b'])
})
