import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'
import { isStorageError } from '../../../src/db/database.ts'
import { MINUTE } from '../../../src/platform/clock.ts'
import {
  never,
  permitOf,
  processes,
  storedOf,
  untilFree,
} from '../../support/cluster-rate-state.ts'
import { cutProxy } from '../../support/cut-proxy.ts'
import { tempPostgres } from '../../support/database.ts'
import { waitUntil } from '../../support/wait.ts'

/** One process that reaches the database through a line that can be cut, and one that has a line of its own. */
async function cuttable() {
  const url = await tempPostgres()
  const proxy = await cutProxy(url)
  onTestFinished(() => proxy.close())
  const [near] = await processes(1, url)
  const [far] = await processes(1, proxy.url, 'far')
  return { proxy, near, far }
}

test('while the database is away no list opens a connection, and whoever waits for an answer is told', async () => {
  const { proxy, near, far } = await cuttable()
  const pace = far.pace('mx.test', { sessionsMax: 2 })
  const held = await permitOf(pace.start(0, never))
  proxy.refuse()
  let isIn = false
  const list = pace.start(0, never).finally(() => {
    isIn = true
  })
  const fault = await pace.start(0, never, true).catch((error: unknown) => error)
  expect(isStorageError(fault)).toBe(true)
  // What ends meanwhile is told later.
  held.release()
  await near.looked(8)
  expect(isIn).toBe(false)
  expect((await storedOf(near))?.held).toEqual({ far0: 1 })
  pace.throttled(MINUTE)
  expect(await list).toMatchObject({ paused: true })
  proxy.accept()
  await waitUntil(async () => (await storedOf(near))?.state.sessionsAllowed === 1)
  expect((await storedOf(near))?.held).toEqual({})
  expect(pace.readyInMs).toBeGreaterThan(MINUTE)
})

test('a list goes on by itself when the database is back', async () => {
  const { proxy, near, far } = await cuttable()
  const pace = far.pace()
  proxy.refuse()
  const list = permitOf(pace.start(0, never))
  await near.looked(4)
  proxy.accept()
  ;(await list).release()
  await untilFree(near)
})

test('wherever the line is cut, nothing stays held that nobody holds, and nothing is held that is not noted', async () => {
  const { proxy, near, far } = await cuttable()
  const pace = far.pace('mx.test', { sessionsMax: 1, sessionsPerSecond: 1_000 })
  let lost = 0
  for (let bytes = 1; bytes < 900; bytes += 30) {
    const cut = proxy.cutAfterBytes(bytes)
    for (let isCut = false; !isCut; ) {
      void cut.then(() => {
        isCut = true
      })
      const start = await pace.start(0, never, true).catch(error => {
        expect(isStorageError(error)).toBe(true)
        lost++
        return null
      })
      if (start !== null && 'permit' in start) {
        expect((await storedOf(near))?.held).toEqual({ far0: 1 })
        start.permit.release()
      }
      await Promise.resolve()
    }
  }
  expect(lost).toBeGreaterThan(0)
  await untilFree(near)
  ;(await permitOf(near.pace('mx.test', { sessionsMax: 1 }).start(0, never))).release()
})

test('the end of a long connection that could not be noted is noted when it can, though nothing else happens', async () => {
  const [one] = await processes(1)
  const permit = await permitOf(one.pace('mx.test', { sessionsMax: 1 }).start(0, never))
  // Somebody who waits has all paces looked at oftener: this one has not been used for many looks then.
  const busy = one.pace('busy.test', { sessionsMax: 1 })
  const other = await permitOf(busy.start(0, never))
  const giveUp = new AbortController()
  const waiting = busy.start(0, giveUp.signal, true)
  await one.looked(12)
  giveUp.abort()
  await waiting
  other.release()
  await one.looked(2)
  await sql`
    create function no() returns trigger language plpgsql as $$
      begin raise exception 'not now'; end $$`.execute(one.database.db)
  await sql`create trigger no before update on pace execute function no()`.execute(one.database.db)
  permit.release()
  await one.looked(4)
  await sql`drop trigger no on pace`.execute(one.database.db)
  await untilFree(one)
})

test('a wish for less speed that was heard while the database is away is told when it is back', async () => {
  const { proxy, near, far } = await cuttable()
  const pace = far.pace()
  ;(await permitOf(pace.start(0, never))).release()
  await untilFree(near)
  proxy.refuse()
  pace.throttled(null)
  await near.looked(4)
  proxy.accept()
  await waitUntil(async () => ((await storedOf(near))?.state.throttledUntil ?? 0) > 0)
})
