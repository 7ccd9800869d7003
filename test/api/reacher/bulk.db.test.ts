import { describe, expect, test } from 'vitest'
import { onPostgres } from '../../support/database.ts'
import { knows, mail } from '../../support/engine.ts'
import { stopHalfway } from '../../support/list-service.ts'
import { scriptedMx } from '../../support/mx.ts'
import { tempPostgres } from '../../support/postgres-pool.ts'
import { createTestService } from '../../support/service.ts'
import { createWiredService } from '../../support/wired-service.ts'
import { zone } from '../../support/zone.ts'
import { progressFault, resultsFault } from './schema.ts'

const createService = (options: Parameters<typeof createTestService>[0] = {}) =>
  createTestService({ ...options, settings: { reacherApi: true } })

/**
 * Creates a service with a list, which is finished, or waits for a mail server if it has addresses
 * of `held.test`; `url` is its URL below a path of the API.
 */
async function withJob(path: string, input: readonly string[]) {
  const service = await createService(stopHalfway().options)
  const { json, finished, clock } = service
  const { job_id } = await json(path, { body: { input } })
  const url = `${path}/${job_id}`
  const { data } = (await json('/v1/jobs')) as { data: { items: { job_id: string }[] } }
  const id = data.items[0]?.job_id ?? ''
  const expected = input.filter(one => !one.endsWith('@held.test')).length
  if (expected === input.length) await finished(id)
  else while ((await json(url)).total_processed !== expected) await clock.advance(100)
  return { ...service, id, url, number: Number(job_id) }
}

type Results = { readonly results: { readonly input: string; readonly is_reachable: string }[] }

describe.each(['/v0/bulk', '/v1/bulk'])('%s', path => {
  test('creates a list whose ID is an integer, which grows', async () => {
    const { json, worker } = await createService()
    const body = { input: ['ann@a.test', 'nonsense'], input_type: 'array' }
    const { job_id: first } = await json(path, { body })
    const { job_id: second } = await json(path, { body })
    expect(Number.isSafeInteger(first)).toBe(true)
    expect(second).toBeGreaterThan(Number(first))
    expect(worker).toMatchObject({ taken: [expect.any(String), expect.any(String)] })
    const progress = await json(`${path}/${first}`)
    expect(progress).toEqual({
      job_id: first,
      created_at: expect.any(String),
      finished_at: null,
      total_records: 2,
      total_processed: 0,
      summary: { total_safe: 0, total_risky: 0, total_invalid: 0, total_unknown: 0 },
      job_status: 'Running',
    })
    expect(progressFault(progress)).toBeNull()
  })

  test('gives no number a second time, although the latest list was deleted', async () => {
    const { json, request, clock } = await createService()
    const body = { input: ['ann@a.test'] }
    const { job_id: first } = await json(path, { body })
    const { data } = (await json('/v1/jobs')) as { data: { items: { job_id: string }[] } }
    const [job] = data.items
    await json(`/v1/jobs/${job?.job_id}/cancel`, { method: 'POST' })
    await request(`/v1/jobs/${job?.job_id}`, { method: 'DELETE' })
    await clock.advance(1_000)
    const { job_id: second } = await json(path, { body })
    expect(second).toBeGreaterThan(Number(first))
  })

  test('has no results while it is running', async () => {
    const { request, url, number } = await withJob(path, ['valid@a.test', 'user@held.test'])
    const response = await request(`${url}/results`)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({
      error: `Job ${number} is still running, please try again later`,
    })
  })

  test('has results in the order of the list', async () => {
    const input = ['valid@a.test', 'invalid@a.test', 'risky@a.test', 'x']
    const { json, url } = await withJob(path, input)
    expect(await json(url)).toMatchObject({
      job_status: 'Completed',
      total_processed: 4,
      finished_at: expect.stringMatching(/^2026-06-01T12:/),
      summary: { total_safe: 1, total_risky: 1, total_invalid: 2, total_unknown: 0 },
    })
    const body = (await json(`${url}/results`)) as unknown as Results
    expect(resultsFault(body)).toBeNull()
    expect(body.results.map(({ input, is_reachable }) => [input, is_reachable])).toEqual([
      ['valid@a.test', 'safe'],
      ['invalid@a.test', 'invalid'],
      ['risky@a.test', 'risky'],
      ['x', 'invalid'],
    ])
  })

  test('has 50 results in a response unless another number is asked for', async () => {
    const texts = Array.from({ length: 120 }, (_, n) => `valid${n}@a.test`)
    const { json, url } = await withJob(path, texts)
    const inputs = async (query: string) =>
      ((await json(`${url}/results${query}`)) as unknown as Results).results.map(
        ({ input }) => input,
      )
    expect(await inputs('')).toEqual(texts.slice(0, 50))
    expect(await inputs('?limit=100&offset=10')).toEqual(texts.slice(10, 110))
    expect(await inputs('?offset=110')).toEqual(texts.slice(110))
    expect(await inputs('?offset=120')).toEqual([])
    expect(await inputs('?limit=0')).toEqual([])
  })

  test('has all results as CSV with the columns of Reacher', async () => {
    const { request, url } = await withJob(path, ['valid@a.test', 'invalid@a.test'])
    const response = await request(`${url}/results?format=csv`)
    expect(response.headers.get('Content-Type')).toBe('text/csv')
    expect((await response.text()).split('\r\n')).toEqual([
      'input,is_reachable,misc.is_disposable,misc.is_role_account,misc.gravatar_url,mx.accepts_mail,smtp.can_connect,smtp.has_full_inbox,smtp.is_catch_all,smtp.is_deliverable,smtp.is_disabled,syntax.is_valid_syntax,syntax.domain,syntax.username,error',
      expect.stringMatching(/^valid@a\.test,safe,false,/),
      expect.stringMatching(/^invalid@a\.test,invalid,false,/),
      '',
    ])
  })

  test('is completed when it was cancelled, and what is left is unknown', async () => {
    const { json, id, url } = await withJob(path, ['valid@a.test', 'user@held.test'])
    await json(`/v1/jobs/${id}/cancel`, { method: 'POST' })
    expect(await json(url)).toMatchObject({
      job_status: 'Completed',
      total_records: 2,
      total_processed: 2,
      summary: { total_safe: 1, total_unknown: 1 },
    })
    const body = (await json(`${url}/results`)) as unknown as Results
    expect(resultsFault(body)).toBeNull()
    expect(body.results[1]).toMatchObject({
      input: 'user@held.test',
      is_reachable: 'unknown',
      smtp: { error: { message: 'The list ended before this address was verified.' } },
    })
  })

  test('belongs to its account', async () => {
    const service = await withJob(path, ['valid@a.test'])
    await service.addAccount('acc_2')
    const key = await service.addKey({ accountId: 'acc_2' })
    const { url: own } = service
    for (const url of [own, `${own}/results`, `${path}/999`]) {
      const response = await service.request(url, { key })
      expect(response.status).toBe(404)
      expect(await response.json()).toMatchObject({
        error: expect.stringMatching(/^Job \S+ does not exist\.$/),
      })
    }
  })

  test.each([
    [{ input: [] }, 'Empty input'],
    [{}, 'The body needs "input", an array'],
    [{ input: [7] }, '"input[0]" is 7; it must be a string'],
    [{ input: ['a@a.test'], proxy: { host: '10.0.0.1', port: 1 } }, '"proxy" is not accepted'],
    [{ input: ['a@a.test'], smtp_ports: [25, 587] }, '"smtp_ports" is not accepted'],
    [{ input: ['a@a.test'], input_type: 'csv' }, '"input_type" must be "array"'],
    [
      { input: ['a@a.test'], webhook: { on_each_email: { url: 'https://b.test' } } },
      'Poll GET /v1/bulk/{job_id}, or create a webhook for batch.completed',
    ],
  ])('refuses %j', async (body, error) => {
    const { request, database } = await createService()
    const response = await request(path, { body })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: expect.stringContaining(error) })
    expect(await database.db.selectFrom('job').selectAll().execute()).toEqual([])
  })

  test('creates one list for an Idempotency-Key', async () => {
    const { json, database } = await createService()
    const o = { body: { input: ['ann@a.test'] }, headers: { 'Idempotency-Key': 'once' } }
    expect(await json(path, o)).toEqual(await json(path, o))
    expect(await database.db.selectFrom('job').selectAll().execute()).toHaveLength(1)
  })

  test('reserves credits as any list does', async () => {
    const { request } = await createService({ plan: 'free' })
    const input = Array.from({ length: 101 }, (_, n) => `user${n}@a.test`)
    const response = await request(path, { body: { input } })
    expect(response.status).toBe(429)
    expect(await response.json()).toMatchObject({ error: expect.stringMatching(/verifications/) })
  })
})

