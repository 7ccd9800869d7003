import { describe, expect, test } from 'vitest'
import { write } from '../../../src/db/database.ts'
import { decodeResult } from '../../../src/engine/verdict/stored-result.ts'
import type { Result } from '../../../src/engine/verdict/verdict.ts'
import { finishJob } from '../../../src/jobs/change-job.ts'
import { cancelJob } from '../../../src/jobs/job-state.ts'
import { readJob } from '../../../src/jobs/job-store.ts'
import { reopenJob } from '../../../src/jobs/prepare-resume.ts'
import { resultPage } from '../../../src/jobs/results/result-store.ts'
import { SECOND } from '../../../src/platform/clock.ts'
import { toRecipients } from '../../support/engine.ts'
import { countedRandom } from '../../support/random.ts'
import { createTestWorker } from '../../support/worker.ts'

const OK = '250 2.1.5 Ok'
const UNKNOWN = '550 5.1.1 No such user'
const BLOCKED = '550 5.7.1 Client host [192.0.2.9] blocked using zen.spamhaus.org'
const GREYLISTED = '450 4.2.0 Greylisted, try again in 300 seconds'

function reply(to: string): string {
  if (to.startsWith('ann')) return OK
  if (to.startsWith('gray')) return GREYLISTED
  if (to.startsWith('block')) return BLOCKED
  // The random recipient at this domain is greylisted.
  if (to.endsWith('@b.test')) return to.startsWith('undecided') ? OK : GREYLISTED
  return UNKNOWN
}

/** A service whose server accepts `ann`, greylists `gray` and blocks `block`. */
const createWaitingJob = async (flags: Readonly<Record<string, string>> = {}) => {
  const fixture = await createTestWorker({ script: toRecipients(reply), flags })
  const { database, clock, worker } = fixture
  const origin = { actor: 'key', keyId: 'key_a', person: null, sessionId: null, ip: null } as const
  const services = { database, clock, random: countedRandom(), origin }
  const results = async (jobId: string) =>
    (await resultPage(database, { jobId, after: 0, max: 1_000 })).map(
      ({ result }) => decodeResult(result ?? 'null') as Result,
    )
  return {
    ...fixture,
    results,
    finish: async (id: string) => finishJob({ ...services, worker }, await readJob(database, id)),
  }
}

