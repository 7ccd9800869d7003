import { describe, expect, test } from 'vitest'
import { IP_LIMITS, PLANS, type Plan } from '../../../src/accounts/plan.ts'
import { HOUR } from '../../../src/platform/clock.ts'
import { createUploadService } from '../../support/list-form.ts'
import type { RequestOptions } from '../../support/service.ts'

const SANDBOX = { headers: { 'X-EV-Sandbox': 'true' } }

/** A service with a free plan that is as small as a test needs. */
async function services(limits: Partial<Plan>) {
  const free = { ...(PLANS[0] as Plan), requests: 1_000, ...limits }
  const settings = {
    plans: new Map([['free', free]]),
    ipLimits: { ...IP_LIMITS, singlePerMinute: 1_000, bulkPerHour: 1_000 },
  }
  const fixture = await createUploadService({ plan: 'free', settings })
  const batch = (rows: number, o: RequestOptions = {}) => {
    const emails = Array.from({ length: rows }, (_, n) => `valid${n}@a.test`)
    return fixture.request('/v1/verify/batch', { body: { emails }, ...o })
  }
  const idOf = async (answer: Response) => ((await answer.json()) as { job_id: string }).job_id
  const jobs = () => fixture.database.db.selectFrom('job').select('id').execute()
  return { ...fixture, batch, idOf, jobs }
}

async function refusalOf(answer: Response) {
  const { code, error } = (await answer.json()) as { code: string; error: string }
  return { status: answer.status, code, error }
}

describe('the concurrent jobs of a plan', () => {
  test('are counted over live and sandbox lists, and one that ends frees a slot', async () => {
    const { batch, idOf, request, jobs } = await services({ concurrentJobs: 2 })
    const live = await idOf(await batch(1))
    expect((await batch(1, SANDBOX)).status).toBe(200)
    for (const o of [{}, SANDBOX]) {
      const answer = await batch(1, o)
      expect(answer.headers.get('Retry-After')).toBe('60')
      expect(await refusalOf(answer)).toEqual({
        status: 429,
        code: 'concurrent_jobs_exceeded',
        error:
          '2 lists of the account are not finished, and the Free plan allows 2 at a time. Wait for one to finish, or cancel one with POST /v1/jobs/{id}/cancel.',
      })
    }
    expect(await jobs()).toHaveLength(2)
    await request(`/v1/jobs/${live}/cancel`, { method: 'POST' })
    expect((await batch(1)).status).toBe(200)
    // Resuming the first one would make it the third.
    const resumed = await request(`/v1/jobs/${live}/resume`, { method: 'POST' })
    expect(await refusalOf(resumed)).toMatchObject({ code: 'concurrent_jobs_exceeded' })
    expect(
      await refusalOf(await request(`/v1/jobs/${live}/cancel`, { method: 'POST' })),
    ).toMatchObject({ status: 200 })
  })

  test('hold for lists that are submitted at the same time', async () => {
    const { batch, jobs } = await services({ concurrentJobs: 3 })
    const answers = await Promise.all(Array.from({ length: 8 }, () => batch(2, SANDBOX)))
    expect(answers.map(({ status }) => status).sort()).toEqual([
      200,
      200,
      200,
      ...Array(5).fill(429),
    ])
    expect(await jobs()).toHaveLength(3)
  })

  test('block no single verification, and no short list that is answered at once', async () => {
    const { batch, request } = await services({ concurrentJobs: 1 })
    expect((await batch(1, SANDBOX)).status).toBe(200)
    const single = { body: { email: 'valid@a.test', async: true }, ...SANDBOX }
    expect((await request('/v1/verify/single', single)).status).toBe(200)
    const short = { body: { emails: ['valid@a.test'] }, ...SANDBOX }
    expect((await request('/v1/verify/bulk', short)).status).toBe(200)
  })

  test('are counted for each account', async () => {
    const { batch, addAccount, addKey } = await services({ concurrentJobs: 1 })
    await addAccount('acc_2')
    const key = await addKey({ accountId: 'acc_2' })
    expect((await batch(1)).status).toBe(200)
    expect((await batch(1, { key })).status).toBe(200)
    expect((await batch(1)).status).toBe(429)
  })
})

