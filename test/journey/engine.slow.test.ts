import { expect, onTestFinished, test } from 'vitest'
import { createEngine } from '../../src/index.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { startSimulator } from '../../src/simulator/simulator.ts'

test('verifying one address without a cache takes six round trips, including DNS', async () => {
  // Long enough that a busy machine does not add a round trip.
  const roundTripMs = 1_500
  const simulator = await startSimulator({
    roundTripMs,
    mailboxes: ['ann'],
    domains: { 'far.test': { mx: [[10, 'mx.far.test']] } },
    hosts: { 'mx.far.test': { behavior: 'polite' } },
  })
  onTestFinished(() => simulator.close())
  const engine = createEngine({
    dns: [simulator.dnsAddress],
    smtpPort: simulator.smtpPort,
    allowRanges: ['127.0.0.0/8'],
    specialDomains: true,
    helo: 'probe.test',
    sessionsPerSecond: 1_000,
    deadlineMs: 60_000,
  })
  onTestFinished(() => engine.close())
  // The first address loads the name lists; it needs no round trip.
  await engine.verify('ann@host.localhost', { checkSmtp: false })
  const startedAt = systemClock.monotonicNow()
  const { verdict } = await engine.verify('ann@far.test')
  const trips = (systemClock.monotonicNow() - startedAt) / roundTripMs
  expect(verdict.reason).toBe('accepted_email')
  expect(trips).toBeGreaterThan(5.5)
  expect(Math.floor(trips)).toBeLessThanOrEqual(6)
})
