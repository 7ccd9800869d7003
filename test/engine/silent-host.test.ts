import { describe, expect, test } from 'vitest'
import { onAbort } from '../../src/platform/abort.ts'
import { sleep } from '../../src/platform/clock.ts'
import { createTestEngine } from '../support/engine.ts'
import type { ZoneEntry } from '../support/zone.ts'

const SILENT = new Set(['192.0.2.1'])

/** Verifies an address on a network that drops all packets to the silent addresses. */
function verify(zone: Record<string, ZoneEntry>) {
  const { reason } = createTestEngine({
    zone,
    // The answer to AAAA arrives after the dial over IPv4 has started.
    resolver: (inner, clock) => ({
      async resolve(name, type, signal) {
        if (type === 'AAAA') await sleep(clock, 20)
        return inner.resolve(name, type, signal)
      },
    }),
    engine: { allowRanges: ['192.0.2.0/24', '2001:db8::/32'] },
    dial: mx => ({
      ...mx,
      connect: (to, signal) =>
        SILENT.has(to.ip)
          ? new Promise((_, reject) => onAbort(signal, () => reject(new Error('given up'))))
          : mx.connect(to, signal),
    }),
  })
  return reason('ann@a.test')
}

describe('a single verification at a silent address ends within its deadline', () => {
  test.each<[string, Record<string, ZoneEntry>]>([
    [
      'with the next exchanger',
      {
        'a.test': {
          MX: [
            [10, 'mx1.a.test'],
            [20, 'mx2.a.test'],
          ],
        },
        'mx1.a.test': { A: ['192.0.2.1'] },
        'mx2.a.test': { A: ['192.0.2.2'] },
      },
    ],
    [
      'with the next address',
      { 'a.test': { MX: [[10, 'mx.a.test']] }, 'mx.a.test': { A: ['192.0.2.1', '192.0.2.2'] } },
    ],
    [
      'over IPv6 if IPv4 is blocked',
      {
        'a.test': { MX: [[10, 'mx.a.test']] },
        'mx.a.test': { A: ['192.0.2.1'], AAAA: ['2001:db8::1'] },
      },
    ],
  ])('%s', async (_, zone) => {
    expect(await verify(zone)).toBe('accepted_email')
  })
})
