import { describe, expect, test } from 'vitest'
import { failEachCall } from '../support/nth-call.ts'
import { postgres, sqlite } from './backends.ts'
import { casesOf, report } from './cases.ts'
import { prepareServiceRuns } from './service.ts'
import { STORIES } from './stories.ts'

describe.each(STORIES)('$name of a service', ({ name, story, kinds }) => {
  test.each(casesOf(kinds))(
    'is whole on SQLite after each %s that fails: %s',
    async (kind, way) => {
      const tried = await failEachCall(await prepareServiceRuns(sqlite, story), { kind, way })
      report(name, [kind, way], tried)
      expect(tried.violations.join('\n')).toBe('')
      expect(tried.calls).toBeGreaterThan(0)
    },
  )

  // A run takes more than a second of the real clock. What does not concern the database is the
  // same as on SQLite.
  test.each([
    ['statement', 'refused', 7],
    ['commit', 'lost', 3],
  ] as const)('is whole on PostgreSQL after some %s that fails: %s', async (kind, way, every) => {
    const run = await prepareServiceRuns(postgres, story)
    const tried = await failEachCall(run, { kind, way, every, parallel: 5 })
    report(`${name} on PostgreSQL`, [kind, way], tried)
    expect(tried.violations.join('\n')).toBe('')
    expect(tried.calls).toBeGreaterThan(0)
  })
})
