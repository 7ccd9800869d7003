import { expect, test } from 'vitest'
import { failEachCall } from '../support/nth-call.ts'
import { BULK_KINDS, prepareBulkRuns } from './bulk.ts'
import { casesOf } from './cases.ts'

/** A sample of what bulk.slow.test.ts tries; coprime with the calls of one row. */
const EVERY = 29

test.each(casesOf(BULK_KINDS))(
  'ev bulk is whole after some %s that fails: %s',
  async (kind, way) => {
    const run = await prepareBulkRuns()
    const { calls, violations } = await failEachCall(run, { kind, way, every: EVERY })
    expect(violations.join('\n')).toBe('')
    expect(calls).toBeGreaterThan(0)
  },
)
