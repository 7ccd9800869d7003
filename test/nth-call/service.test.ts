import { expect, test } from 'vitest'
import { failEachCall } from '../support/nth-call.ts'
import { sqlite } from './backends.ts'
import { prepareServiceRuns } from './service.ts'
import { KEYED_SINGLES, LIST } from './stories.ts'

/** A sample of what service.slow.test.ts tries. */
const SAMPLES = [
  { name: 'a list', story: LIST, kind: 'statement', way: 'refused', every: 120 },
  { name: 'a list', story: LIST, kind: 'commit', way: 'lost', every: 12 },
  { name: 'a single', story: KEYED_SINGLES, kind: 'commit', way: 'lost', every: 12 },
] as const

test.each(SAMPLES)(
  '$name of a service is whole after some $kind that fails',
  async ({ story, ...sample }) => {
    const run = await prepareServiceRuns(sqlite, story)
    const { calls, violations } = await failEachCall(run, sample)
    expect(violations.join('\n')).toBe('')
    expect(calls).toBeGreaterThan(1)
  },
)
