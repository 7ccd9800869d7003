import { expect, test } from 'vitest'
import { IP_LIMITS, mergePlans } from '../../src/accounts/plan.ts'
import { MINUTE } from '../../src/platform/clock.ts'
import { stopHalfway, submitHalfway } from '../support/list-service.ts'
import { createTestService } from '../support/service.ts'

type ListedLimit = {
  readonly name: string
  readonly text: string
  readonly limit: number
  readonly remaining: number
  readonly window_seconds: number | null
  readonly resets_at: string | null
}

async function limited(o: Parameters<typeof createTestService>[0] = {}) {
  const h = await createTestService(o)
  const listedLimits = async (request: Parameters<typeof h.json>[1] = {}) =>
    ((await h.json('/v1/limits', request)) as { data: { limits: ListedLimit[] } }).data.limits
  const left = async (request: Parameters<typeof h.json>[1] = {}) =>
    Object.fromEntries((await listedLimits(request)).map(one => [one.name, one.remaining]))
  const verify = (email: string, request: Parameters<typeof h.json>[1] = {}) =>
    h.json('/v1/verify/single', { body: { email, check_smtp: false }, ...request })
  return { ...h, listedLimits, left, verify }
}

test('all limits of the key and its IP address are listed, with their windows', async () => {
  const { listedLimits } = await limited({ plan: 'free' })
  const [inMinute, inHour] = ['2026-06-01T12:01:00.000Z', '2026-06-01T13:00:00.000Z']
  expect(await listedLimits()).toEqual([
    {
      name: 'ip:single',
      text: 'Single verifications from your IP address',
      limit: 100,
      remaining: 100,
      window_seconds: 60,
      resets_at: inMinute,
    },
    {
      name: 'ip:bulk',
      text: 'Lists from your IP address',
      limit: 10,
      remaining: 10,
      window_seconds: 3_600,
      resets_at: inHour,
    },
    {
      name: 'ip:form',
      text: 'Verifications for forms from your IP address',
      limit: 30,
      remaining: 30,
      window_seconds: 60,
      resets_at: inMinute,
    },
    {
      name: 'account:plan',
      text: 'Requests with all keys of your account, limit of your plan',
      limit: 10,
      remaining: 9,
      window_seconds: 60,
      resets_at: inMinute,
    },
    {
      name: 'credits',
      text: 'Daily verifications of your plan',
      limit: 100,
      remaining: 100,
      window_seconds: 86_400,
      resets_at: '2026-06-02T00:00:00.000Z',
    },
    {
      name: 'concurrent_jobs',
      text: 'Unfinished lists of your account',
      limit: 10,
      remaining: 10,
      window_seconds: null,
      resets_at: null,
    },
    {
      name: 'stored_rows',
      text: 'Stored rows of your account',
      limit: 100_000,
      remaining: 100_000,
      window_seconds: null,
      resets_at: null,
    },
    {
      name: 'stored_feedback',
      text: 'Stored feedback of your account',
      limit: 100_000,
      remaining: 100_000,
      window_seconds: null,
      resets_at: null,
    },
  ])
})

test('unfinished lists and stored rows are counted until lists finish and are deleted', async () => {
  const service = await limited({ plan: 'free', ...stopHalfway().options })
  const { left, submit, finished, json, request } = service
  const done = await submit(['valid@a.test', 'invalid@a.test'])
  await finished(done)
  const open = await submitHalfway(service)
  expect(await left()).toMatchObject({ concurrent_jobs: 9, stored_rows: 99_992 })
  await json(`/v1/jobs/${open}/cancel`, { method: 'POST' })
  await request(`/v1/jobs/${done}`, { method: 'DELETE' })
  expect(await left()).toMatchObject({ concurrent_jobs: 10, stored_rows: 99_994 })
})

test('limits of storage that the plan does not have are not listed', async () => {
  const plans = mergePlans({
    free: { concurrentJobs: null, storedRows: null, storedFeedback: null },
  })
  const { left } = await limited({ plan: 'free', settings: { plans } })
  expect(Object.keys(await left())).toEqual([
    'ip:single',
    'ip:bulk',
    'ip:form',
    'account:plan',
    'credits',
  ])
})

test('used limits are shown until they reset', async () => {
  const { left, verify, json, clock, listedLimits } = await limited({ plan: 'starter' })
  await verify('ann@good.test')
  await clock.advance(MINUTE / 2)
  await json('/v1/verify/batch', { body: { emails: ['ann@good.test'] } })
  expect(await left()).toMatchObject({ 'ip:single': 99, 'ip:bulk': 9, 'account:plan': 8 })
  expect((await listedLimits())[0]).toMatchObject({ resets_at: '2026-06-01T12:01:00.000Z' })
  await clock.advance(MINUTE / 2)
  expect(await left()).toMatchObject({ 'ip:single': 100, 'ip:bulk': 9, 'account:plan': 9 })
})

test('the own limit of a key is listed, and its IP address has separate limits', async () => {
  const { left, verify, addKey } = await limited()
  const key = await addKey({ rateLimitPerMinute: 7 })
  await verify('ann@good.test', { key })
  expect(await left({ key })).toMatchObject({ 'ip:single': 99, 'key:own': 5 })
  expect(await left({ key, ip: '203.0.113.9' })).toMatchObject({
    'ip:single': IP_LIMITS.singlePerMinute,
    'key:own': 4,
  })
  expect(Object.keys(await left())).not.toContain('key:own')
})

test('a session has its own limit in addition to those of its key', async () => {
  const { left } = await limited({ plan: 'free' })
  const session = { keyId: 'key_1', sessionId: 'ses_a', secretExpiresAt: null }
  await left({ key: null, session })
  expect(await left({ key: null, session })).toEqual({
    'ip:single': 100,
    'ip:bulk': 10,
    'ip:form': 30,
    'account:plan': 10,
    session: 598,
    credits: 100,
    concurrent_jobs: 10,
    stored_rows: 100_000,
    stored_feedback: 100_000,
  })
})

test('only limits of the plan are listed if rate limits are off', async () => {
  const settings = { limits: false }
  const ofLists = { concurrent_jobs: 10, stored_rows: 100_000, stored_feedback: 100_000 }
  const free = await limited({ plan: 'free', settings })
  expect(await free.left()).toEqual({ credits: 100, ...ofLists })
  const other = await limited({ settings })
  expect(await other.left()).toEqual({
    concurrent_jobs: 200,
    stored_rows: 100_000_000,
    stored_feedback: 100_000_000,
  })
})
