import { describe, expect, test } from 'vitest'
import { finishJob } from '../../../src/jobs/change-job.ts'
import { readJob } from '../../../src/jobs/job-store.ts'
import type { ListWorker } from '../../../src/jobs/list/list-worker.ts'
import type { WaitingInMemory } from '../../../src/jobs/worker/worker-deps.ts'
import { MINUTE, SECOND } from '../../../src/platform/clock.ts'
import { createTestJob } from '../../support/job.ts'
import { countedRandom } from '../../support/random.ts'
import { isRandomRecipient, knows, toRecipients, users } from '../../support/recipients.ts'

const UNKNOWN = '550 5.1.1 No such user'
const GREYLISTED = '450 4.2.0 Greylisted, try again in 300 seconds'
const ORIGIN = {
  actor: 'command_line',
  keyId: null,
  person: null,
  sessionId: null,
  ip: null,
} as const

const greylistsFirst = () => {
  const asked = new Set<string>()
  return toRecipients(to => {
    if (isRandomRecipient(to)) return UNKNOWN
    if (asked.has(to)) return undefined
    asked.add(to)
    return GREYLISTED
  })
}

/** A connection that is never opened. */
const unanswered = (signal: AbortSignal | undefined) =>
  new Promise<never>((_, reject) => {
    signal?.addEventListener('abort', () => reject(new Error('aborted')), { once: true })
  })

test('rows whose lookup failed are counted until they are looked up again', async () => {
  const texts = ['ann@a.test', 'ben@broken.test', 'carl@broken.test']
  const fixture = await createTestJob({
    texts,
    script: knows('ann@a.test'),
    zone: { 'broken.test': 'server' },
  })
  let worker: ListWorker | undefined
  const waits: (WaitingInMemory['failedLookups'] | undefined)[] = []
  for (const atMs of [50 * SECOND, 110 * SECOND]) {
    fixture.clock.after(atMs, () => {
      waits.push(worker?.waitingInMemory('job_a').failedLookups)
    })
  }
  await fixture.work({
    onStart: started => {
      worker = started
    },
  })
  expect(await fixture.reasons()).toEqual(['accepted_email', 'dns_error', 'dns_error'])
  // They are looked up again after one and after two minutes.
  const inTenSeconds = { rows: 2, firstInMs: 10 * SECOND, lastInMs: 10 * SECOND }
  expect(waits).toEqual([inTenSeconds, inTenSeconds])
})

describe('rows for which their operator has no room', () => {
  // Two connections of five recipients: the scheduler keeps 20 rows of the operator.
  const flags = { recipientsPerSession: '5', sessionsPerOperator: '2' }

  test('are read again, and each row has one result', async () => {
    const texts = users(400)
    const fixture = await createTestJob({ texts, script: knows(...texts), flags })
    expect(await fixture.work()).toMatchObject({ state: 'completed', done: 400, deliverable: 400 })
    expect(fixture.asked().toSorted()).toEqual(texts.toSorted())
  })

  test('also after they were greylisted', async () => {
    const texts = users(100)
    const fixture = await createTestJob({ texts, script: greylistsFirst(), flags })
    expect(await fixture.work()).toMatchObject({ state: 'completed', deliverable: 100 })
    expect(fixture.asked()).toHaveLength(200)
    // Each domain is looked up once, and its route is stored with the postponed rows.
    expect(fixture.zone.asked.filter(question => question === 'MX a.test')).toHaveLength(1)
  })

  test('do not hold up other operators, and are counted as waiting', async () => {
    const stop = new AbortController()
    const texts = [...users(300, 'silent.test'), 'ann@a.test']
    const fixture = await createTestJob({
      texts,
      script: knows('ann@a.test'),
      zone: {
        'silent.test': { MX: [[10, 'mx.silent.test']] },
        'mx.silent.test': { A: ['192.0.2.3'] },
      },
      flags: { ...flags, sessionsPerOperator: '1' },
      wrapDial: mx => ({
        ...mx,
        connect: (to, signal) =>
          to.ip === '192.0.2.3' ? unanswered(signal) : mx.connect(to, signal),
      }),
    })
    let worker: ListWorker | undefined
    let waiting: WaitingInMemory | undefined
    fixture.clock.after(5 * SECOND, () => {
      waiting = worker?.waitingInMemory('job_a')
      stop.abort()
    })
    await fixture.work({
      stopping: stop.signal,
      onStart: started => {
        worker = started
      },
    })
    expect((await fixture.reasons()).at(-1)).toBe('accepted_email')
    // Those of the connection that is being opened are not waiting.
    expect(waiting?.counts.get('silent.test')).toBeGreaterThanOrEqual(290)
    expect(waiting?.counts.get('silent.test')).toBeLessThan(300)
    expect(waiting?.counts.get('a.test')).toBeUndefined()
  })
})

