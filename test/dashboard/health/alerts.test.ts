import { describe, expect, test } from 'vitest'
import { createAlerts } from '../../../src/dashboard/health/create-health.ts'
import type { OperatorsStatus } from '../../../src/dashboard/health/source.ts'
import type { Html } from '../../../src/dashboard/page/html.ts'
import { MINUTE, SECOND } from '../../../src/platform/clock.ts'
import { fakeClock } from '../../support/clock.ts'
import { operatorStatus, operatorsOf, refusalWith } from './status.ts'

const refusing = (skipped: number, othersAsk = false) =>
  operatorStatus({
    title: 'Outlook.com',
    othersAsk,
    refusal: refusalWith('no', { skipped: skipped }),
  })

function troubled(status: OperatorsStatus) {
  const clock = fakeClock()
  let looks = 0
  const now = { status }
  const trouble = createAlerts(() => {
    looks++
    return now.status
  }, clock)
  return { clock, trouble, now, looks: () => looks }
}

/** Returns the text without markup. */
const wordsOf = (trouble: Html | null) =>
  trouble === null
    ? null
    : String(trouble)
        .replaceAll(/<[^>]+>/g, '')
        .replaceAll(/\s+/g, ' ')

const troubleOf = (status: OperatorsStatus) => wordsOf(troubled(status).trouble())

describe('the alert for admins', () => {
  test('is null if all is well, or if an operator is only paused', () => {
    const pause = { since: 0, until: 1, why: 'throttled' } as const
    expect(troubleOf(operatorsOf([operatorStatus(), operatorStatus({ pause })]))).toBeNull()
  })

  test('reports that no mail server is reachable, since when, and from which of several egresses', () => {
    const closedSince = Date.UTC(2026, 5, 1, 11, 40)
    const closed = { name: 'b', closedSince, port: 25 }
    expect(troubleOf(operatorsOf([], { egresses: [closed] }))).toBe(
      'No mail server has been reachable on port 25 since 2026-06-01 11:40:00 UTC. See Health for the cause and the fix.',
    )
    const open = { name: 'a', closedSince: null, port: 25 }
    expect(troubleOf(operatorsOf([], { egresses: [open, closed] }))).toContain(
      'from the egress “b” since',
    )
  })

  test('reports an operator that blocks this service, from one connection’s worth of addresses on', () => {
    expect(troubleOf(operatorsOf([refusing(19)]))).toBeNull()
    expect(troubleOf(operatorsOf([refusing(1_234)]))).toBe(
      'Outlook.com has been blocking this service since 2026-06-01 12:00:00 UTC: 1,234 addresses are unknown because of it. See Health for the cause and the fix.',
    )
  })

  test('ignores a block that another egress takes over, or that has expired', async () => {
    expect(troubleOf(operatorsOf([refusing(20, true)]))).toBeNull()
    const { clock, trouble } = troubled(operatorsOf([refusing(20)]))
    await clock.advance(30 * MINUTE)
    expect(trouble()).toBeNull()
  })

  test('is refreshed every five seconds, however many pages are rendered', async () => {
    const { clock, trouble, now, looks } = troubled(operatorsOf([]))
    for (let page = 0; page < 100; page++) trouble()
    expect(looks()).toBe(1)
    now.status = operatorsOf([refusing(20)])
    await clock.advance(5 * SECOND - 1)
    expect(trouble()).toBeNull()
    await clock.advance(1)
    expect(wordsOf(trouble())).toContain('Outlook.com')
    expect(looks()).toBe(2)
  })
})
