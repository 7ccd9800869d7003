import { describe, expect, test } from 'vitest'
import { HostHealth } from '../../../src/engine/probe/host-health.ts'
import { noResponse } from '../../../src/engine/probe/probe-outcome.ts'
import { ServedAddresses } from '../../../src/engine/probe/served-addresses.ts'
import { ServerLimits } from '../../../src/engine/probe/server-limits.ts'
import type { RecipientOutcome } from '../../../src/engine/smtp/classify-reply.ts'
import { HOUR, MINUTE } from '../../../src/platform/clock.ts'
import { fakeClock } from '../../support/clock.ts'

const down = (answer: RecipientOutcome) => ({ answer, isLost: false, isBrief: false })
const REFUSED = down(noResponse('connect', 'connect', 'ECONNREFUSED'))
const TIMEOUT = down(noResponse('timeout', 'greeting', 'no greeting'))

function memory() {
  const clock = fakeClock()
  return { clock, hosts: new HostHealth(clock, new ServedAddresses(clock)) }
}

describe('MX groups', () => {
  test('are down after two failures and return the last one', () => {
    const { hosts } = memory()
    hosts.failed('mx.test', REFUSED)
    expect(hosts.cachedFailure('mx.test')).toBeNull()
    hosts.failed('mx.test', TIMEOUT)
    expect(hosts.cachedFailure('mx.test')).toMatchObject(TIMEOUT)
    expect(hosts.cachedFailure('other.test')).toBeNull()
  })

  test('are up again after a minute, and then two more failures are needed', async () => {
    const { hosts, clock } = memory()
    hosts.failed('mx.test', REFUSED)
    await clock.advance(MINUTE / 2)
    hosts.failed('mx.test', REFUSED)
    await clock.advance(MINUTE - 1)
    expect(hosts.cachedFailure('mx.test')).toMatchObject(REFUSED)
    await clock.advance(2)
    expect(hosts.cachedFailure('mx.test')).toBeNull()
    hosts.failed('mx.test', REFUSED)
    expect(hosts.cachedFailure('mx.test')).toBeNull()
  })

  test('are up again after the failures are cleared', () => {
    const { hosts } = memory()
    hosts.failed('mx.test', REFUSED)
    hosts.failed('mx.test', REFUSED)
    hosts.clearFailures()
    expect(hosts.cachedFailure('mx.test')).toBeNull()
  })

  test('are not down after a success in between', () => {
    const { hosts } = memory()
    hosts.failed('mx.test', REFUSED)
    hosts.markReachable('mx.test')
    hosts.failed('mx.test', REFUSED)
    expect(hosts.cachedFailure('mx.test')).toBeNull()
  })
})

describe('TLS', () => {
  test('follows the policy if nothing is cached', () => {
    const { hosts } = memory()
    expect(
      ['always', 'demanded', 'never'].map(policy =>
        hosts.requiresTls('mx.test', policy as 'always'),
      ),
    ).toEqual([true, false, false])
  })

  test('is required for an hour after a demand, unless the policy is never', async () => {
    const { hosts, clock } = memory()
    hosts.demandsTls('mx.test')
    expect(hosts.requiresTls('mx.test', 'demanded')).toBe(true)
    expect(hosts.requiresTls('mx.test', 'never')).toBe(false)
    expect(hosts.requiresTls('other.test', 'demanded')).toBe(false)
    await clock.advance(HOUR + 1)
    expect(hosts.requiresTls('mx.test', 'demanded')).toBe(false)
  })

  test('that fails is skipped for an hour', async () => {
    const { hosts, clock } = memory()
    expect(hosts.tlsFailed('mx.test')).toBe(true)
    expect(hosts.requiresTls('mx.test', 'always')).toBe(false)
    await clock.advance(HOUR + 1)
    expect(hosts.requiresTls('mx.test', 'always')).toBe(true)
  })

  test('that fails is still required by a host that demands it', () => {
    const { hosts } = memory()
    hosts.demandsTls('mx.test')
    expect(hosts.tlsFailed('mx.test')).toBe(false)
    expect(hosts.requiresTls('mx.test', 'demanded')).toBe(true)
  })
})

describe('replies out of step, and the limits of transactions', () => {
  test('are cached for an hour, per host', async () => {
    const { hosts, clock } = memory()
    const limits = new ServerLimits(clock)
    hosts.markOutOfStep('mx1.test')
    limits.noteRecipientsMax('mx2.test', 10)
    const known = () =>
      ['mx1.test', 'mx2.test'].map(host => [hosts.isOutOfStep(host), limits.recipientsMax(host)])
    expect(known()).toEqual([
      [true, Number.POSITIVE_INFINITY],
      [false, 10],
    ])
    await clock.advance(HOUR + 1)
    expect(known()).toEqual([
      [false, Number.POSITIVE_INFINITY],
      [false, Number.POSITIVE_INFINITY],
    ])
  })
})
