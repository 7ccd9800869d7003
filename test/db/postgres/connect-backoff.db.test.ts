import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { sql } from 'kysely'
import { describe, expect, onTestFinished, test } from 'vitest'
import { isStorageError, openDatabase } from '../../../src/db/database.ts'
import { DEFAULT_POOL_TIMINGS } from '../../../src/db/postgres/connect-backoff.ts'
import { createPostgresKysely, openPool } from '../../../src/db/postgres/pool.ts'
import { MINUTE, systemClock } from '../../../src/platform/clock.ts'
import { fakeClock } from '../../support/clock.ts'
import { emptyDatabase, onPostgres } from '../../support/database.ts'
import { tempRole } from '../../support/postgres-role.ts'
import { ask } from '../../support/postgres-server.ts'

const MANY = Array.from({ length: 30 }, (_, n) => n)

/** A server without free connections. It counts the startup messages that it refuses with 53300. */
async function fullServer() {
  let refused = 0
  const server = createServer(socket => {
    socket.on('error', () => {})
    socket.once('data', () => {
      refused++
      socket.end(errorResponse('53300', 'sorry, too many clients already'))
    })
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `postgres://ann@127.0.0.1:${port}/ev`,
    get refused() {
      return refused
    },
  }
}

/** ErrorResponse: a type, a length, and fields that end with NUL (PostgreSQL 18 §54.7). */
function errorResponse(code: string, message: string): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0M${message}\0\0`)
  const head = Buffer.from('E\0\0\0\0')
  head.writeUInt32BE(4 + fields.length, 1)
  return Buffer.concat([head, fields])
}

describe('a server that refuses connections', () => {
  test('gets one attempt per backoff interval, whatever the load of the pool', async () => {
    const clock = fakeClock()
    const server = await fullServer()
    const db = createPostgresKysely(openPool(server.url, clock, { max: 8 }))
    onTestFinished(() => db.destroy())
    const query = () => sql`select 1`.execute(db)
    const outcomes = await Promise.allSettled(MANY.map(query))
    const faults = outcomes.flatMap(one => (one.status === 'rejected' ? [one.reason] : []))
    expect(faults).toHaveLength(MANY.length)
    expect(faults.filter(fault => !isStorageError(fault))).toEqual([])
    // Attempts of the pool that started together.
    const first = server.refused
    expect(first).toBeLessThanOrEqual(8)
    const { refusedMs, refusedMaxMs } = DEFAULT_POOL_TIMINGS
    await clock.advance(refusedMs - 1)
    await expect(query()).rejects.toThrow('sorry, too many clients already')
    expect(server.refused).toBe(first)
    await clock.advance(1)
    await Promise.allSettled(MANY.map(query))
    expect(server.refused).toBe(first + 1)
    const before = server.refused
    for (let ms = 0; ms < MINUTE; ms += 100) {
      await clock.advance(100)
      await Promise.allSettled([query(), query(), query()])
    }
    const inOneMinute = server.refused - before
    expect(inOneMinute).toBeGreaterThanOrEqual(MINUTE / refusedMaxMs)
    expect(inOneMinute).toBeLessThanOrEqual(MINUTE / refusedMaxMs + 5)
  })
})

describe.runIf(onPostgres)('connections to a server', () => {
  test('that refuses further ones: queries wait for the open ones', async () => {
    const url = await emptyDatabase()
    const narrow = await tempRole(url, 'connection limit 3')
    const db = createPostgresKysely(openPool(narrow.url, systemClock, { max: 8 }))
    onTestFinished(() => db.destroy())
    await sql`select 1`.execute(db)
    for (let round = 0; round < 5; round++) {
      await Promise.all(MANY.map(() => sql`select pg_sleep(0.01)`.execute(db)))
    }
  })

  test.each([5, 14, 40])('are limited to %i', async connections => {
    const url = await emptyDatabase()
    const database = await openDatabase(url, systemClock, { connections })
    onTestFinished(() => database.close())
    const { db, reader, asyncDb } = database
    const asked = [db, reader, asyncDb].flatMap(one => MANY.map(() => sql`select 1`.execute(one)))
    await Promise.all(asked)
    const [row] = await ask<{ open: string }>(
      url,
      `select count(*) as open from pg_stat_activity
      where datname = current_database() and application_name = 'ev'`,
    )
    expect(Number(row?.open)).toBe(connections)
  })
})
