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
import { tempPostgres } from '../../support/postgres-pool.ts'
import { waitUntil } from '../../support/wait.ts'

/** Starts one process behind a proxy that can cut connections, and one with direct ones. */
async function startBehindProxy() {
  const url = await tempPostgres()
  const proxy = await cutProxy(url)
  onTestFinished(() => proxy.close())
  const [direct] = await processes(1, url)
  const [proxied] = await processes(1, proxy.url, 'proxied')
  return { proxy, direct, proxied }
}

test('while the database is unavailable no list opens a connection, and a single verification gets an error', async () => {
  const { proxy, direct, proxied } = await startBehindProxy()
  const pace = proxied.pace('mx.test', { sessionsMax: 2 })
  const held = await permitOf(pace.start(0, never))
  proxy.refuse()
  let isGranted = false
  const list = Promise.resolve(pace.start(0, never)).finally(() => {
    isGranted = true
  })
  const fault = await Promise.resolve(pace.start(0, never, true)).catch((error: unknown) => error)
  expect(isStorageError(fault)).toBe(true)
  // A release during the outage is stored later.
  held.release()
  await direct.polled(8)
  expect(isGranted).toBe(false)
  expect((await storedOf(direct))?.held).toEqual({ proxied0: 1 })
  pace.throttled(MINUTE)
  expect(await list).toMatchObject({ paused: true })
  proxy.accept()
  await waitUntil(async () => (await storedOf(direct))?.state.sessionsAllowed === 1)
  expect((await storedOf(direct))?.held).toEqual({})
  expect(pace.readyInMs).toBeGreaterThan(MINUTE)
})

test('a list continues when the database is available again', async () => {
  const { proxy, direct, proxied } = await startBehindProxy()
  const pace = proxied.pace()
  proxy.refuse()
  const list = permitOf(pace.start(0, never))
  await direct.polled(4)
  proxy.accept()
  ;(await list).release()
  await untilFree(direct)
})

test('a cut after any number of bytes leaves no stale permit and no permit that is not stored', async () => {
  const { proxy, direct, proxied } = await startBehindProxy()
  const pace = proxied.pace('mx.test', { sessionsMax: 1, sessionsPerSecond: 1_000 })
  let lost = 0
  for (let bytes = 1; bytes < 900; bytes += 30) {
    const cut = proxy.cutAfterBytes(bytes)
    for (let isCut = false; !isCut; ) {
      void cut.then(() => {
        isCut = true
      })
      const start = await Promise.resolve(pace.start(0, never, true)).catch(error => {
        expect(isStorageError(error)).toBe(true)
        lost++
        return null
      })
      if (start !== null && 'permit' in start) {
        expect((await storedOf(direct))?.held).toEqual({ proxied0: 1 })
        start.permit.release()
      }
      await Promise.resolve()
    }
  }
  expect(lost).toBeGreaterThan(0)
  await untilFree(direct)
  ;(await permitOf(direct.pace('mx.test', { sessionsMax: 1 }).start(0, never))).release()
})

test('a release that could not be stored is stored later, even if nothing else happens', async () => {
  const [one] = await processes(1)
  const permit = await permitOf(one.pace('mx.test', { sessionsMax: 1 }).start(0, never))
  // A waiting single verification makes all rate states refresh more often, so this one has
  // then been unused for many refreshes.
  const busy = one.pace('busy.test', { sessionsMax: 1 })
  const other = await permitOf(busy.start(0, never))
  const giveUp = new AbortController()
  const waiting = busy.start(0, giveUp.signal, true)
  await one.polled(12)
  giveUp.abort()
  await waiting
  other.release()
  await one.polled(2)
  await sql`
    create function no() returns trigger language plpgsql as $$
      begin raise exception 'not now'; end $$`.execute(one.database.db)
  await sql`create trigger no before update on pace execute function no()`.execute(one.database.db)
  permit.release()
  await one.polled(4)
  await sql`drop trigger no on pace`.execute(one.database.db)
  await untilFree(one)
})

test('throttling that is reported during an outage is stored after recovery', async () => {
  const { proxy, direct, proxied } = await startBehindProxy()
  const pace = proxied.pace()
  ;(await permitOf(pace.start(0, never))).release()
  await untilFree(direct)
  proxy.refuse()
  pace.throttled(null)
  await direct.polled(4)
  proxy.accept()
  await waitUntil(async () => ((await storedOf(direct))?.state.throttledUntil ?? 0) > 0)
})
