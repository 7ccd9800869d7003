import { describe, expect, test } from 'vitest'
import { deleteJob } from '../../../src/jobs/delete-job.ts'
import { cancelJob } from '../../../src/jobs/job-state.ts'
import { findJob, readJob } from '../../../src/jobs/job-store.ts'
import { MINUTE, SECOND, systemClock } from '../../../src/platform/clock.ts'
import { Priority } from '../../../src/platform/priority.ts'
import { isRandomRecipient, knows, toRecipients } from '../../support/engine.ts'
import { settled } from '../../support/job.ts'
import { recordingLog } from '../../support/log.ts'
import { drainEventLoop } from '../../support/wait.ts'
import { createTestWorker } from '../../support/worker.ts'

const OK = '250 2.1.5 Ok'
const UNKNOWN = '550 5.1.1 No such user'

const many = (count: number, domain: string, name = 'u') =>
  Array.from({ length: count }, (_, n) => `${name}${n}@${domain}`)

/** Accepts every recipient except random ones. */
const acceptsAll = toRecipients(to => (isRandomRecipient(to) ? UNKNOWN : OK))

const recipients = (lines: readonly string[]) =>
  lines
    .flatMap(line => /^RCPT TO:<(.*)>$/.exec(line)?.[1] ?? [])
    .filter(to => !isRandomRecipient(to))

describe('a worker with several jobs', () => {
  test('finishes each with its own results', async () => {
    const { worker, submit, finished, reasons, loggedErrors } = await createTestWorker({
      script: knows('ann'),
    })
    await submit('job_1', ['ann@a.test', 'gone@a.test', 'no address'])
    await submit('job_2', ['gone@a.test', 'ann@b.test'])
    await submit('job_3', [])
    for (const id of ['job_1', 'job_2', 'job_3', 'job_absent']) worker.take(id)
    expect(await finished('job_1', 'job_2', 'job_3')).toMatchObject([
      { state: 'completed', done: 3, deliverable: 1, undeliverable: 2 },
      { state: 'completed', done: 2, deliverable: 1, undeliverable: 1 },
      { state: 'completed', done: 0 },
    ])
    expect(await reasons('job_1')).toEqual(['accepted_email', 'rejected_email', 'invalid_email'])
    expect(await reasons('job_2')).toEqual(['rejected_email', 'accepted_email'])
    expect(loggedErrors).toEqual([])
    expect(worker.status()).toEqual({ jobs: 0, waiting: 0, running: 0 })
  })

  test('shares one connection among all of them', async () => {
    const { worker, submit, finished, mx } = await createTestWorker({
      script: acceptsAll,
      flags: { recipientsPerSession: '10', sessionsPerOperator: '1' },
    })
    await submit('job_1', many(40, 'a.test', 'large'))
    await submit('job_2', many(3, 'a.test', 'small'))
    worker.take('job_1')
    worker.take('job_2')
    await finished('job_1', 'job_2')
    const [first, second = []] = mx.sessions.map(({ lines }) => recipients(lines))
    // The random recipient is the tenth.
    expect(first).toHaveLength(9)
    const small = [...(first ?? []), ...second].filter(to => to.startsWith('small'))
    expect(small).toHaveLength(3)
    const lengths = mx.sessions.map(({ lines }) => recipients(lines).length)
    // 5 are enough, and a page of rows that arrives late may cost one more.
    expect(lengths.length).toBeLessThanOrEqual(6)
    expect(Math.max(...lengths)).toBe(10)
  })

  test('does not make a small job wait behind earlier large ones', async () => {
    const { worker, submit, finished, progress, pass } = await createTestWorker({
      script: acceptsAll,
      flags: { recipientsPerSession: '5', sessionsPerOperator: '1', sessionsPerSecond: '1' },
    })
    for (const id of ['job_1', 'job_2']) {
      await submit(id, many(200, 'a.test', id))
      worker.take(id)
    }
    await pass(10 * SECOND)
    await submit('job_3', many(3, 'a.test', 'small'))
    worker.take('job_3')
    await finished('job_3')
    const done = (id: string) => progress.findLast(job => job.id === id)?.done ?? 0
    expect(done('job_1') + done('job_2')).toBeLessThan(100)
    expect(Math.abs(done('job_1') - done('job_2'))).toBeLessThanOrEqual(10)
  })

  test('serves more jobs than fit in a connection round-robin', async () => {
    const { worker, submit, finished, mx } = await createTestWorker({
      script: acceptsAll,
      flags: { recipientsPerSession: '2', sessionsPerOperator: '1' },
    })
    const ids = Array.from({ length: 5 }, (_, n) => `job_${n}`)
    for (const id of ids) await submit(id, many(4, 'a.test', id))
    for (const id of ids) worker.take(id)
    await finished(...ids)
    const jobsBySession = mx.sessions.map(({ lines }) =>
      recipients(lines).map(to => to.slice(4, 5)),
    )
    // The first connection has a random recipient too.
    const served = jobsBySession.slice(0, 5).flat()
    expect(served).toHaveLength(9)
    for (const n of '01234') expect(served.filter(one => one === n).length).toBeGreaterThan(0)
  })

  test('never exceeds the connection limit of an operator with several jobs', async () => {
    let openMax = 0
    const { worker, submit, finished, mx } = await createTestWorker({
      script: {
        answer: acceptsAll,
        greeting() {
          openMax = Math.max(openMax, mx.sessions.filter(({ closed }) => !closed).length)
          return undefined
        },
      },
      flags: { recipientsPerSession: '3', sessionsPerOperator: '2' },
    })
    const ids = Array.from({ length: 6 }, (_, n) => `job_${n}`)
    for (const id of ids) await submit(id, many(10, 'a.test', id))
    for (const id of ids) worker.take(id)
    await finished(...ids)
    expect(openMax).toBe(2)
  })

  test('routes a small job at once while a large one is being routed', async () => {
    const { worker, submit, finished, reasons, progress } = await createTestWorker({
      script: knows(),
      deps: { priority: new Priority(systemClock) },
    })
    await submit(
      'job_1',
      Array.from({ length: 5_000 }, (_, n) => `no address ${n}`),
    )
    await submit('job_2', ['x', 'y', 'z'])
    worker.take('job_1')
    await worker.changed('job_1', new AbortController().signal).catch(() => {})
    worker.take('job_2')
    await finished('job_1', 'job_2')
    expect(await reasons('job_2')).toEqual(Array(3).fill('invalid_email'))
    const at = progress.findIndex(job => job.id === 'job_2' && job.state === 'completed')
    const before = progress.slice(0, at).findLast(job => job.id === 'job_1')?.done ?? 0
    expect(before).toBeLessThan(2_500)
  })

  test('answers a simulated job without probing', async () => {
    const { worker, submit, finished, reasons, mx } = await createTestWorker()
    await submit('job_sbx_1', ['valid@a.test', 'invalid@a.test'], { sandbox: true })
    worker.take('job_sbx_1')
    await finished('job_sbx_1')
    expect(await reasons('job_sbx_1')).toEqual(['accepted_email', 'rejected_email'])
    expect(mx.dialled).toEqual([])
  })
})

