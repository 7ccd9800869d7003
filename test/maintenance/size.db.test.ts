import { expect, test } from 'vitest'
import { bytesOnServer } from '../../src/maintenance/size.ts'
import { onPostgres, tempDatabase } from '../support/database.ts'

test('a server tells how large the database is; of a file whoever has it can see that', async () => {
  const bytes = await bytesOnServer(await tempDatabase())
  if (onPostgres) expect(bytes).toBeGreaterThan(1_000_000)
  else expect(bytes).toBeNull()
})
