import { describe, expect, test } from 'vitest'
import { failEachCall } from '../support/nth-call.ts'
import { postgres, sqlite } from './backends.ts'
import { casesOf, report } from './cases.ts'
import { prepareServiceRuns } from './service.ts'
import { STORIES } from './stories.ts'

/** 1 tries each call, which takes three times as long. */
const EVERY = Number(process.env.EV_NTH_EVERY ?? 3)
/** A run on PostgreSQL mostly waits. */
const PARALLEL = 5

describe.each(STORIES)('$name of a service', ({ name, story, kinds }) => {
  test.each(casesOf(kinds))('is whole on SQLite after any %s that fails: %s', async (kind, way) => {
    const run = await prepareServiceRuns(sqlite, story)
    const tried = await failEachCall(run, { kind, way, every: EVERY })
    report(name, [kind, way], tried)
    expect(tried.violations.join('\n')).toBe('')
    expect(tried.calls).toBeGreaterThan(0)
  })

  // A run takes more than a second of the real clock, so it is a sample. What does not concern the
  // database is the same as on SQLite.
  test.each([
    ['statement', 'refused', 7 * EVERY],
    ['commit', 'lost', 3 * EVERY],
  ] as const)('is whole on PostgreSQL after any %s that fails: %s', async (kind, way, every) => {
    const run = await prepareServiceRuns(postgres, story)
    const tried = await failEachCall(run, { kind, way, every, parallel: PARALLEL })
    report(`${name} on PostgreSQL`, [kind, way], tried)
    expect(tried.violations.join('\n')).toBe('')
    expect(tried.calls).toBeGreaterThan(0)
  })
})
