import { onTestFinished } from 'vitest'
import type { Database } from '../../src/db/database.ts'
import { type FakeClock, fakeClock } from './clock.ts'
import { openServer, tempPostgres } from './postgres-pool.ts'

/** Opens a new PostgreSQL database twice, like two servers that share it; closed after the test. */
export async function twoServers(
  clock: FakeClock = fakeClock(),
): Promise<{ a: Database; b: Database; clock: FakeClock }> {
  const url = await tempPostgres()
  const [a, b] = [await openServer(url, clock), await openServer(url, clock)]
  onTestFinished(async () => {
    await Promise.all([a.close(), b.close()])
  })
  return { a, b, clock }
}
