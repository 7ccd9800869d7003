import { expect, test } from 'vitest'
import { writeRates } from '../../../src/cluster/rate-control/rows.ts'
import { serverNow } from '../../../src/db/server-time.ts'
import { newState } from '../../../src/engine/rate-control/rules.ts'
import {
  never,
  pause,
  permitOf,
  processes,
  ROW,
  storedOf,
  untilFree,
} from '../../support/cluster-rate-state.ts'
import { waitUntil } from '../../support/wait.ts'

const ONE = { sessionsMax: 1 }

test('a permit of an expired member is released, and a waiting process gets it', async () => {
  const [expired, other] = await processes(2)
  await permitOf(expired.pace('mx.test', ONE).start(0, never))
  const waiting = permitOf(other.pace('mx.test', ONE).start(0, never))
  await other.polled(4)
  expect((await storedOf(other))?.held).toEqual({ m0: 1 })
  await expired.expire()
  await waiting
  expect((await storedOf(other))?.held).toEqual({ m1: 1 })
})

test('an expired member loses its permits, gets none, and can acquire again under a new ID', async () => {
  const [one, other] = await processes(2)
  const pace = one.pace('mx.test', ONE)
  const old = await permitOf(pace.start(0, never))
  await one.expire()
  const taken = await permitOf(other.pace('mx.test', ONE).start(0, never))
  let isGranted = false
  const newPermit = permitOf(pace.start(0, never)).then(permit => {
    isGranted = true
    return permit
  })
  // Its late release does not affect the permit of the other.
  old.release()
  taken.release()
  await untilFree(other)
  await one.polled(5)
  expect(isGranted).toBe(false)
  await one.join('m0-again')
  const permit = await newPermit
  expect((await storedOf(other))?.held).toEqual({ 'm0-again': 1 })
  permit.release()
  await untilFree(other)
})

test('an expired member that rejoins has its open connections counted until they close', async () => {
  const [one, other] = await processes(2)
  const old = await permitOf(one.pace('mx.test', ONE).start(0, never))
  await one.expire()
  await one.join('m0-again')
  await waitUntil(async () => (await storedOf(other))?.held['m0-again'] === 1)
  let isGranted = false
  const waiting = permitOf(other.pace('mx.test', ONE).start(0, never)).then(permit => {
    isGranted = true
    return permit
  })
  await other.polled(5)
  expect(isGranted).toBe(false)
  old.release()
  await waiting
  expect((await storedOf(other))?.held).toEqual({ m1: 1 })
})

test('the release of one of several permits is visible to every process', async () => {
  const [one, other] = await processes(2)
  const row = { sessionsMax: 3 }
  const [mine, theirs] = [one.pace('mx.test', row), other.pace('mx.test', row)]
  const first = await permitOf(mine.start(0, never))
  await permitOf(mine.start(0, never))
  await permitOf(theirs.start(0, never))
  expect((await storedOf(one))?.held).toEqual({ m0: 2, m1: 1 })
  first.release()
  await waitUntil(async () => (await storedOf(one))?.held.m0 === 1)
  await waitUntil(() => theirs.status('mx.test').sessions === 2)
})

test('a permit that is granted after its request was aborted is released', async () => {
  const [one] = await processes(1)
  for (let n = 0; n < 20; n++) {
    const giveUp = new AbortController()
    const start = one.pace().start(0, giveUp.signal)
    if (n % 2 === 1) await pause(n % 5)
    giveUp.abort()
    const result = await start
    if ('permit' in result) result.permit.release()
  }
  await untilFree(one)
  expect(one.pace().status('mx.test').sessions).toBe(0)
})

test('a single verification goes before the lists of other processes', async () => {
  const [lists, other] = await processes(2)
  const row = { sessionsMax: 1, sessionsPerSecond: 100 }
  const busy = lists.pace('mx.test', row)
  let isDone = false
  const loops = [1, 2, 3].map(async () => {
    while (!isDone) {
      const permit = await permitOf(busy.start(0, never))
      // A list gives up its connection when a request waits for one.
      await waitUntil(() => busy.isRequested || isDone)
      permit.release()
    }
  })
  await waitUntil(() => busy.status('mx.test').sessions === 1)
  const permit = await permitOf(other.pace('mx.test', row).start(0, never, true))
  isDone = true
  permit.release()
  await Promise.all(loops)
})

test('the limits of two egresses or of two operators are independent', async () => {
  const [one, other] = await processes(2)
  const start = (operator: string, egress: string) =>
    permitOf(other.pace(operator, ONE, egress).start(0, never))
  await permitOf(one.pace('mx.test', ONE, 'a').start(0, never))
  await Promise.all([start('mx.test', 'b'), start('other.test', 'a')])
  expect((await storedOf(one, 'mx.test', 'b'))?.held).toEqual({ m1: 1 })
})

test('a permit is stored only for a current member', async () => {
  const [one] = await processes(1)
  const write = (member: string) => {
    const stored = { state: newState(ROW), held: { [member]: 1 }, waiting: {} }
    return writeRates(one.database, [
      { operator: 'mx.test', egress: 'a', version: 0, stored, member },
    ])
  }
  expect(await write('gone')).toEqual([])
  expect(await storedOf(one)).toBeNull()
  expect(await write('m0')).toHaveLength(1)
  expect((await storedOf(one))?.held).toEqual({ m0: 1 })
})

test('a waiting process renews its wait ticket as long as it waits', async () => {
  const [one, other] = await processes(2)
  await permitOf(one.pace('mx.test', ONE).start(0, never))
  const giveUp = new AbortController()
  const waiting = other.pace('mx.test', ONE).start(0, giveUp.signal, true)
  const getTicket = async () => (await storedOf(one))?.waiting.m1
  await waitUntil(async () => (await getTicket()) !== undefined)
  // Wait until the first ticket has expired.
  const first = await getTicket()
  await waitUntil(async () => (await serverNow(one.database)) > (first?.until ?? 0))
  await other.polled(1)
  const ticket = (await storedOf(one))?.waiting.m1
  expect(ticket?.single).toBe(true)
  expect(ticket?.until).toBeGreaterThan(await serverNow(one.database))
  giveUp.abort()
  await waiting
  await waitUntil(async () => (await storedOf(one))?.waiting.m1 === undefined)
})
