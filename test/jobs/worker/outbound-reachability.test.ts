import { describe, expect, test } from 'vitest'
import { REFERENCE_MX_HOSTS } from '../../../src/engine/probe/outbound-reachability.ts'
import type { Dial } from '../../../src/engine/smtp/dial.ts'
import { type Clock, MINUTE, SECOND } from '../../../src/platform/clock.ts'
import { knows, mail } from '../../support/engine.ts'
import { createTestJob } from '../../support/job.ts'
import { refused, scriptedMx } from '../../support/mx.ts'
import type { ZoneEntry } from '../../support/zone.ts'

const DOMAINS = Array.from({ length: 300 }, (_, n) => `d${n}.test`)

type Firewall = 'rejects' | 'drops'

/**
 * Creates a job whose domains have their own MX hosts. Until `openAtMs` a firewall blocks all of
 * them and the reference hosts.
 */
async function startBehind(
  firewall: Firewall,
  openAtMs: number,
  flags: Record<string, string> = {},
) {
  const zone: Record<string, ZoneEntry> = Object.assign(
    {},
    ...DOMAINS.map((name, n) => mail(name, `192.0.2.${n % 250}`)),
    ...REFERENCE_MX_HOSTS.map(host => ({ [host]: { A: ['192.0.2.255'] } })),
  )
  const mx = scriptedMx(knows('ann'))
  let clock: Clock | null = null
  let dials = 0
  const dial: Dial = {
    ...mx,
    async connect(to, signal) {
      dials++
      if ((clock?.monotonicNow() ?? 0) >= startedAt + openAtMs) return mx.connect(to, signal)
      if (firewall === 'drops') await untilAborted(signal)
      throw refused(to)
    },
  }
  const fixture = await createTestJob({
    texts: DOMAINS.map(name => `ann@${name}`),
    zone,
    dial,
    flags,
  })
  clock = fixture.clock
  const startedAt = clock.monotonicNow()
  const elapsedMs = () => fixture.clock.monotonicNow() - startedAt
  return { ...fixture, elapsedMs, dials: () => dials }
}

const untilAborted = (signal: AbortSignal) =>
  new Promise<void>(resolve => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })

describe.each<Firewall>(['rejects', 'drops'])(
  'a list that starts behind a firewall that %s',
  firewall => {
    test('for half a minute loses no item', async () => {
      const { work, dials } = await startBehind(firewall, 30 * SECOND)
      expect(await work()).toMatchObject({ state: 'completed', deliverable: 300 })
      // Items in flight until the detection, at most twice; the reference hosts, twice; then all.
      expect(dials()).toBeLessThan(2 * 200 + 10 + 310)
    })

    test('permanently ends after the outbound port was probed again', async () => {
      const { work, dials, reasons, elapsedMs } = await startBehind(
        firewall,
        Number.POSITIVE_INFINITY,
      )
      expect(await work()).toMatchObject({ state: 'completed', unknown: 300 })
      expect(new Set(await reasons())).toEqual(new Set(['no_connect']))
      expect(elapsedMs()).toBeLessThan(MINUTE)
      expect(dials()).toBeLessThan(2 * 200 + 15)
    })

    test('does not probe items that were not in flight when it was detected', async () => {
      const { work, database, clock } = await startBehind(firewall, MINUTE, { concurrency: '20' })
      const stopping = new AbortController()
      clock.after(20 * SECOND, () => stopping.abort())
      await work({ stopping: stopping.signal })
      const items = await database.db.selectFrom('item').selectAll().execute()
      const postponed = items.filter(({ due_at, ready_at }) => due_at > (ready_at ?? 0))
      expect(items.filter(({ state }) => state === 'done')).toEqual([])
      expect(postponed.length).toBeLessThanOrEqual(2 * 20)
    })

    test('ends at once if the job does not wait', async () => {
      const { work, reasons, elapsedMs } = await startBehind(firewall, 30 * SECOND)
      expect(await work({ wait: false })).toMatchObject({ state: 'completed', unknown: 300 })
      expect(new Set(await reasons())).toEqual(new Set(['no_connect']))
      expect(elapsedMs()).toBeLessThan(15 * SECOND)
    })
  },
)
