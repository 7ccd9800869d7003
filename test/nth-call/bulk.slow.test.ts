import { expect, test } from 'vitest'
import { failEachCall } from '../support/nth-call.ts'
import { BULK_KINDS, prepareBulkRuns } from './bulk.ts'
import { casesOf, report } from './cases.ts'

test.each(casesOf(BULK_KINDS))(
  'ev bulk is whole after each %s that fails: %s',
  async (kind, way) => {
    const tried = await failEachCall(await prepareBulkRuns(), { kind, way })
    report('ev bulk', [kind, way], tried)
    expect(tried.violations.join('\n')).toBe('')
    expect(tried.calls).toBeGreaterThan(0)
  },
)
