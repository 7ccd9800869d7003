import { describe, expect, test } from 'vitest'
import { checkTimings, DEFAULT_TIMINGS, type Timings } from '../../src/compose/timings.ts'
import { FAST_TIMINGS } from '../support/fast-timings.ts'

describe('timings', () => {
  test.each([
    ['the default', DEFAULT_TIMINGS],
    ['those of tests', FAST_TIMINGS],
  ])('%s agree with one another', (_, timings) => {
    expect(() => checkTimings(timings)).not.toThrow()
  })

  const { queue, cluster, rates: paces } = DEFAULT_TIMINGS
  test.each<[string, Partial<Timings>]>([
    ['a claim is lost before it is kept', { queue: { ...queue, touchMs: queue.aliveMs } }],
    ['an entry has two workers', { queue: { ...queue, aliveMs: queue.heartbeatMs } }],
    ['a member dies before it is silent', { cluster: { ...cluster, silentMs: cluster.expiryMs } }],
    ['no member can tell who is dead', { cluster: { ...cluster, touchMs: cluster.beatMs } }],
    ['a member that beats is dead', { cluster: { ...cluster, touchMs: cluster.expiryMs - 1 } }],
    ['a ticket ends too soon', { rates: { ...paces, pollMs: paces.ticketMs } }],
    ['a short look is the longer one', { rates: { ...paces, pollSoonMs: paces.pollMs + 1 } }],
  ])('are refused where %s', (_, wrong) => {
    expect(() => checkTimings({ ...DEFAULT_TIMINGS, ...wrong })).toThrow(RangeError)
  })
})
