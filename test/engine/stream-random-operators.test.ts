import { expect, test } from 'vitest'
import { classOf } from '../../src/index.ts'
import { MINUTE } from '../../src/platform/clock.ts'
import type { FakeClock } from '../support/clock.ts'
import { createTestEngine } from '../support/engine.ts'
import { runs } from '../support/property.ts'
import { RANDOM_TRIES_MAX, TRIES_MAX, unreliableScenario } from './random-operators.ts'

/** The same seeds in each run: a partial run uses the first ones. */
const SEEDS = Array.from({ length: runs(15) }, (_, n) => n + 1)

test.each(SEEDS)(
  'a stream at fickle operators has one result each, no connection and no try too many: %i',
  async seed => {
    let clock: FakeClock | null = null
    const world = unreliableScenario(seed, () => clock as FakeClock)
    const { texts, zone, egresses, flags, dial, ledger } = world
    const pace = Object.fromEntries(Object.entries(flags).map(([key, value]) => [key, +value]))
    const home = createTestEngine({ zone, engine: { egresses, dial, ...pace } })
    clock = home.clock
    const results = await home.many(texts)
    await clock.advance(MINUTE)

    expect(home.loggedErrors.filter(text => text.includes('inside ev'))).toEqual([])
    expect(results.map(({ email }) => email).toSorted()).toEqual([...texts].toSorted())
    for (const { email, verdict } of results) {
      expect(world.classes(email)).toContain(classOf(verdict))
    }
    expect(ledger.peak).toBeLessThanOrEqual(world.sessionsMax)
    expect(ledger.mostAnswers).toBeLessThanOrEqual(TRIES_MAX)
    expect(ledger.mostRandomAnswers).toBeLessThanOrEqual(RANDOM_TRIES_MAX)
    expect(ledger.open).toBe(0)
  },
)
