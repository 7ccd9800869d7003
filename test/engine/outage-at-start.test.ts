import { describe, expect, test } from 'vitest'
import { REFERENCE_MX_HOSTS } from '../../src/engine/probe/outbound-reachability.ts'
import { SECOND, sleep } from '../../src/platform/clock.ts'
import { createTestEngine, mail, reasonsOf } from '../support/engine.ts'
import type { ZoneEntry } from '../support/zone.ts'

const DOMAINS = Array.from({ length: 30 }, (_, i) => `d${i}.test`)
const ADDRESSES = DOMAINS.flatMap(domain => [`ann@${domain}`, `bob@${domain}`])
const ZONE: Record<string, ZoneEntry> = Object.assign(
  {},
  ...DOMAINS.map((domain, i) => mail(domain, `192.0.2.${i + 10}`)),
  ...REFERENCE_MX_HOSTS.map((host, i) => ({ [host]: { A: [`192.0.2.${i + 100}`] } })),
)

/** A list on a network that refuses all connections for its first `outageMs`. */
async function verifyList(outageMs: number) {
  const { many, engine } = createTestEngine({
    zone: ZONE,
    engine: { sessionsPerSecond: 1 },
    dial: (mx, clock) => {
      const endsAt = clock.monotonicNow() + outageMs
      return {
        ...mx,
        async connect(to, signal) {
          await sleep(clock, 50)
          if (clock.monotonicNow() >= endsAt) return mx.connect(to, signal)
          const code = 'ECONNREFUSED'
          throw Object.assign(new Error(`connect ${code} ${to.ip}:${to.port}`), { code })
        },
      }
    },
  })
  const reasons = reasonsOf(await many(ADDRESSES))
  await engine.close()
  return reasons.toSorted()
}

const all = (reason: string) => ADDRESSES.map(text => `${text} ${reason}`).toSorted()

describe('a list on a network that refuses all connections, as with a proxy that starts later', () => {
  test('has all its results if that ends within half a minute', async () => {
    expect(await verifyList(15 * SECOND)).toEqual(all('accepted_email'))
  })

  test('ends if it lasts longer', async () => {
    expect(await verifyList(120 * SECOND)).toEqual(all('no_connect'))
  })
})
