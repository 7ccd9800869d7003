import { describe, expect, test } from 'vitest'
import { SCORES } from '../../../src/api/verify/verify.ts'
import { REASONS, VERDICT_BY_REASON } from '../../../src/engine/verdict/reason.ts'
import { estimatedTime } from '../../../src/jobs/waits/estimate.ts'
import { MINUTE } from '../../../src/platform/clock.ts'
import { seedJob } from '../../support/job-rows.ts'
import { createTestService } from '../../support/service.ts'

describe('the estimated time', () => {
  const createEstimator = async (sessionsPerSecond = 1) => {
    const { service } = await createTestService({ engine: { engine: { sessionsPerSecond } } })
    const estimate = (domains: Record<string, number>, sandbox = false, checkSmtp = true) =>
      estimatedTime(service, {
        jobId: null,
        domains: new Map(Object.entries(domains)),
        sandbox,
        checkSmtp,
      })
    return { service, estimate }
  }

  // 20 addresses a second for each operator, and 5 seconds to start.
  test.each([
    [0, '10 seconds'],
    [2, '10 seconds'],
    [400, '30 seconds'],
    [2_000, '2 minutes'],
    [50_000, '42 minutes'],
  ])('of %d addresses at one operator is %s', async (addresses, words) => {
    const { estimate } = await createEstimator()
    expect(await estimate({ 'a.test': addresses })).toBe(words)
  })

  test('is that of the slowest operator, as all are probed at the same time', async () => {
    const { estimate } = await createEstimator()
    expect(await estimate({ 'a.test': 400, 'b.test': 400, 'c.test': 5 })).toBe('30 seconds')
  })

  test('uses the rate limit table of an operator: five recipients in each connection', async () => {
    const { estimate } = await createEstimator()
    // 80 connections of one session, two seconds each.
    expect(await estimate({ 'secureserver.net': 400 })).toBe('3 minutes')
  })

  test('of many small domains is bounded by the total of concurrent connections', async () => {
    const { estimate } = await createEstimator()
    const domains = Array.from({ length: 10_000 }, (_, n) => [`d${n}.test`, 1] as const)
    expect(await estimate(Object.fromEntries(domains))).toBe('2 minutes')
  })

  test('follows the rate of the settings', async () => {
    const { estimate } = await createEstimator(0.5)
    expect(await estimate({ 'a.test': 400 })).toBe('50 seconds')
  })

  test('includes a pause of the operator', async () => {
    const { service, estimate } = await createEstimator()
    service.engine
      .rateController('a.test', service.engine.egresses[0] as string)
      .throttled(10 * MINUTE)
    expect(await estimate({ 'a.test': 2 })).toBe('11 minutes')
  })

  test('includes the backlog of other lists, which take turns', async () => {
    const { service, estimate } = await createEstimator()
    await seedJob(service.database, { texts: usersAt('a.test', 5_000), done: 0 })
    expect(await estimate({ 'a.test': 2_000 })).toBe('4 minutes')
    expect(await estimate({ 'a.test': 400 })).toBe('50 seconds')
  })

  test('is short if no mail server is probed', async () => {
    const { estimate } = await createEstimator()
    expect(await estimate({ 'a.test': 10_000 }, false, false)).toBe('20 seconds')
  })

  test('is short if simulated', async () => {
    const { estimate } = await createEstimator()
    expect(await estimate({ 'a.test': 1 }, true)).toBe('1 second')
    expect(await estimate({ 'a.test': 5_000 }, true)).toBe('1 second')
    expect(await estimate({ 'a.test': 50_000 }, true)).toBe('10 seconds')
  })
})

const usersAt = (domain: string, count: number) =>
  Array.from({ length: count }, (_, n) => `u${n}@${domain}`)

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
