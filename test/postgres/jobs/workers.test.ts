import { describe, expect, test } from 'vitest'
import { cancelJob } from '../../../src/jobs/job-state.ts'
import { MINUTE } from '../../../src/platform/clock.ts'
import { cluster } from '../../support/cluster-jobs.ts'
import { isUnguessable, toRecipients } from '../../support/engine.ts'
import { FAST_TIMINGS } from '../../support/fast-timings.ts'
import { waitUntil } from '../../support/wait.ts'

const OK = '250 2.1.5 Ok'
const UNKNOWN = '550 5.1.1 No such user'

/** Every third is unknown. */
const isThere = (to: string) => Number(/^u(\d+)@/.exec(to)?.[1] ?? 0) % 3 !== 0
const script = toRecipients(to => (!isUnguessable(to) && isThere(to) ? OK : UNKNOWN))

const addresses = (count: number, domains: number) =>
  Array.from({ length: count }, (_, n) => `u${n}@d${n % domains}.test`)

const reasonOf = (to: string) => (isThere(to) ? 'accepted_email' : 'rejected_email')

/** Enough for many conversations of each. */
const ROWS = 600

test('two that work on one list finish it together, each row once', async () => {
  const texts = addresses(ROWS, 20)
  let recipients = 0
  const bothDialled = Promise.withResolvers<void>()
  const home = await cluster({
    // The mail servers answer to the first half only until both have dialled.
    script: async (line, session) => {
      if (line.startsWith('RCPT') && ++recipients > ROWS / 2) await bothDialled.promise
      return script(line, session)
    },
    domains: 20,
  })
  // Neither can hold all connections that the operators allow.
  const few = { concurrency: '8' }
  const [one, other] = [await home.join(few), await home.join(few)]
  await home.submit('job_1', texts)
  one.worker.take('job_1')
  await waitUntil(() => Math.min(one.dialled.length, other.dialled.length) > 3)
  bothDialled.resolve()
  const job = await home.finished('job_1')
  expect(job).toMatchObject({ state: 'completed', done: ROWS, deliverable: 400 })
  expect(await home.reasons('job_1')).toEqual(texts.map(reasonOf))
  expect(home.asked(texts).toSorted()).toEqual(texts.toSorted())
  expect((await home.history()).toSorted()).toEqual(texts.toSorted())
  expect(await home.events()).toMatchObject([{ kind: 'batch.completed' }])
  expect(home.complaints).toEqual([])
})

test('one that stops in the middle leaves the rest to the other, and nobody is asked twice', async () => {
  const texts = addresses(ROWS, 20)
  let recipients = 0
  const stopped = Promise.withResolvers<void>()
  const home = await cluster({
    // The mail servers answer to the first half only until the one has stopped.
    script: async (line, session) => {
      if (line.startsWith('RCPT') && ++recipients > ROWS / 2) await stopped.promise
      return script(line, session)
    },
    domains: 20,
    // However busy the machine is, open sessions end by themselves.
    timings: { ...FAST_TIMINGS, worker: { ...FAST_TIMINGS.worker, drainMs: MINUTE } },
  })
  const [one, other] = [await home.join(), await home.join()]
  await home.submit('job_1', texts)
  one.worker.take('job_1')
  await home.until('job_1', job => job.done > 100)
  const closing = one.close()
  stopped.resolve()
  await closing
  const held = await home.database.db.selectFrom('item').select('holder').distinct().execute()
  expect(held.filter(({ holder }) => holder !== null).length).toBeLessThanOrEqual(1)
  expect(await home.finished('job_1')).toMatchObject({ state: 'completed', done: ROWS })
  expect(await home.reasons('job_1')).toEqual(texts.map(reasonOf))
  expect(home.asked(texts).toSorted()).toEqual(texts.toSorted())
  expect(await home.events()).toHaveLength(1)
  expect(other.dialled.length).toBeGreaterThan(0)
  expect(home.complaints).toEqual([])
})

describe('one that the others took for dead', () => {
  test('ends its conversations at once, and goes on as another', async () => {
    let visits = 0
    const home = await cluster({
      domains: 1,
      // The first visit is never answered.
      script: {
        greeting: () => (visits++ === 0 ? null : '220 mx.d0.test ESMTP'),
        answer: script,
      },
    })
    const { worker } = await home.join({ greetingTimeoutMs: '60000' })
    const texts = addresses(15, 1)
    await home.submit('job_1', texts)
    worker.take('job_1')
    await waitUntil(() => home.mx.sessions.length > 0)
    await bury(home.database)
    expect(await home.finished('job_1')).toMatchObject({ done: 15, deliverable: 10 })
    expect(home.mx.sessions[0]?.closed).toBe(true)
    expect(await home.reasons('job_1')).toEqual(texts.map(reasonOf))
    expect(home.asked(texts).toSorted()).toEqual(texts.toSorted())
    expect(await home.database.db.selectFrom('member').select('id').execute()).toHaveLength(1)
  })
})

describe('a job that another process ends', () => {
  test('is asked about no more, and whoever waits for it hears of that', async () => {
    const timings = { ...FAST_TIMINGS, worker: { ...FAST_TIMINGS.worker, drainMs: 50 } }
    const home = await cluster({ domains: 1, script: { greeting: null }, timings })
    const { worker } = await home.join({ greetingTimeoutMs: '60000' })
    await home.submit('job_1', addresses(5, 1))
    worker.take('job_1')
    await waitUntil(() => home.mx.sessions.length > 0)
    const changed = worker.changed('job_1', new AbortController().signal)
    await cancelJob(home.database, 'job_1')
    expect(await changed).toMatchObject({ state: 'cancelled' })
    await waitUntil(() => worker.status().jobs === 0)
    await waitUntil(() => home.mx.sessions.every(({ closed }) => closed))
    await waitUntil(async () => !(await isHeld(home)))
    expect(await home.reasons('job_1')).toEqual(Array(5).fill(null))
  })
})

test('whoever waits for a job hears of it whoever works on it', async () => {
  const texts = addresses(200, 4)
  const home = await cluster({ script, domains: 4 })
  const waits = await home.join()
  await home.submit('job_1', texts)
  const done: number[] = []
  const heard = (async () => {
    for (;;) {
      const job = await waits.worker.changed('job_1', new AbortController().signal)
      done.push(job?.done ?? -1)
      if (job?.finished_at !== null) return job
    }
  })()
  const { worker } = await home.join()
  worker.take('job_1')
  expect(await heard).toMatchObject({ state: 'completed', done: 200 })
  expect(done).toEqual(done.toSorted((a, b) => a - b))
})

test('lists of the command line in the same database are left alone', async () => {
  const home = await cluster({ script, domains: 1 })
  const texts = addresses(5, 1)
  await home.submitAlone('job_own', texts)
  const { worker } = await home.join()
  worker.take('job_own')
  await home.submit('job_1', texts)
  worker.take('job_1')
  await home.finished('job_1')
  expect(await home.reasons('job_own')).toEqual(Array(5).fill(null))
  expect((await home.until('job_own', () => true)).state).toBe('queued')
})

type Home = Awaited<ReturnType<typeof cluster>>

/** As the others do, but without waiting until it is dead. */
async function bury(database: Home['database']): Promise<void> {
  await database.db.deleteFrom('member').execute()
}

async function isHeld({ database }: Home): Promise<boolean> {
  const row = await database.db
    .selectFrom('item')
    .select('position')
    .where('state', '=', 'probing')
    .executeTakeFirst()
  return row !== undefined
}
