import { expect, test } from 'vitest'
import { countStatements } from '../../bench/cluster/statements.ts'

const ROWS = 4_000
/**
 * Budgets per address. Statements depend on how many rows share a batch, and thus on the load of the
 * machine: 0.4 to 0.8. Without batches it would be three or more.
 */
const STATEMENTS_MAX = 1.5
const WAL_BYTES_MAX = 2_500
/** `queued` → `probing` → `done`, and a few rows for which their operator has no room. */
const ITEM_UPDATES_MAX = 2.3

test('an address costs PostgreSQL few statements, little log and two updates', async () => {
  const { calls, wal, tables } = await countStatements(ROWS, 2)
  expect(calls / ROWS).toBeLessThan(STATEMENTS_MAX)
  expect(wal / ROWS).toBeLessThan(WAL_BYTES_MAX)
  const item = tables.find(({ name }) => name === 'item')
  expect(item).toMatchObject({ inserts: ROWS, deletes: 0 })
  expect((item?.updates ?? Number.POSITIVE_INFINITY) / ROWS).toBeLessThan(ITEM_UPDATES_MAX)
})
