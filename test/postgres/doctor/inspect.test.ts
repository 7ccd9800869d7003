import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import pg from 'pg'
import { expect, inject, onTestFinished, test } from 'vitest'
import { inspectServer } from '../../../src/db/postgres/inspect.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { fakeClock } from '../../support/clock.ts'
import { emptyDatabase, latin1Database } from '../../support/database.ts'
import { createPostgres, tempPostgres } from '../../support/postgres-pool.ts'
import { tempRole } from '../../support/postgres-role.ts'
import { ask } from '../../support/postgres-server.ts'
import { waitUntil } from '../../support/wait.ts'

/** Returns how many connections the settings of the server allow to a normal user. */
async function getConnectionsMax(url: string): Promise<number> {
  const [row] = await ask<{ max: number }>(
    url,
    `select current_setting('max_connections')::integer
      - current_setting('superuser_reserved_connections')::integer
      - coalesce(current_setting('reserved_connections', true)::integer, 0) as max`,
  )
  return row?.max ?? 0
}

const inspect = (url: string) => inspectServer(url, systemClock)

test('reports the properties of a server to a user without special rights', async () => {
  const owned = await emptyDatabase()
  const ann = await tempRole(owned, 'connection limit 25')
  const asAnn = ann.url
  expect(await inspect(asAnn)).toMatchObject({
    kind: 'reached',
    isStandby: false,
    canCreateTables: false,
    isNewer: false,
    closedTables: [],
    encoding: 'UTF8',
    canCreateQueue: false,
    limit: { of: 'role', name: ann.name, used: 1, max: 25 },
  })
  await ask(owned, `grant create on schema public to ${ann.name}`)
  await ask(owned, `grant create on database ${new URL(owned).pathname.slice(1)} to ${ann.name}`)
  await ask(owned, `alter role ${ann.name} connection limit -1`)
  const found = await inspect(asAnn)
  expect(found).toMatchObject({ canCreateTables: true, canCreateQueue: true })
  expect(found).toMatchObject({ limit: { of: 'server', max: await getConnectionsMax(owned) } })
  if (found.kind !== 'reached') throw new Error(found.why)
  expect(found.version).toBeGreaterThanOrEqual(130_000)
  expect(found.limit.used).toBeGreaterThanOrEqual(1)
  expect(Math.abs(found.clockAheadMs)).toBeLessThan(1_000)
  expect(found.commitMs).toBeGreaterThan(0)
  // The inspection creates no table.
  expect(await ask(owned, "select 1 from pg_tables where schemaname = 'public'")).toEqual([])
  expect(await inspect(`${inject('postgres')}nowhere`)).toMatchObject({
    kind: 'unreachable',
    why: expect.stringContaining('"nowhere" does not exist'),
  })
})

test('counts connections against the limit that is reached first: of the role, the database or the server', async () => {
  const url = await emptyDatabase()
  const name = new URL(url).pathname.slice(1)
  const ann = await tempRole(url, 'connection limit 10')
  const bob = await tempRole(url)
  const getLimit = async (one: string) => {
    const found = await inspect(one)
    if (found.kind !== 'reached') throw new Error(found.why)
    return found.limit
  }
  const open = async (one: string) => {
    const client = new pg.Client(one)
    await client.connect()
    onTestFinished(() => client.end())
  }
  for (let n = 0; n < 2; n++) await open(ann.url)
  for (let n = 0; n < 3; n++) await open(bob.url)
  // Connections of others do not count for the role.
  expect(await getLimit(ann.url)).toEqual({ of: 'role', name: ann.name, used: 3, max: 10 })
  await ask(url, `alter database ${name} connection limit 9`)
  onTestFinished(() => void ask(url, `alter database ${name} connection limit -1`))
  // Five open connections and that of the inspection.
  const ofDatabase = { of: 'database', name, used: 6, max: 9 }
  await waitUntil(async () => (await getLimit(bob.url)).used === 6)
  expect(await getLimit(bob.url)).toEqual(ofDatabase)
  expect(await getLimit(ann.url)).toEqual(ofDatabase)
  await ask(url, `alter role ${ann.name} connection limit 4`)
  expect(await getLimit(ann.url)).toEqual({ of: 'role', name: ann.name, used: 3, max: 4 })
  // Only the limit of the server applies to superusers.
  expect(await getLimit(url)).toMatchObject({ of: 'server', name: '' })
})

test('reports the encoding of the database', async () => {
  const url = await latin1Database()
  expect(await inspect(url)).toMatchObject({ kind: 'reached', encoding: 'LATIN1' })
})

test('reports tables of another user and those of a newer version of ev', async () => {
  const url = await createPostgres()
  expect(await inspect(url)).toMatchObject({ closedTables: [], isNewer: false })
  const ann = await tempRole(url)
  await ask(
    url,
    `grant select, insert, update, delete on all tables in schema public to ${ann.name}`,
  )
  await ask(url, `revoke delete on item from ${ann.name}`)
  expect(await inspect(ann.url)).toMatchObject({ closedTables: ['item'] })
  await ask(url, "insert into kysely_migration values ('9999-later', '2030-01-01')")
  expect(await inspect(url)).toMatchObject({ isNewer: true })
})

test('reports the difference between the clocks', async () => {
  const url = await tempPostgres()
  const at = systemClock.now() + 90_000
  const clock = { ...fakeClock(at), now: () => systemClock.now() + 90_000 }
  const found = await inspectServer(url, clock)
  if (found.kind !== 'reached') throw new Error(found.why)
  expect(Math.abs(found.clockAheadMs - 90_000)).toBeLessThan(1_000)
})

test('gives up on a server that accepts a connection and never answers', async () => {
  const silent = createServer(() => {}).listen(0, '127.0.0.1')
  onTestFinished(() => void silent.close())
  await once(silent, 'listening')
  const { port } = silent.address() as AddressInfo
  const url = `postgres://ann:c4nary@127.0.0.1:${port}/ev`
  expect(await inspectServer(url, systemClock, 100)).toEqual({
    kind: 'unreachable',
    why: expect.not.stringContaining('c4nary'),
    remedy: expect.stringMatching(/^Check that the server is running/),
  })
})