describe('a job that is finished', () => {
  test('gives rows that wait for a retry the reason that they have, and is completed', async () => {
    const { worker, submit, pass, finish, finished, reasons, database, mx } =
      await createWaitingJob()
    await submit('job_1', ['ann@a.test', 'gray@a.test', 'gone@a.test', 'gray2@b.test'])
    worker.take('job_1')
    await pass(8 * SECOND)
    expect(await readJob(database, 'job_1')).toMatchObject({ state: 'processing', done: 2 })
    const dialled = mx.dialled.length
    expect(await finish('job_1')).toMatchObject({ isChanged: true })
    expect(await finished('job_1')).toMatchObject([
      { state: 'completed', done: 4, deliverable: 1, undeliverable: 1, unknown: 2 },
    ])
    expect(await reasons('job_1')).toEqual([
      ...['accepted_email', 'greylisted', 'rejected_email', 'greylisted'],
    ])
    expect(mx.dialled).toHaveLength(dialled)
  })

  test('gives rows that wait to be looked up again the failed lookup, and looks none of them up', async () => {
    const { worker, submit, pass, finish, finished, reasons, database, names } =
      await createWaitingJob()
    names.set('down.test', 'server')
    names.set('mx.away.test', 'timeout')
    names.set('away.test', { MX: [[10, 'mx.away.test']] })
    await submit('job_1', ['ann@a.test', 'ann@down.test', 'ann@away.test'])
    worker.take('job_1')
    await pass(8 * SECOND)
    expect(await readJob(database, 'job_1')).toMatchObject({ state: 'processing', done: 1 })
    const asked = names.asked.length
    await finish('job_1')
    expect(await finished('job_1')).toMatchObject([{ state: 'completed', done: 3 }])
    expect(await reasons('job_1')).toEqual(['accepted_email', 'dns_error', 'dns_error'])
    expect(names.asked).toHaveLength(asked)
  })

  test('gives rows at a provider that blocks this service its reply, and probes none of them', async () => {
    const { worker, submit, pass, finish, finished, reasons, database, mx } =
      await createWaitingJob()
    const texts = Array.from({ length: 60 }, (_, n) => `block${n}@a.test`)
    await submit('job_1', texts)
    worker.take('job_1')
    await pass(8 * SECOND)
    expect((await readJob(database, 'job_1')).done).toBeLessThan(60)
    const dialled = mx.dialled.length
    await finish('job_1')
    expect(await finished('job_1')).toMatchObject([{ state: 'completed', unknown: 60 }])
    expect(await reasons('job_1')).toEqual(Array(60).fill('probe_blocked'))
    expect(mx.dialled).toHaveLength(dialled)
  })

  test('marks rows that wait for the pace of their provider as not probed', async () => {
    const { worker, submit, pass, finish, finished, database, results } = await createWaitingJob({
      sessionsPerSecond: '0.01',
      recipientsPerSession: '2',
    })
    await submit('job_1', ['ann1@a.test', 'ann2@a.test', 'ann3@a.test', 'ann4@a.test', 'x'])
    worker.take('job_1')
    await pass(8 * SECOND)
    const { done } = await readJob(database, 'job_1')
    await finish('job_1')
    expect(await finished('job_1')).toMatchObject([{ state: 'completed', done: 5 }])
    const skipped = (await results('job_1')).filter(one => one.evidence.skipped !== null)
    // A connection that was in flight ends normally.
    expect(skipped.length).toBeGreaterThan(0)
    expect(skipped.length).toBeLessThanOrEqual(5 - done)
    expect(skipped[0]).toMatchObject({
      verdict: { reason: 'smtp_skipped', risk: 'unknown' },
      evidence: { answer: null, skipped: 'finished', route: { kind: 'mx' } },
    })
  })

  test('gives a recipient that was accepted before the catch-all test a risky result', async () => {
    const { worker, submit, pass, finish, finished, reasons } = await createWaitingJob()
    await submit('job_1', ['undecided@b.test'])
    worker.take('job_1')
    await pass(8 * SECOND)
    await finish('job_1')
    expect(await finished('job_1')).toMatchObject([{ state: 'completed', risky: 1 }])
    expect(await reasons('job_1')).toEqual(['low_deliverability'])
  })

  test('is finished by the next process if this one ended', async () => {
    const { worker, begin, submit, pass, finish, reasons, database } = await createWaitingJob()
    await submit('job_1', ['gray@a.test', 'ann@a.test'])
    worker.take('job_1')
    await pass(8 * SECOND)
    await worker.stop()
    await finish('job_1')
    const next = begin()
    next.take('job_1')
    await pass(10 * SECOND)
    expect(await readJob(database, 'job_1')).toMatchObject({ state: 'completed', done: 2 })
    expect(await reasons('job_1')).toEqual(['greylisted', 'accepted_email'])
  })

  test('that was not started looks up its domains and probes none', async () => {
    const { worker, submit, finish, finished, reasons, mx } = await createWaitingJob()
    await submit('job_1', ['ann@a.test', 'ann@nowhere.test', 'no address'])
    await finish('job_1')
    worker.take('job_1')
    expect(await finished('job_1')).toMatchObject([{ state: 'completed', done: 3 }])
    expect(await reasons('job_1')).toEqual(['smtp_skipped', 'invalid_domain', 'invalid_email'])
    expect(mx.dialled).toEqual([])
  })

  test('is finished once, also if that is requested again', async () => {
    const { worker, submit, pass, finish, finished, database } = await createWaitingJob()
    await submit('job_1', ['gray@a.test'])
    worker.take('job_1')
    await pass(10 * SECOND)
    expect(await finish('job_1')).toMatchObject({ isChanged: true })
    expect(await finish('job_1')).toMatchObject({ isChanged: false })
    await finished('job_1')
    expect(await finish('job_1')).toMatchObject({ isChanged: false, job: { state: 'completed' } })
    const entries = await database.db.selectFrom('audit').selectAll().execute()
    expect(entries).toMatchObject([{ action: 'job.finished', target_id: 'job_1' }])
  })

  test('is refused after it was cancelled, and waits again once it is resumed', async () => {
    const { worker, submit, pass, finish, database, clock } = await createWaitingJob()
    await submit('job_1', ['gray@a.test'])
    worker.take('job_1')
    await pass(10 * SECOND)
    await cancelJob(database, 'job_1')
    await expect(finish('job_1')).rejects.toMatchObject({ code: 'job_not_finishable' })
    const cancelled = await readJob(database, 'job_1')
    await write(database, trx => reopenJob(trx, cancelled, { now: clock.now(), reservation: null }))
    expect(await readJob(database, 'job_1')).toMatchObject({ finish_requested_at: null })
  })
})