describe('a job that ends while it is processed', () => {
  const ends = [
    ['cancelled', cancelJob],
    ['deleted', deleteJob],
  ] as const

  test.each(ends)(
    'because it is %s is no longer probed; another job continues in the same slot',
    async (_, end) => {
      const { worker, submit, finished, database, mx, reasons, failures, pass } =
        await createTestWorker({
          // The server of a.test is silent: its session hangs.
          script: toRecipients((_, { to: { host } }) => (host === 'mx.a.test' ? null : OK)),
          flags: { recipientsPerSession: '5', sessionsPerOperator: '1', concurrency: '1' },
        })
      await submit('job_1', many(20, 'a.test'))
      worker.take('job_1')
      await pass(8 * SECOND)
      expect(mx.sessions).toHaveLength(1)
      await submit('job_2', ['ann@b.test'])
      worker.take('job_2')
      await end(database, 'job_1')
      worker.drop('job_1')
      await pass(6 * SECOND)
      expect(mx.sessions[0]?.closed).toBe(true)
      await finished('job_2')
      expect(mx.sessions.filter(({ to }) => to.host === 'mx.a.test')).toHaveLength(1)
      expect(await reasons('job_1')).toEqual(
        (await findJob(database, 'job_1')) ? Array(20).fill(null) : [],
      )
      expect(await reasons('job_2')).not.toContain(null)
      expect(failures).toEqual([])
      await pass(MINUTE)
      expect(worker.status()).toEqual({ jobs: 0, waiting: 0, running: 0 })
    },
  )

  test.each(ends)(
    'because it is %s by another process is dropped at its next result',
    async (_, end) => {
      const { worker, submit, database, reasons, finished, failures, pass } =
        await createTestWorker({
          script: acceptsAll,
          flags: { recipientsPerSession: '2', sessionsPerOperator: '1', sessionsPerSecond: '1' },
        })
      await submit('job_1', many(30, 'a.test'))
      await submit('job_2', many(10, 'a.test'))
      for (const id of ['job_1', 'job_2']) worker.take(id)
      await pass(8 * SECOND)
      const { done } = await readJob(database, 'job_1')
      await end(database, 'job_1')
      await finished('job_2')
      await pass(3 * SECOND)
      expect(await reasons('job_2')).toEqual(Array(10).fill('accepted_email'))
      const left = await findJob(database, 'job_1')
      if (left !== null) expect(left).toMatchObject({ state: 'cancelled', done })
      expect(failures.map(([id]) => id)).toEqual(left === null ? [] : ['job_1'])
      expect(worker.status().jobs).toBe(0)
    },
  )

  test('because it is cancelled before it starts has not failed', async () => {
    const { log, lines } = recordingLog()
    const { worker, submit, database, pass } = await createTestWorker({ deps: { log } })
    await submit('job_1', ['ann@a.test'])
    await cancelJob(database, 'job_1')
    worker.take('job_1')
    await pass(SECOND)
    expect(worker.status().jobs).toBe(0)
    expect(await readJob(database, 'job_1')).toMatchObject({ state: 'cancelled', error: null })
    expect(lines).toEqual([])
  })

  test('leaves a shared session to the other jobs', async () => {
    let notifyStarted = () => {}
    const sessionStarted = new Promise<void>(resolve => {
      notifyStarted = resolve
    })
    const { worker, submit, finished, database, mx, reasons, clock } = await createTestWorker({
      script: toRecipients(to => {
        notifyStarted()
        return isRandomRecipient(to) ? UNKNOWN : OK
      }),
      flags: {
        recipientsPerSession: '11',
        sessionsPerOperator: '1',
        recipientsPerTransaction: '1',
      },
    })
    await submit('job_1', many(5, 'a.test', 'gone'))
    await submit('job_2', many(5, 'a.test', 'kept'))
    for (const id of ['job_1', 'job_2']) worker.take(id)
    await settled(clock, sessionStarted)
    await cancelJob(database, 'job_1')
    worker.drop('job_1')
    await finished('job_2')
    expect(await reasons('job_2')).toEqual(Array(5).fill('accepted_email'))
    expect(mx.sessions).toHaveLength(1)
  })
})

