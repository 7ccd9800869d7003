import { describe, expect, test } from 'vitest'
import { createAlerts } from '../../../src/dashboard/health/create-health.ts'
import type { OperatorsStatus } from '../../../src/dashboard/health/source.ts'
import type { Html } from '../../../src/dashboard/page/html.ts'
import { MINUTE, SECOND } from '../../../src/platform/clock.ts'
import { fakeClock } from '../../support/clock.ts'
import { operatorStatus, operatorsOf, refusalWith } from './status.ts'

const blocking = (skipped: number, othersAsk = false) =>
  operatorStatus({
    title: 'Outlook.com',
    othersAsk,
    refusal: refusalWith('no', { skipped: skipped }),
  })

function createAlertSource(status: OperatorsStatus) {
  const clock = fakeClock()
  let reads = 0
  const now = { status }
  const alert = createAlerts(() => {
    reads++
    return now.status
  }, clock)
  return { clock, alert, now, reads: () => reads }
}

/** Returns the text without markup. */
const textOf = (alert: Html | null) =>
  alert === null
    ? null
    : String(alert)
        .replaceAll(/<[^>]+>/g, '')
        .replaceAll(/\s+/g, ' ')

const alertText = (status: OperatorsStatus) => textOf(createAlertSource(status).alert())

describe('the alert for admins', () => {
  test('is null if all is well, or if an operator is only paused', () => {
    const pause = { since: 0, until: 1, why: 'throttled' } as const
    expect(alertText(operatorsOf([operatorStatus(), operatorStatus({ pause })]))).toBeNull()
  })

  test('reports that no mail server is reachable, since when, and from which of several egresses', () => {
    const closedSince = Date.UTC(2026, 5, 1, 11, 40)
    const closed = { name: 'b', closedSince, port: 25 }
    expect(alertText(operatorsOf([], { egresses: [closed] }))).toBe(
      'No mail server has been reachable on port 25 since 2026-06-01 11:40 UTC. See Health for the cause and the fix.',
    )
    const open = { name: 'a', closedSince: null, port: 25 }
    expect(alertText(operatorsOf([], { egresses: [open, closed] }))).toContain(
      'from the egress &quot;b&quot; since',
    )
  })

  test('reports a provider that blocks this service, once a whole connection of addresses was blocked', () => {
    expect(alertText(operatorsOf([blocking(19)]))).toBeNull()
    expect(alertText(operatorsOf([blocking(1_234)]))).toBe(
      'Outlook.com has been blocking this service since 2026-06-01 12:00 UTC: 1,234 addresses are unknown because of it. See Health for the cause and the fix.',
    )
  })

  test('ignores a block that another egress takes over, or that has expired', async () => {
    expect(alertText(operatorsOf([blocking(20, true)]))).toBeNull()
    const { clock, alert } = createAlertSource(operatorsOf([blocking(20)]))
    await clock.advance(30 * MINUTE)
    expect(alert()).toBeNull()
  })

  test('is refreshed every five seconds, however many pages are rendered', async () => {
    const { clock, alert, now, reads } = createAlertSource(operatorsOf([]))
    for (let page = 0; page < 100; page++) alert()
    expect(reads()).toBe(1)
    now.status = operatorsOf([blocking(20)])
    await clock.advance(5 * SECOND - 1)
    expect(alert()).toBeNull()
    await clock.advance(1)
    expect(textOf(alert())).toContain('Outlook.com')
    expect(reads()).toBe(2)
  })
})
