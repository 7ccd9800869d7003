import { describe, expect, test } from 'vitest'
import { checkTimings, DEFAULT_TIMINGS, type Timings } from '../../src/compose/timings.ts'
import { FAST_TIMINGS } from '../support/fast-timings.ts'

describe('timings', () => {
  test.each([
    ['the default', DEFAULT_TIMINGS],
    ['those of tests', FAST_TIMINGS],
  ])('%s are consistent', (_, timings) => {
    expect(() => checkTimings(timings)).not.toThrow()
  })

  const { queue, cluster, rates: paces } = DEFAULT_TIMINGS
  test.each<[string, Partial<Timings>]>([
    ['a claim expires before it is renewed', { queue: { ...queue, touchMs: queue.aliveMs } }],
    ['an entry has two workers', { queue: { ...queue, aliveMs: queue.heartbeatMs } }],
    [
      'a member expires before it is suspected',
      { cluster: { ...cluster, silentMs: cluster.expiryMs } },
    ],
    ['no member can detect an expired one', { cluster: { ...cluster, touchMs: cluster.beatMs } }],
    [
      'a member with heartbeats expires',
      { cluster: { ...cluster, touchMs: cluster.expiryMs - 1 } },
    ],
    ['a ticket ends too soon', { rates: { ...paces, pollMs: paces.ticketMs } }],
    [
      'the short poll interval is the longer one',
      { rates: { ...paces, pollSoonMs: paces.pollMs + 1 } },
    ],
    ['an idle process polls more often', { rates: { ...paces, pollIdleMs: paces.pollMs - 1 } }],
  ])('are refused if %s', (_, wrong) => {
    expect(() => checkTimings({ ...DEFAULT_TIMINGS, ...wrong })).toThrow(RangeError)
  })
})
