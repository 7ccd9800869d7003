import { expect, test } from 'vitest'
import { openWitnesses } from '../../src/cluster/witnesses.ts'
import type { Database } from '../../src/db/database.ts'
import { type StoredWitness, WITNESS_MS, WITNESSES_MAX } from '../../src/engine/probe/witnesses.ts'
import { MINUTE } from '../../src/platform/clock.ts'
import { silentLog } from '../../src/platform/log.ts'
import { fakeClock } from '../support/clock.ts'
import { tempDatabase } from '../support/database.ts'

const open = (database: Database, network: string | null = null) =>
  openWitnesses({ database, log: silentLog, network })

async function temp() {
  const clock = fakeClock()
  const database = await tempDatabase({ clock })
  return { clock, database, now: clock.now() }
}

const witness = (server: string, acceptedAt: number, local = 'ann'): StoredWitness => ({
  server,
  recipient: `${local}@a.test`,
  acceptedAt,
})

test('a later process reads the latest witness of each server', async () => {
  const { database, now } = await temp()
  const store = open(database)
  store.put(witness('mx.test', now - MINUTE))
  await store.close()
  for (const one of [witness('mx.test', now, 'ben'), witness('192.0.2.1', now - 1)]) store.put(one)
  await store.close()
  const latest = [witness('mx.test', now, 'ben'), witness('192.0.2.1', now - 1)]
  expect(await open(database).load()).toEqual(latest)
})

test('each network has its own witnesses', async () => {
  const { database, now } = await temp()
  const store = open(database, '{"smtpPort":2525}')
  store.put(witness('mx.test', now))
  await store.close()
  expect(await open(database).load()).toEqual([])
  expect(await open(database, '{"smtpPort":2525}').load()).toHaveLength(1)
})

test('an old witness is not read, and is deleted by a later write', async () => {
  const { clock, database, now } = await temp()
  const store = open(database)
  store.put(witness('new.test', now))
  await store.close()
  store.put(witness('old.test', now - WITNESS_MS - 1))
  await store.close()
  expect(await store.load()).toEqual([witness('new.test', now)])
  await clock.advance(10 * MINUTE)
  store.put(witness('last.test', now))
  await store.close()
  const rows = await database.db.selectFrom('witness').select('server').orderBy('server').execute()
  expect(rows.map(({ server }) => server)).toEqual(['last.test', 'new.test'])
})

test('the newest witnesses are read, up to a limit', async () => {
  const { database, now } = await temp()
  const store = open(database)
  for (let n = 0; n < WITNESSES_MAX + 5; n++) {
    store.put(witness(`mx${n}.test`, now + n))
    if (n % 4_000 === 0) await store.close()
  }
  await store.close()
  const read = await store.load()
  expect(read).toHaveLength(WITNESSES_MAX)
  expect(read[0]?.server).toBe(`mx${WITNESSES_MAX + 4}.test`)
})
