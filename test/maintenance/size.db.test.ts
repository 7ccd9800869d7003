import { expect, test } from 'vitest'
import { bytesOnServer } from '../../src/maintenance/inspect.ts'
import { onPostgres, tempDatabase } from '../support/database.ts'

test('the size of a PostgreSQL database is known; a file has none', async () => {
  const bytes = await bytesOnServer(await tempDatabase())
  if (onPostgres) expect(bytes).toBeGreaterThan(1_000_000)
  else expect(bytes).toBeNull()
})
