import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { openDatabase } from '../../../src/store/database.ts'
import { lookAtServer } from '../../../src/store/postgres/look.ts'
import { fakeClock } from '../../support/clock.ts'
import { ask, type PostgresServer, startPostgres } from '../../support/postgres-server.ts'

async function server(settings = {}): Promise<PostgresServer> {
  const started = await startPostgres({ settings })
  onTestFinished(() => started.stop())
  return started
}

const look = (url: string) => lookAtServer(url, systemClock)

test('a server tells what it is, to a user without any right beyond the usual ones', async () => {
  const { create, url } = await server({
    max_connections: '33',
    superuser_reserved_connections: '3',
  })
  const owned = await create('ev')
  await ask(owned, 'create role ann login connection limit 25')
  const asAnn = owned.replace('//ev@', '//ann@')
  expect(await look(asAnn)).toMatchObject({
    ...{ kind: 'reached', isStandby: false, mayMakeTables: false, isNewer: false },
    ...{ closedTables: [], connectionsMax: 25, mayMakeQueue: false },
  })
  await ask(owned, 'grant create on schema public to ann')
  await ask(owned, 'grant create on database ev to ann')
  await ask(owned, 'alter role ann connection limit -1')
  const found = await look(asAnn)
  expect(found).toMatchObject({ mayMakeTables: true, mayMakeQueue: true, connectionsMax: 30 })
  if (found.kind !== 'reached') throw new Error(found.why)
  expect(found.version).toBeGreaterThanOrEqual(130_000)
  expect(found.connections).toBeGreaterThanOrEqual(1)
  expect(Math.abs(found.clockAheadMs)).toBeLessThan(1_000)
  expect(found.commitMs).toBeGreaterThan(0)
  // Nothing is made by looking.
  expect(await ask(owned, "select 1 from pg_tables where schemaname = 'public'")).toEqual([])
  expect(await look(url('nowhere'))).toMatchObject({
    ...{ kind: 'unreachable', why: expect.stringContaining('"nowhere" does not exist') },
  })
})

test('tables of another user, and those of a newer ev, are told', async () => {
  const { create } = await server()
  const url = await create('ev')
  await (await openDatabase(url, systemClock)).close()
  expect(await look(url)).toMatchObject({ closedTables: [], isNewer: false })
  await ask(url, 'create role ann login')
  await ask(url, 'grant select, insert, update, delete on all tables in schema public to ann')
  await ask(url, 'revoke delete on item from ann')
  expect(await look(url.replace('//ev@', '//ann@'))).toMatchObject({ closedTables: ['item'] })
  await ask(url, "insert into kysely_migration values ('9999-later', '2030-01-01')")
  expect(await look(url)).toMatchObject({ isNewer: true })
})

test('the difference of the clocks is told', async () => {
  const { create } = await server()
  const at = systemClock.now() + 90_000
  const clock = { ...fakeClock(at), now: () => systemClock.now() + 90_000 }
  const found = await lookAtServer(await create('ev'), clock)
  if (found.kind !== 'reached') throw new Error(found.why)
  expect(Math.abs(found.clockAheadMs - 90_000)).toBeLessThan(1_000)
})

test('a server that lets in and then says nothing is given up', { timeout: 30_000 }, async () => {
  const silent = createServer(() => {}).listen(0, '127.0.0.1')
  onTestFinished(() => void silent.close())
  await once(silent, 'listening')
  const { port } = silent.address() as AddressInfo
  expect(await look(`postgres://ann:c4nary@127.0.0.1:${port}/ev`)).toEqual({
    ...{ kind: 'unreachable', why: expect.not.stringContaining('c4nary') },
  })
})