test('a list that uses all connections of an operator leaves one for single verifications', async () => {
  // Twenty recipients take this server ten seconds, the time limit of a single verification.
  const answerSlowly = async (line: string) => {
    if (!line.startsWith('RCPT')) return undefined
    await new Promise<void>(resolve => void services.clock.after(500, resolve))
    return OK
  }
  const services = await createTestWorker({
    script: { answer: answerSlowly },
    flags: { sessionsPerOperator: '1', recipientsPerSession: '40' },
  })
  const { worker, submit, finished, engine, pass, clock, mx } = services
  await submit('job_1', many(60, 'a.test'))
  worker.take('job_1')
  await pass(6 * SECOND)
  expect(mx.sessions).toHaveLength(1)
  const single = await settled(clock, engine.verify('ann@a.test'))
  expect(single.verdict.reason).not.toBe('timeout')
  expect(single.evidence.answer?.kind).toBe('accepted')
  expect(await finished('job_1')).toMatchObject([{ state: 'completed', done: 60, unknown: 0 }])
})

describe('waiting for a change', () => {
  const never = new AbortController().signal

  test('resolves with the next commit of the job', async () => {
    const { worker, submit, clock } = await createTestWorker({ zone: { 'n.test': 'never' } })
    await submit('job_1', ['x', 'ann@n.test'])
    worker.take('job_1')
    expect(await settled(clock, worker.changed('job_1', never))).toMatchObject({ done: 1 })
    expect(await settled(clock, worker.changed('job_1', never))).toMatchObject({
      done: 2,
      state: 'completed',
    })
  })

  test('resolves at once if the job is finished or was cancelled', async () => {
    const { worker, submit, database, pass } = await createTestWorker({
      zone: { 'n.test': 'never' },
    })
    await submit('job_1', ['ann@n.test'])
    worker.take('job_1')
    const waiting = worker.changed('job_1', never)
    await pass(100)
    await cancelJob(database, 'job_1')
    worker.drop('job_1')
    expect(await waiting).toMatchObject({ state: 'cancelled' })
    expect(await worker.changed('job_1', never)).toMatchObject({ state: 'cancelled' })
    expect(await worker.changed('job_absent', never)).toBeNull()
  })

  test('resolves with null when the signal aborts or the worker stops', async () => {
    const { worker, submit } = await createTestWorker({ zone: { 'n.test': 'never' } })
    await submit('job_1', ['ann@n.test'])
    const timeout = new AbortController()
    const [first, other] = [worker.changed('job_1', timeout.signal), worker.changed('job_1', never)]
    await drainEventLoop()
    timeout.abort()
    expect(await first).toBeNull()
    void worker.stop()
    expect(await other).toBeNull()
    expect(await worker.changed('job_1', never)).toBeNull()
  })
})

test('a stopped worker leaves the rest to the next one, which probes no address twice', async () => {
  const { worker, begin, submit, clock, mx, database, reasons, pass } = await createTestWorker({
    script: acceptsAll,
    flags: { recipientsPerSession: '5', sessionsPerOperator: '1', sessionsPerSecond: '1' },
  })
  for (const id of ['job_1', 'job_2']) {
    await submit(id, many(20, 'a.test', id))
    worker.take(id)
  }
  await pass(7 * SECOND)
  await settled(clock, worker.stop())
  const { done } = await readJob(database, 'job_1')
  expect(done).toBeGreaterThan(0)
  expect(done).toBeLessThan(20)
  const next = begin()
  const finishing = ['job_1', 'job_2'].map(async id => {
    next.take(id)
    while ((await next.changed(id, new AbortController().signal))?.finished_at === null);
  })
  await settled(clock, Promise.all(finishing))
  const probed = mx.sessions.flatMap(({ lines }) => recipients(lines))
  expect(probed).toHaveLength(40)
  expect(new Set(probed).size).toBe(40)
  for (const id of ['job_1', 'job_2']) {
    expect(await reasons(id)).toEqual(Array(20).fill('accepted_email'))
  }
})
