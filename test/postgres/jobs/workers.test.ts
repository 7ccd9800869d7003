import { describe, expect, test } from 'vitest'
import { write } from '../../../src/db/database.ts'
import { cancelJob } from '../../../src/jobs/job-state.ts'
import { memberClaims } from '../../../src/jobs/member-claims.ts'
import { MINUTE } from '../../../src/platform/clock.ts'
import { cluster } from '../../support/cluster-jobs.ts'
import { isRandomRecipient, toRecipients } from '../../support/engine.ts'
import { FAST_TIMINGS } from '../../support/fast-timings.ts'
import { waitUntil } from '../../support/wait.ts'

const OK = '250 2.1.5 Ok'
const UNKNOWN = '550 5.1.1 No such user'

/** Every third address is unknown. */
const isKnown = (to: string) => Number(/^u(\d+)@/.exec(to)?.[1] ?? 0) % 3 !== 0
const script = toRecipients(to => (!isRandomRecipient(to) && isKnown(to) ? OK : UNKNOWN))

const addresses = (count: number, domains: number) =>
  Array.from({ length: count }, (_, n) => `u${n}@d${n % domains}.test`)

const reasonOf = (to: string) => (isKnown(to) ? 'accepted_email' : 'rejected_email')

/** Enough rows for many sessions of each worker. */
const ROWS = 600

test('two workers finish one list together and probe each row once', async () => {
  const texts = addresses(ROWS, 20)
  let recipients = 0
  const bothDialled = Promise.withResolvers<void>()
  const home = await cluster({
    // The second half of the recipients is answered only after both workers have dialed.
    script: async (line, session) => {
      if (line.startsWith('RCPT') && ++recipients > ROWS / 2) await bothDialled.promise
      return script(line, session)
    },
    domains: 20,
  })
  // Neither worker can use all connections that the operators allow.
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
  expect(home.loggedErrors).toEqual([])
})

test('a worker that stops midway leaves the rest to the other, and no address is probed twice', async () => {
  const texts = addresses(ROWS, 20)
  let recipients = 0
  const stopped = Promise.withResolvers<void>()
  const home = await cluster({
    // The second half of the recipients is answered only after one worker has stopped.
    script: async (line, session) => {
      if (line.startsWith('RCPT') && ++recipients > ROWS / 2) await stopped.promise
      return script(line, session)
    },
    domains: 20,
    // Open sessions can finish even on a busy machine.
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
  expect(home.loggedErrors).toEqual([])
})

describe('a worker that the others expired', () => {
  test('aborts its sessions at once and continues as a new member', async () => {
    let connections = 0
    const home = await cluster({
      domains: 1,
      // The first connection gets no greeting.
      script: {
        greeting: () => (connections++ === 0 ? null : '220 mx.d0.test ESMTP'),
        answer: script,
      },
    })
    const { worker } = await home.join({ greetingTimeoutMs: '60000' })
    const texts = addresses(15, 1)
    await home.submit('job_1', texts)
    worker.take('job_1')
    await waitUntil(() => home.mx.sessions.length > 0)
    await expireAll(home.database)
    expect(await home.finished('job_1')).toMatchObject({ done: 15, deliverable: 10 })
    expect(home.mx.sessions[0]?.closed).toBe(true)
    expect(await home.reasons('job_1')).toEqual(texts.map(reasonOf))
    expect(home.asked(texts).toSorted()).toEqual(texts.toSorted())
    expect(await home.database.db.selectFrom('member').select('id').execute()).toHaveLength(1)
  })
})

describe('a job that another process cancels', () => {
  test('is no longer probed, and waiting clients are notified', async () => {
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
    await waitUntil(async () => !(await hasClaimedItem(home)))
    expect(await home.reasons('job_1')).toEqual(Array(5).fill(null))
  })
})

test('a client that waits for a job is notified of the changes of any worker', async () => {
  const texts = addresses(200, 4)
  const home = await cluster({ script, domains: 4 })
  const waits = await home.join()
  await home.submit('job_1', texts)
  const done: number[] = []
  const lastChange = (async () => {
    for (;;) {
      const job = await waits.worker.changed('job_1', new AbortController().signal)
      done.push(job?.done ?? -1)
      if (job?.finished_at !== null) return job
    }
  })()
  const { worker } = await home.join()
  worker.take('job_1')
  expect(await lastChange).toMatchObject({ state: 'completed', done: 200 })
  expect(done).toEqual(done.toSorted((a, b) => a - b))
})

test('workers ignore lists of the command line in the same database', async () => {
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

type TestCluster = Awaited<ReturnType<typeof cluster>>

/** Expires all members at once, as another one does whose heartbeats had timed out. */
async function expireAll(database: TestCluster['database']): Promise<void> {
  await write(database, async trx => {
    const expired = await trx.deleteFrom('member').returning('id').execute()
    await memberClaims.release(
      trx,
      expired.map(({ id }) => id),
    )
  })
}

async function hasClaimedItem({ database }: TestCluster): Promise<boolean> {
  const row = await database.db
    .selectFrom('item')
    .select('position')
    .where('state', '=', 'probing')
    .executeTakeFirst()
  return row !== undefined
}