describe('the stored rows of a plan', () => {
  test('are counted over live and sandbox lists; a list that goes beyond is refused with the figures', async () => {
    const { batch, jobs } = await services({ storedRows: 20 })
    expect((await batch(8)).status).toBe(200)
    expect((await batch(9, SANDBOX)).status).toBe(200)
    const answer = await batch(4, SANDBOX)
    expect(answer.headers.get('Retry-After')).toBe(String(HOUR / 1_000))
    expect(await refusalOf(answer)).toEqual({
      status: 429,
      code: 'stored_rows_exceeded',
      error:
        'The account stores 17 rows of lists, this list has 4, and the Free plan allows 20. Delete lists with DELETE /v1/jobs/{id}, or wait until old lists are removed.',
    })
    expect(await jobs()).toHaveLength(2)
    expect((await batch(3, SANDBOX)).status).toBe(200)
  })

  test('are freed when a list is deleted', async () => {
    const { batch, idOf, request } = await services({ storedRows: 20 })
    const id = await idOf(await batch(20, SANDBOX))
    expect((await batch(1, SANDBOX)).status).toBe(429)
    expect((await request(`/v1/jobs/${id}`, { method: 'DELETE' })).status).toBe(204)
    expect((await batch(20, SANDBOX)).status).toBe(200)
  })

  test('hold for lists that are submitted at the same time', async () => {
    const { batch, database } = await services({ storedRows: 100 })
    const answers = await Promise.all(Array.from({ length: 8 }, () => batch(30, SANDBOX)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(3)
    expect(await database.db.selectFrom('account').select('stored_rows').execute()).toEqual([
      { stored_rows: 90 },
    ])
    // A refused list leaves nothing behind.
    expect(await database.db.selectFrom('item').select('job_id').execute()).toHaveLength(90)
  })

  test('refuse a file when it has too many rows, and store nothing of it', async () => {
    const { upload, jobs, rows, left } = await services({ storedRows: 5_000, creditsPerDay: null })
    const lines = Array.from({ length: 6_000 }, (_, n) => `valid${n}@a.test`)
    expect(await refusalOf(await upload(['email', ...lines].join('\n')))).toEqual({
      status: 429,
      code: 'stored_rows_exceeded',
      error:
        'The account stores 0 rows of lists, this list has more than 5,000, and the Free plan allows 5,000. Delete lists with DELETE /v1/jobs/{id}, or wait until old lists are removed.',
    })
    expect([await jobs(), await rows(), left()]).toEqual([[], [], []])
  })

  test('include short lists and asynchronous single verifications', async () => {
    const { request, mx } = await services({ storedRows: 2, creditsPerDay: null })
    const short = { body: { emails: ['valid@a.test'] }, ...SANDBOX }
    expect((await request('/v1/verify/bulk', short)).status).toBe(200)
    const single = { body: { email: 'valid@a.test', async: true }, ...SANDBOX }
    expect((await request('/v1/verify/single', single)).status).toBe(200)
    expect(await refusalOf(await request('/v1/verify/single', single))).toMatchObject({
      code: 'stored_rows_exceeded',
    })
    const live = { body: { emails: ['ann@a.test'] } }
    expect((await request('/v1/verify/bulk', live)).status).toBe(429)
    expect(mx.lines()).toEqual([])
  })

  test('are unlimited if the plan says so', async () => {
    const { batch } = await services({ storedRows: null, concurrentJobs: null })
    for (let n = 0; n < 12; n++) expect((await batch(20, SANDBOX)).status).toBe(200)
  })
})