test('a client of Reacher verifies a list with only its base URL and secret changed', async () => {
  const { key, fetch } = await createWiredService({
    resolver: zone(mail('a.test', '192.0.2.1')),
    dial: scriptedMx(knows('ann', 'info')),
    ...(onPostgres && { databaseUrl: await tempPostgres() }),
    settings: {
      reacherApi: 'on',
      allowRanges: '192.0.2.0/24',
      specialDomains: 'on',
      sessionsPerSecond: '1000',
    },
  })
  // As public clients do it: the secret in every request, the ID put into the path as it came.
  const headers = { 'Content-Type': 'application/json', 'x-reacher-secret': key }
  const send = async (path: string, body?: object) => {
    const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    const response = await fetch(`https://ev.example.com${path}`, { headers, ...init })
    expect(response.status).toBe(200)
    return response.json()
  }
  expect(await send('/v1/check_email', { to_email: 'ann@a.test' })).toMatchObject({
    is_reachable: 'safe',
    smtp: { is_deliverable: true },
  })
  const input = ['ann@a.test', 'bob@a.test', 'info@a.test', 'nonsense', 'ann@gone.test']
  const { job_id } = (await send('/v1/bulk', { input })) as { job_id: number }
  const { data } = await fetch('https://ev.example.com/v1/jobs', {
    headers: { Authorization: `Bearer ${key}` },
  }).then(response => response.json() as Promise<{ data: { items: { job_id: string }[] } }>)
  // Waits for the worker; a client of Reacher polls.
  let progress: { job_status: string } = { job_status: '' }
  while (progress.job_status !== 'Completed') {
    await fetch(`https://ev.example.com/v1/jobs/${data.items[0]?.job_id}?wait=5`, {
      headers: { Authorization: `Bearer ${key}` },
    })
    progress = (await send(`/v1/bulk/${job_id}`)) as { job_status: string }
    expect(progressFault(progress)).toBeNull()
  }
  expect(progress).toMatchObject({
    total_records: 5,
    total_processed: 5,
    summary: { total_safe: 1, total_risky: 1, total_invalid: 3, total_unknown: 0 },
  })
  const body = (await send(`/v1/bulk/${job_id}/results?limit=5`)) as Results
  expect(resultsFault(body)).toBeNull()
  expect(body.results.map(({ is_reachable }) => is_reachable)).toEqual([
    ...['safe', 'invalid', 'risky', 'invalid', 'invalid'],
  ])
})
