import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { nextChunk, runChunk } from '../../src/db/paging.ts'
import { onPostgres, tempDatabase } from '../support/database.ts'

test.skipIf(onPostgres)(
  'concurrent scans alternate, one chunk per turn of the event loop',
  async () => {
    const database = await tempDatabase()
    const scanned: string[] = []
    const runScan = async (name: string) => {
      for (let n = 0; n < 2; n++) await runChunk(database, async () => void scanned.push(name))
    }
    const all = Promise.all([runScan('a'), runScan('b'), runScan('c')])
    for (let turn = 0; turn < 12; turn++) {
      const before = scanned.length
      await setImmediate()
      expect(scanned.length - before).toBeLessThanOrEqual(1)
    }
    await all
    expect(scanned).toEqual(['a', 'b', 'c', 'a', 'b', 'c'])
  },
)

test.runIf(onPostgres)('on PostgreSQL scans do not wait for each other', async () => {
  const database = await tempDatabase()
  const gate = Promise.withResolvers<void>()
  const first = runChunk(database, () => gate.promise)
  expect(await runChunk(database, async () => 'found')).toBe('found')
  gate.resolve()
  await first
})

test('chunks are larger on PostgreSQL, where each costs a round trip', () => {
  expect(nextChunk({ dialect: 'sqlite' })).toBe(500)
  expect(nextChunk({ dialect: 'postgres' })).toBe(5_000)
  expect(nextChunk({ dialect: 'postgres' }, 2_000)).toBe(20_000)
})

test('a failed chunk fails only for its caller', async () => {
  const database = await tempDatabase()
  const failing = runChunk(database, () => Promise.reject(new Error('no')))
  const after = runChunk(database, async () => 'found')
  await expect(failing).rejects.toThrow('no')
  expect(await after).toBe('found')
})
