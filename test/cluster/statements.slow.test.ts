import { expect, test } from 'vitest'
import { countStatements } from '../../bench/cluster/statements.ts'

const ROWS = 4_000
/**
 * Budgets per address. Statements depend on how many rows share a batch, and thus on the load of the
 * machine: 0.6 on a busy one. A long list has a third less, because its batches are full.
 */
const STATEMENTS_MAX = 0.8
const WAL_BYTES_MAX = 5_500
/** `queued` → `routed` → `probing` → `done`. */
const ITEM_UPDATES = 3

test('an address costs PostgreSQL few statements, little log and three updates', async () => {
  const { calls, wal, tables } = await countStatements(ROWS, 2)
  expect(calls / ROWS).toBeLessThan(STATEMENTS_MAX)
  expect(wal / ROWS).toBeLessThan(WAL_BYTES_MAX)
  const item = tables.find(({ name }) => name === 'item')
  expect(item).toMatchObject({ inserts: ROWS, updates: ITEM_UPDATES * ROWS, deletes: 0 })
})
