import { expect, test } from 'vitest'
import { toClass } from '../../../src/engine/verdict/verdict.ts'
import { MINUTE } from '../../../src/platform/clock.ts'
import { RANDOM_TRIES_MAX, TRIES_MAX, unreliableScenario } from '../../engine/random-operators.ts'
import type { FakeClock } from '../../support/clock.ts'
import { createTestJob } from '../../support/job.ts'
import { runs } from '../../support/property.ts'

/** The same simulations in each run: a partial run tries the first ones. */
const SEEDS = Array.from({ length: runs(40) }, (_, n) => n + 1)
/** Every third list is stopped after some minutes and resumed. */
const isStopped = (seed: number) => seed % 3 === 0

test.each(SEEDS)(
  'a list at unreliable operators gets one result per row within the limits of connections and tries: %i',
  async seed => {
    let clock: FakeClock | null = null
    const simulation = unreliableScenario(seed, () => clock as FakeClock)
    const { texts, ledger, egresses, ...options } = simulation
    const fixture = await createTestJob({ texts, ...options, structures: { egresses } })
    clock = fixture.clock
    const stopping = new AbortController()
    const stopAtMs = (seed % 7) * MINUTE + seed * 50
    const cancel = isStopped(seed) ? clock.after(stopAtMs, () => stopping.abort()) : () => {}
    let job = await fixture.work({ stopping: stopping.signal })
    cancel()
    if (job.state !== 'completed') job = await fixture.work()
    await clock.advance(MINUTE)

    expect(fixture.loggedErrors).toEqual([])
    const rows = job.deliverable + job.risky + job.undeliverable + job.unknown
    expect([job.state, job.done, rows]).toEqual(['completed', texts.length, texts.length])
    for (const [n, result] of (await fixture.results()).entries()) {
      const klass = result === null ? 'none' : toClass(result.verdict)
      expect(simulation.classes(texts[n] as string)).toContain(klass)
    }
    expect(ledger.peak).toBeLessThanOrEqual(simulation.sessionsMax)
    // Items in flight at a stop are probed again.
    expect(ledger.mostAnswers).toBeLessThanOrEqual(TRIES_MAX + (isStopped(seed) ? 1 : 0))
    expect(ledger.mostRandomAnswers).toBeLessThanOrEqual(RANDOM_TRIES_MAX)
    expect(ledger.open).toBe(0)
  },
)
