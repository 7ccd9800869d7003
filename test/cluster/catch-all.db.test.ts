import { expect, test } from 'vitest'
import { openCatchAll } from '../../src/cluster/catch-all.ts'
import { CatchAllCache } from '../../src/engine/probe/catch-all.ts'
import { DAY, HOUR, MINUTE, SECOND } from '../../src/platform/clock.ts'
import { silentLog } from '../../src/platform/log.ts'
import { fakeClock } from '../support/clock.ts'
import { onPostgres, tempDatabase } from '../support/database.ts'

async function store() {
  const clock = fakeClock()
  const database = await tempDatabase({ clock })
  return { clock, database, catchAll: openCatchAll({ database, log: silentLog }) }
}

const YES = { catchAll: true, keepMs: DAY }
const NO = { catchAll: false, keepMs: 7 * DAY }

test('a member reads the results of another one with their remaining lifetime', async () => {
  const { database, catchAll } = await store()
  catchAll.set('all.test', YES)
  catchAll.set('tells.test', NO)
  await catchAll.close()
  const other = openCatchAll({ database, log: silentLog })
  const known = await other.get(['all.test', 'tells.test', 'new.test'])
  expect([...known.keys()].toSorted()).toEqual(['all.test', 'tells.test'])
  expect(known.get('all.test')?.catchAll).toBe(true)
  expect(known.get('tells.test')?.catchAll).toBe(false)
  const keepMs = known.get('all.test')?.keepMs ?? 0
  expect(keepMs).toBeLessThanOrEqual(DAY)
  expect(keepMs).toBeGreaterThan(DAY - MINUTE)
})

test('the latest result wins', async () => {
  const { catchAll } = await store()
  catchAll.set('a.test', YES)
  await catchAll.close()
  catchAll.set('a.test', NO)
  await catchAll.close()
  expect((await catchAll.get(['a.test'])).get('a.test')?.catchAll).toBe(false)
})

test('the results of one second are written together', async () => {
  const { clock, database, catchAll } = await store()
  for (let n = 0; n < 300; n++) catchAll.set(`d${n}.test`, YES)
  expect(await database.db.selectFrom('catch_all').select('domain').execute()).toEqual([])
  await clock.advance(SECOND)
  await catchAll.close()
  expect(await database.db.selectFrom('catch_all').select('domain').execute()).toHaveLength(300)
  expect(clock.pending).toBe(0)
})

test('an expired result is not read, and is deleted', async () => {
  const { clock, database, catchAll } = await store()
  catchAll.set('old.test', { catchAll: true, keepMs: onPostgres ? -1 : HOUR })
  await catchAll.close()
  await clock.advance(HOUR)
  expect((await catchAll.get(['old.test'])).size).toBe(0)
  catchAll.set('new.test', YES)
  await catchAll.close()
  const domains = await database.db.selectFrom('catch_all').select('domain').execute()
  expect(domains).toEqual([{ domain: 'new.test' }])
})

test('two processes that write the same domains do not deadlock', async () => {
  const { database } = await store()
  const writers = Array.from({ length: 4 }, () => openCatchAll({ database, log: silentLog }))
  for (const writer of writers) {
    for (let n = 0; n < 200; n++) writer.set(`d${(n * 7) % 200}.test`, YES)
  }
  await Promise.all(writers.map(writer => writer.close()))
  expect((await writers[0]?.get(['d0.test', 'd199.test']))?.size).toBe(2)
})

test('a cache loads what another process found', async () => {
  const { clock, database, catchAll } = await store()
  new CatchAllCache(clock, catchAll).set('all.test', true)
  await catchAll.close()
  const other = new CatchAllCache(clock, openCatchAll({ database, log: silentLog }))
  await other.load(['all.test', 'new.test'])
  expect(other.get('all.test')).toBe(true)
  expect(other.get('new.test')).toBeNull()
})
