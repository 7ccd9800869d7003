import { describe, expect, test } from 'vitest'
import { HostHealth } from '../../../src/engine/probe/host-health.ts'
import { noResponse } from '../../../src/engine/probe/probe-outcome.ts'
import { HOUR, MINUTE } from '../../../src/platform/clock.ts'
import { fakeClock } from '../../support/clock.ts'

const REFUSED = noResponse('connect', 'connect', 'ECONNREFUSED')
const TIMEOUT = noResponse('timeout', 'greeting', 'no greeting')

function memory() {
  const clock = fakeClock()
  return { clock, hosts: new HostHealth(clock) }
}

describe('exchangers', () => {
  test('are down after two failures, and the last one is what is told', () => {
    const { hosts } = memory()
    hosts.failed('mx.test', REFUSED)
    expect(hosts.cachedFailure('mx.test')).toBeNull()
    hosts.failed('mx.test', TIMEOUT)
    expect(hosts.cachedFailure('mx.test')).toEqual(TIMEOUT)
    expect(hosts.cachedFailure('other.test')).toBeNull()
  })

  test('are up again after a minute, and then two more failures are needed', async () => {
    const { hosts, clock } = memory()
    hosts.failed('mx.test', REFUSED)
    await clock.advance(MINUTE / 2)
    hosts.failed('mx.test', REFUSED)
    await clock.advance(MINUTE - 1)
    expect(hosts.cachedFailure('mx.test')).toEqual(REFUSED)
    await clock.advance(2)
    expect(hosts.cachedFailure('mx.test')).toBeNull()
    hosts.failed('mx.test', REFUSED)
    expect(hosts.cachedFailure('mx.test')).toBeNull()
  })

  test('are up again when it was no fault of theirs', () => {
    const { hosts } = memory()
    hosts.failed('mx.test', REFUSED)
    hosts.failed('mx.test', REFUSED)
    hosts.clearFailures()
    expect(hosts.cachedFailure('mx.test')).toBeNull()
  })

  test('reached in between are not down', () => {
    const { hosts } = memory()
    hosts.failed('mx.test', REFUSED)
    hosts.markReachable('mx.test')
    hosts.failed('mx.test', REFUSED)
    expect(hosts.cachedFailure('mx.test')).toBeNull()
  })
})

describe('TLS', () => {
  test('is wanted by policy where nothing is known', () => {
    const { hosts } = memory()
    expect(
      ['always', 'demanded', 'never'].map(policy =>
        hosts.requiresTls('mx.test', policy as 'always'),
      ),
    ).toEqual([true, false, false])
  })

  test('demanded is wanted for an hour, but never against the policy', async () => {
    const { hosts, clock } = memory()
    hosts.demandsTls('mx.test')
    expect(hosts.requiresTls('mx.test', 'demanded')).toBe(true)
    expect(hosts.requiresTls('mx.test', 'never')).toBe(false)
    expect(hosts.requiresTls('other.test', 'demanded')).toBe(false)
    await clock.advance(HOUR + 1)
    expect(hosts.requiresTls('mx.test', 'demanded')).toBe(false)
  })

  test('that fails is left out for an hour', async () => {
    const { hosts, clock } = memory()
    expect(hosts.tlsFailed('mx.test')).toBe(true)
    expect(hosts.requiresTls('mx.test', 'always')).toBe(false)
    await clock.advance(HOUR + 1)
    expect(hosts.requiresTls('mx.test', 'always')).toBe(true)
  })

  test('that fails where it is demanded cannot be left out', () => {
    const { hosts } = memory()
    hosts.demandsTls('mx.test')
    expect(hosts.tlsFailed('mx.test')).toBe(false)
    expect(hosts.requiresTls('mx.test', 'demanded')).toBe(true)
  })
})

describe('how a host has to be asked', () => {
  test('is remembered for an hour, each host for itself', async () => {
    const { hosts, clock } = memory()
    hosts.markOutOfStep('mx1.test')
    hosts.noteRecipientsMax('mx2.test', 10)
    const known = () =>
      ['mx1.test', 'mx2.test'].map(host => [hosts.isOutOfStep(host), hosts.recipientsMax(host)])
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
