import { describe, expect, test } from 'vitest'
import { SCORES } from '../../../src/api/verify/verify.ts'
import { REASONS, VERDICT_BY_REASON } from '../../../src/engine/verdict/reason.ts'
import { createUploadService } from '../../support/list-form.ts'
import { users } from '../../support/recipients.ts'
import { createTestService } from '../../support/service.ts'

/** Returns the estimated time of a list with so many addresses at each of these domains. */
async function estimate(
  domains: Readonly<Record<string, number>>,
  { sessionsPerSecond = 1, body = {}, headers = {}, before = {} }: EstimateOptions = {},
): Promise<unknown> {
  const { json, submit } = await createTestService({
    settings: { limits: false },
    engine: { engine: { sessionsPerSecond } },
  })
  if (Object.keys(before).length > 0) await submit(usersAt(before))
  const sent = { ...body, emails: usersAt(domains) }
  return (await json('/v1/verify/batch', { body: sent, headers })).estimated_time
}

type EstimateOptions = {
  readonly sessionsPerSecond?: number
  /** More fields of the request. */
  readonly body?: object
  readonly headers?: Readonly<Record<string, string>>
  /** A list that was submitted before. */
  readonly before?: Readonly<Record<string, number>>
}

const usersAt = (domains: Readonly<Record<string, number>>) =>
  Object.entries(domains).flatMap(([domain, count]) => users(count, domain))

describe('the estimated time', () => {
  // 20 addresses a second for each operator, and 5 seconds to start.
  test.each([
    [2, '10 seconds'],
    [400, '30 seconds'],
    [2_000, '2 minutes'],
  ])('of %d addresses at one operator is %s', async (addresses, words) => {
    expect(await estimate({ 'a.test': addresses })).toBe(words)
  })

  test('of 50,000 addresses is 42 minutes, before they are submitted', async () => {
    const { upload } = await createUploadService({
      engine: { engine: { sessionsPerSecond: 1 } },
    })
    const list = `email\n${users(50_000).join('\n')}\n`
    expect(await (await upload(list, { dry_run: 'true' })).json()).toMatchObject({
      rows: 50_000,
      estimated_time: '42 minutes',
    })
  })

  test('is that of the slowest operator, as all are probed at the same time', async () => {
    expect(await estimate({ 'a.test': 400, 'b.test': 400, 'c.test': 5 })).toBe('30 seconds')
  })

  test('uses the rate limit table of an operator: five recipients in each connection', async () => {
    // 80 connections of one session, two seconds each.
    expect(await estimate({ 'secureserver.net': 400 })).toBe('3 minutes')
  })

  test('of many small domains is bounded by the total of concurrent connections', async () => {
    const domains = Array.from({ length: 10_000 }, (_, n) => [`d${n}.test`, 1] as const)
    expect(await estimate(Object.fromEntries(domains))).toBe('2 minutes')
  })

  test('follows the rate of the settings', async () => {
    expect(await estimate({ 'a.test': 400 }, { sessionsPerSecond: 0.5 })).toBe('50 seconds')
  })

  test('includes the backlog of other lists, which take turns', async () => {
    const before = { 'a.test': 5_000 }
    expect(await estimate({ 'a.test': 2_000 }, { before })).toBe('4 minutes')
    expect(await estimate({ 'a.test': 400 }, { before })).toBe('50 seconds')
  })

  test('is short if no mail server is probed', async () => {
    const body = { check_smtp: false }
    expect(await estimate({ 'a.test': 10_000 }, { body })).toBe('20 seconds')
  })

  test('is short if simulated', async () => {
    const headers = { 'X-EV-Sandbox': 'true' }
    expect(await estimate({ 'a.test': 1 }, { headers })).toBe('1 second')
    expect(await estimate({ 'a.test': 5_000 }, { headers })).toBe('1 second')
  })
})

describe('the score', () => {
  test('is 0 for undeliverable reasons, and highest for accepted ones', () => {
    for (const reason of REASONS) {
      const { valid, risk } = VERDICT_BY_REASON[reason]
      if (!valid && risk !== 'unknown') expect(SCORES[reason]).toBe(0)
      else expect(SCORES[reason]).toBeGreaterThan(0)
      expect(SCORES[reason]).toBeLessThanOrEqual(SCORES.accepted_email)
    }
  })

  test('decreases with risk', () => {
    const of = (risk: string) =>
      REASONS.filter(
        reason => VERDICT_BY_REASON[reason].risk === risk && VERDICT_BY_REASON[reason].valid,
      ).map(reason => SCORES[reason])
    expect(Math.max(...of('high'))).toBeLessThan(Math.min(...of('medium')))
    expect(Math.max(...of('medium'))).toBeLessThan(Math.min(...of('low')))
  })
})
