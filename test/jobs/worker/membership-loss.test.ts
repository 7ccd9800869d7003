import { describe, expect, onTestFinished, test } from 'vitest'
import { deregister, register } from '../../../src/cluster/members.ts'
import { readJob } from '../../../src/jobs/job-store.ts'
import { releaseClaims } from '../../../src/jobs/member-claims.ts'
import { SECOND } from '../../../src/platform/clock.ts'
import { silentLog } from '../../../src/platform/log.ts'
import { createMemoryQueue } from '../../../src/queue/memory-queue.ts'
import type { Handler, Queue } from '../../../src/queue/queue.ts'
import { isRandomRecipient, toRecipients } from '../../support/engine.ts'
import { settled } from '../../support/job.ts'
import { createTestWorker } from '../../support/worker.ts'

const script = toRecipients(to =>
  isRandomRecipient(to) ? '550 5.1.1 No such user' : '250 2.1.5 Ok',
)
const users = (count: number) => Array.from({ length: count }, (_, n) => `u${n}@a.test`)

/** Starts a worker as a member of a cluster, on a queue whose leases can be lost. */
async function member(sessions: { silent: number }) {
  const leases = new Set<AbortController>()
  const signals = {
    calls: new Set<() => void>(),
    silentCalls: new Set<() => void>(),
    /** Aborts all leases that are held now. */
    loseLeases() {
      for (const lease of leases) lease.abort()
    },
  }
  const cluster = {
    id: 'mem_1',
    onLost(call: () => void) {
      signals.calls.add(call)
      return () => void signals.calls.delete(call)
    },
    onSilent(call: () => void) {
      signals.silentCalls.add(call)
      return () => void signals.silentCalls.delete(call)
    },
  }
  let session = 0
  const fixture = await createTestWorker({
    script: {
      greeting: () => (session++ < sessions.silent ? null : '220 mx.a.test ESMTP'),
      answer: script,
    },
    flags: { greetingTimeoutMs: '60000' },
  })
  await fixture.worker.stop()
  const memory = createMemoryQueue(fixture.clock, silentLog)
  onTestFinished(() => memory.close())
  const queue: Queue = {
    ...memory,
    work(kind, handler, options) {
      const losableHandler: Handler = (key, { stopping }) => {
        const lost = new AbortController()
        leases.add(lost)
        const lease = { stopping, lost: lost.signal }
        return handler(key, lease).finally(() => leases.delete(lost))
      }
      return memory.work(kind, losableHandler, options)
    },
  }
  const own = { role: 'worker' as const, name: 'host:1', version: '0', egresses: ['default'] }
  const join = (id: string) => register(fixture.database, { ...own, id })
  await join(cluster.id)
  const worker = fixture.begin({ cluster, queue })
  const items = () =>
    fixture.database.db
      .selectFrom('item')
      .select(['state', 'holder'])
      .distinct()
      .orderBy('state')
      .execute()
  return { ...fixture, worker, cluster, signals, join, items }
}

describe('a session that lost its lease', () => {
  test('aborts at once and records nothing, and its items are probed again', async () => {
    const { submit, worker, pass, mx, items, signals, reasons } = await member({ silent: 1 })
    await submit('job_1', users(5))
    worker.take('job_1')
    await pass(6 * SECOND)
    expect(mx.sessions.map(({ closed }) => closed)).toEqual([false])
    expect(await items()).toEqual([{ state: 'probing', holder: 'mem_1' }])
    signals.loseLeases()
    await pass(100)
    expect(mx.sessions.map(({ closed }) => closed)).toEqual([true, true])
    expect(await items()).toEqual([{ state: 'done', holder: null }])
    expect(await reasons('job_1')).toEqual(Array(5).fill('accepted_email'))
  })
})

describe('a member with a heartbeat so old that it may expire', () => {
  test('aborts its sessions at once and continues under the same ID after the next heartbeat', async () => {
    const { submit, worker, pass, mx, items, signals, reasons } = await member({ silent: 1 })
    await submit('job_1', users(5))
    worker.take('job_1')
    await pass(6 * SECOND)
    expect(await items()).toEqual([{ state: 'probing', holder: 'mem_1' }])
    for (const call of signals.silentCalls) call()
    await pass(100)
    expect(mx.sessions[0]?.closed).toBe(true)
    await pass(3 * SECOND)
    expect(await reasons('job_1')).toEqual(Array(5).fill('accepted_email'))
    expect(await items()).toEqual([{ state: 'done', holder: null }])
  })
})

describe('a member that has expired', () => {
  test('probes nothing until it has a new ID, and then all items that it held', async () => {
    const fixture = await member({ silent: 1 })
    const { submit, worker, pass, mx, items, signals, cluster, database, join, reasons } = fixture
    await submit('job_1', users(5))
    worker.take('job_1')
    await pass(6 * SECOND)
    await deregister(database, 'mem_1', releaseClaims)
    for (const call of signals.calls) call()
    await pass(3 * SECOND)
    expect(mx.sessions.map(({ closed }) => closed)).toEqual([true])
    expect(await items()).toEqual([{ state: 'routed', holder: null }])
    cluster.id = 'mem_2'
    await join('mem_2')
    await pass(3 * SECOND)
    expect(await reasons('job_1')).toEqual(Array(5).fill('accepted_email'))
    expect(mx.sessions).toHaveLength(2)
  })
})

test('a stopped worker has no membership listeners', async () => {
  const { submit, worker, clock, pass, database, signals } = await member({ silent: 0 })
  await submit('job_1', users(30))
  worker.take('job_1')
  await pass(10 * SECOND)
  expect(await readJob(database, 'job_1')).toMatchObject({ state: 'completed', deliverable: 30 })
  expect([signals.calls.size, signals.silentCalls.size]).toEqual([1, 1])
  await settled(clock, worker.stop())
  expect([signals.calls.size, signals.silentCalls.size]).toEqual([0, 0])
})
