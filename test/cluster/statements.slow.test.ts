import { expect, test } from 'vitest'
import { measureLists } from '../../bench/cluster/statements.ts'

const ROWS = 4_000
/**
 * Budgets per address. A short list has more than a long one, whose batches are full: bench/cluster
 * counts about a tenth less with 20,000 addresses.
 */
const STATEMENTS_MAX = 0.6
const WAL_BYTES_MAX = 5_500

test('an address costs PostgreSQL few statements and little log', async () => {
  const { calls, wal } = await measureLists(ROWS, 2)
  expect(calls / ROWS).toBeLessThan(STATEMENTS_MAX)
  expect(wal / ROWS).toBeLessThan(WAL_BYTES_MAX)
})
