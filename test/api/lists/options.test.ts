import { describe, expect, test } from 'vitest'
import { createUploadService, form } from '../../support/list-form.ts'

/**
 * Addresses of a domain with a mail server, one without, an unknown one, and a malformed address.
 */
const EMAILS = ['ann@a.test', 'zoe@a.test', 'ann@gone.test', 'info@a.test', 'nonsense']
/** More addresses than are answered at once. */
const MANY = [...EMAILS, ...Array.from({ length: 8 }, (_, n) => `user${n}@a.test`)]

type Options = Readonly<Record<string, boolean | string>>
type Ask = (options: Options) => Promise<Response>

/** A service, and functions that submit lists in each way. */
async function services(plan = 'enterprise') {
  const fixture = await createUploadService({
    plan,
    works: true,
    engine: { engine: { sessionsPerSecond: 1 } },
  })
  const { request, send, settled } = fixture
  const texts = (options: Options) => Object.entries(options).map(([k, v]) => [k, `${v}`] as const)
  const asks: Readonly<Record<string, Ask>> = {
    bulk: options => request('/v1/verify/bulk', { body: { emails: MANY, ...options } }),
    batch: options => request('/v1/verify/batch', { body: { emails: MANY, ...options } }),
    file: options => send(form([['file', { file: MANY.join('\n') }], ...texts(options)])),
  }

  async function submit(path: string, options: Options): Promise<string> {
    const response = await settled((asks[path] as Ask)(options))
    expect([path, response.status]).toEqual([path, 200])
    return ((await response.json()) as { job_id: string }).job_id
  }

  /** Waits for the results of a job. */
  async function work(jobId: string): Promise<Result[]> {
    await fixture.finished(jobId)
    const { data } = (await fixture.json(`/v1/jobs/${jobId}?include=results`)) as unknown as {
      data: { results: Result[] }
    }
    return data.results
  }

  const creditsUsed = async () =>
    ((await fixture.json('/v1/credits')).data as { credits_consumed: number }).credits_consumed
  return { ...fixture, asks, submit, work, creditsUsed }
}

type Result = { email: string; reason: string; class: string; cached: boolean }

const PATHS = ['bulk', 'batch', 'file']

describe('check_smtp: false of a list', () => {
  test.each(PATHS)('%s probes no mail server, also after a restart', async path => {
    const { submit, work, mx } = await services()
    const results = await work(await submit(path, { check_smtp: false }))
    expect(mx.lines()).toEqual([])
    expect(results).toHaveLength(MANY.length)
    expect(results.slice(0, 5).map(({ reason }) => reason)).toEqual([
      ...['smtp_skipped', 'smtp_skipped', 'invalid_domain', 'smtp_skipped', 'invalid_email'],
    ])
  })

  test.each(PATHS)('%s has the same results and costs as single verifications', async path => {
    const lists = await services('free')
    const results = await lists.work(await lists.submit(path, { check_smtp: false }))
    const singles = await services('starter')
    const counted = await services('free')
    for (const [index, email] of EMAILS.entries()) {
      const body = { email, check_smtp: false }
      if (email === 'nonsense') continue
      const { reason, valid, risk_level, ...single } = await singles.json('/v1/verify/single', {
        body,
      })
      expect(results[index]).toMatchObject({ reason, valid, risk_level, class: single.class })
      await counted.json('/v1/verify/single', { body })
    }
    // Only the address of the unknown domain has a definite result.
    expect([await lists.creditsUsed(), await counted.creditsUsed()]).toEqual([1, 1])
  })

  test('bulk of ten probes no mail server', async () => {
    const { json, mx, creditsUsed } = await services('free')
    const body = { emails: EMAILS, check_smtp: false }
    const { results } = (await json('/v1/verify/bulk', { body })) as unknown as {
      results: Result[]
    }
    expect(mx.lines()).toEqual([])
    expect(results.map(({ reason }) => reason)).toEqual([
      ...['smtp_skipped', 'smtp_skipped', 'invalid_domain', 'smtp_skipped', 'invalid_email'],
    ])
    expect(await creditsUsed()).toBe(1)
  })

  test('a job that is cancelled and resumed probes none either', async () => {
    const { submit, work, mx, request } = await services()
    const id = await submit('batch', { check_smtp: false })
    expect((await request(`/v1/jobs/${id}/cancel`, { method: 'POST' })).status).toBe(200)
    expect((await request(`/v1/jobs/${id}/resume`, { method: 'POST' })).status).toBe(200)
    expect((await work(id))[0]).toMatchObject({ reason: 'smtp_skipped' })
    expect(mx.lines()).toEqual([])
  })

  test('an asynchronous single verification probes none', async () => {
    const { json, work, mx } = await services()
    const body = { email: 'ann@a.test', async: true, check_smtp: false }
    const { verification_id } = await json('/v1/verify/single', { body })
    expect(await work(String(verification_id))).toMatchObject([{ reason: 'smtp_skipped' }])
    expect(mx.lines()).toEqual([])
  })

  test('has a short estimate', async () => {
    const { asks, json } = await services()
    const estimateFor = async (options: Options) => {
      const body = (await (await (asks.file as Ask)(options)).json()) as { estimated_time: string }
      return body.estimated_time
    }
    expect(await estimateFor({ dry_run: true, check_smtp: false })).toBe('10 seconds')
    const emails = Array.from({ length: 1_000 }, (_, n) => `user${n}@a.test`)
    const long = await json('/v1/verify/batch', { body: { emails } })
    const short = await json('/v1/verify/batch', { body: { emails, check_smtp: false } })
    expect([long.estimated_time, short.estimated_time]).toEqual(['1 minute', '10 seconds'])
    expect(await json(`/v1/jobs/${short.job_id}`)).toMatchObject({ estimated_time: '10 seconds' })
  })
})

describe('force_refresh: true of a list', () => {
  test.each(PATHS)('%s probes addresses with cached answers', async path => {
    const { submit, work, json } = await services()
    await json('/v1/verify/single', { body: { email: 'ann@a.test' } })
    const [remembered] = await work(await submit(path, {}))
    expect(remembered).toMatchObject({ email: 'ann@a.test', cached: true })
    const [refreshed] = await work(await submit(path, { force_refresh: true }))
    expect(refreshed).toMatchObject({ cached: false, reason: 'accepted_email' })
  })

  test('bulk of ten probes its addresses as well', async () => {
    const { json } = await services()
    const ask = (options: Options) =>
      json('/v1/verify/bulk', { body: { emails: ['ann@a.test'], ...options } })
    await ask({})
    expect((await ask({})).results).toMatchObject([{ cached: true }])
    expect((await ask({ force_refresh: true })).results).toMatchObject([{ cached: false }])
  })
})

describe('an option of a list', () => {
  test.each(PATHS)('%s accepts only true or false', async path => {
    const { asks, job } = await services()
    for (const name of ['check_smtp', 'force_refresh']) {
      const response = await (asks[path] as Ask)({ [name]: 'maybe' })
      expect(response.status).toBe(400)
      expect(((await response.json()) as { error: string }).error).toContain(name)
    }
    expect(await job()).toBeUndefined()
  })
})