describe('a list that is finished early', () => {
  test('gives rows that wait their present result, and completes', async () => {
    const texts = ['ann@a.test', 'bob@a.test', 'zoe@b.test']
    const script = toRecipients(to => {
      if (isRandomRecipient(to)) return UNKNOWN
      return to === 'bob@a.test' ? GREYLISTED : undefined
    })
    const fixture = await createTestJob({ texts, script })
    const { database, clock } = fixture
    const startedAt = clock.now()
    const finish = async (worker: ListWorker) => {
      const services = { database, clock, random: countedRandom(), origin: ORIGIN, worker }
      await finishJob(services, await readJob(database, 'job_a'))
    }
    expect(
      await fixture.work({ onStart: worker => void clock.after(10_000, () => finish(worker)) }),
    ).toMatchObject({ state: 'completed', done: 3, deliverable: 2, unknown: 1 })
    expect(await fixture.reasons()).toEqual(['accepted_email', 'greylisted', 'accepted_email'])
    expect(clock.now() - startedAt).toBeLessThan(MINUTE)
  })

  test('is finished by the next run if the first one was stopped', async () => {
    const stop = new AbortController()
    const texts = users(3)
    const fixture = await createTestJob({ texts, script: toRecipients(() => GREYLISTED) })
    const { database, clock } = fixture
    clock.after(10_000, () => stop.abort())
    await fixture.work({ stopping: stop.signal })
    const services = { database, clock, random: countedRandom(), origin: ORIGIN }
    await finishJob(services, await readJob(database, 'job_a'))
    const asked = fixture.asked().length
    expect(await fixture.work()).toMatchObject({ state: 'completed', done: 3, unknown: 3 })
    expect(await fixture.reasons()).toEqual(Array(3).fill('greylisted'))
    expect(fixture.asked()).toHaveLength(asked)
  })

  test('probes no row that waits for its operator', async () => {
    const texts = users(60)
    const fixture = await createTestJob({
      texts,
      script: knows(...texts),
      flags: {
        recipientsPerSession: '5',
        sessionsPerOperator: '1',
        sessionsPerSecond: '0.1',
      },
    })
    const { database, clock } = fixture
    const finish = async (worker: ListWorker) => {
      const services = { database, clock, random: countedRandom(), origin: ORIGIN, worker }
      await finishJob(services, await readJob(database, 'job_a'))
    }
    const job = await fixture.work({
      onStart: worker => void clock.after(15_000, () => finish(worker)),
    })
    expect(job).toMatchObject({ state: 'completed', done: 60 })
    const reasons = await fixture.reasons()
    const probed = reasons.filter(reason => reason === 'accepted_email').length
    expect(fixture.asked()).toHaveLength(probed)
    expect(probed).toBeLessThan(20)
    expect(job.unknown).toBe(60 - probed)
  })
})

test('a pause of an operator postpones only the rows that it deferred', async () => {
  const texts = users(60)
  let sessions = 0
  const fixture = await createTestJob({
    texts,
    script: {
      greeting: () => (sessions++ === 0 ? '421 4.7.0 Too many connections' : '220 mx.a.test ESMTP'),
      answer: knows(...texts),
    },
    flags: { recipientsPerSession: '5', sessionsPerOperator: '1' },
  })
  const { clock, database } = fixture
  let untouched = 0
  clock.after(3 * SECOND, async () => {
    const rows = await database.db.selectFrom('item').select(['state']).execute()
    untouched = rows.filter(({ state }) => state === 'queued').length
  })
  expect(await fixture.work()).toMatchObject({ state: 'completed', deliverable: 60 })
  // The deferred connection had at most five of them.
  expect(untouched).toBeGreaterThanOrEqual(55)
})

test('a postponed row waits for its time after a restart', async () => {
  const stop = new AbortController()
  const fixture = await createTestJob({ texts: ['ann@a.test'], script: greylistsFirst() })
  const { clock } = fixture
  clock.after(MINUTE, () => stop.abort())
  await fixture.work({ stopping: stop.signal })
  const stoppedAt = clock.now()
  expect(await fixture.work()).toMatchObject({ state: 'completed', deliverable: 1 })
  expect(clock.now() - stoppedAt).toBeGreaterThanOrEqual(4 * MINUTE)
  expect(fixture.asked()).toHaveLength(2)
})
