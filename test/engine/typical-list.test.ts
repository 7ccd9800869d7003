import { describe, expect, test } from 'vitest'
import { measureStrategy } from '../../bench/typical-list/measure.ts'
import { STRATEGIES } from '../../bench/typical-list/strategies.ts'
import { SEED } from '../../bench/typical-list/world.ts'
import { MINUTE } from '../../src/platform/clock.ts'

/** Large enough that a fixed pace for all providers, or none, is refused by some. */
const plan = { size: 2_000, seed: SEED, harvestRule: 'row' } as const

/** Budgets per address, a few percent above the present counts, 0.174 and 1.200. */
const [CONNECTIONS_MAX, RECIPIENTS_MAX] = [0.18, 1.21]
/** The last results wait for greylists, of five minutes. */
const TOOK_MAX_MS = 6 * MINUTE

describe('a typical list at the default settings', () => {
  test('earns no block and stays within its connections, recipients and time', async () => {
    const measured = await measureStrategy(STRATEGIES.ev, plan)
    const { addresses, tookMs, answers, wrong, refused, blocks, connections, recipients } = measured
    expect(tookMs).toHaveLength(addresses)
    expect({ unknown: answers.unknown, wrong, refused, blocks }).toEqual({
      unknown: 0,
      wrong: 0,
      refused: 0,
      blocks: 0,
    })
    expect(connections / addresses).toBeLessThan(CONNECTIONS_MAX)
    expect(recipients / addresses).toBeLessThan(RECIPIENTS_MAX)
    expect(Math.max(...tookMs)).toBeLessThan(TOOK_MAX_MS)
  })

  test('is not possible with a connection per address', async () => {
    const { answers, addresses, blocks } = await measureStrategy(STRATEGIES.connection, plan)
    expect(blocks).toBeGreaterThan(0)
    expect(answers.unknown).toBeGreaterThan(addresses / 2)
  })
})
