import { expect, test } from 'vitest'
import { deleteRates } from '../../../src/cluster/rate-control/rows.ts'
import { HOUR, MINUTE, SECOND } from '../../../src/platform/clock.ts'
import {
  never,
  permitOf,
  processes,
  REFUSAL,
  storedOf,
  untilFree,
} from '../../support/cluster-rate-state.ts'
import { waitUntil } from '../../support/wait.ts'

test('throttling reported by one process pauses all at their next refresh', async () => {
  const many = await processes(4)
  const paces = many.map(one => one.pace())
  for (const pace of paces) (await permitOf(pace.start(0, never))).release()
  paces[0]?.throttled(null)
  await waitUntil(() => paces.every(({ readyInMs }) => readyInMs > 4 * MINUTE))
  for (const pace of paces) {
    expect(await pace.start(0, never)).toMatchObject({ paused: true })
    const status = pace.status('mx.test')
    expect(status).toMatchObject({ sessionsAllowed: 1, sessionsPerSecond: 250 })
    expect(status.pause?.why).toBe('throttled')
    expect(Math.abs((status.pause?.until ?? 0) - Date.now() - 5 * MINUTE)).toBeLessThan(5 * SECOND)
  }
})

test('a process that never probed an operator learns of a pause before it opens a connection', async () => {
  const [one, other] = await processes(2)
  const pace = one.pace()
  pace.throttled(null)
  await waitUntil(async () => (await storedOf(one)) !== null)
  expect(await other.pace().start(0, never)).toMatchObject({ paused: true })
})

test('a block is known to all processes at their next refresh, even if they never probed there', async () => {
  const many = await processes(3)
  const [one, two] = many
  const pace = two.pace()
  ;(await permitOf(pace.start(0, never))).release()
  one.pace().refused(REFUSAL)
  const key = { operator: 'mx.test', egress: 'a' }
  await waitUntil(() => many.every(({ paces }) => paces.refusal(key) !== null))
  // The reply is passed on unchanged.
  expect(await pace.start(0, never)).toEqual({ refusal: REFUSAL })
  expect(pace.status('mx.test').refusal?.answer).toEqual(REFUSAL)
  expect(many.some(({ paces }) => paces.refusal({ ...key, egress: 'b' }) !== null)).toBe(false)
  // One connection was accepted nevertheless.
  pace.succeeded()
  await waitUntil(() => !many.some(({ paces }) => paces.refusal(key) !== null))
})

test('a process that starts later knows the existing blocks', async () => {
  const [one] = await processes(1)
  one.pace().refused(REFUSAL)
  one.pace().skipped(7)
  await waitUntil(async () => (await storedOf(one))?.state.refusal?.skipped === 7)
  const [later] = await processes(1, one.url, 'later')
  await waitUntil(() => later.paces.refusal({ operator: 'mx.test', egress: 'a' }) !== null)
})

test('a success in one process speeds up all processes again', async () => {
  const [one, other] = await processes(2)
  const [mine, theirs] = [one.pace(), other.pace()]
  ;(await permitOf(theirs.start(0, never))).release()
  mine.throttled(null)
  await waitUntil(() => theirs.status('mx.test').sessionsAllowed === 1)
  mine.succeeded()
  await waitUntil(() => theirs.status('mx.test').sessionsAllowed === 2)
  expect(theirs.status('mx.test').sessionsPerSecond).toBe(312.5)
})

test('the same throttling reported by several processes at once counts once', async () => {
  const many = await processes(4)
  const paces = many.map(one => one.pace('mx.test', { sessionsMax: 8 }))
  for (const pace of paces) (await permitOf(pace.start(0, never))).release()
  for (const pace of paces) pace.throttled(null)
  await waitUntil(() => paces.every(pace => pace.readyInMs > 0))
  await untilFree(many[0])
  expect((await storedOf(many[0]))?.state).toMatchObject({
    sessionsAllowed: 4,
    pauseMs: 10 * MINUTE,
  })
})

test('a streak of unknown recipients continues in another process after the connection closes', async () => {
  const [one, other] = await processes(2)
  const [mine, theirs] = [one.pace(), other.pace()]
  const permit = await permitOf(mine.start(0, never))
  for (let n = 0; n < 12; n++) mine.onUnknownRecipient()
  expect(mine.unknownsLeft).toBe(8)
  permit.release()
  await untilFree(one)
  const next = await permitOf(theirs.start(0, never))
  expect(theirs.unknownsLeft).toBe(8)
  for (let n = 0; n < 7; n++) expect(theirs.onUnknownRecipient()).toBe(false)
  expect(theirs.onUnknownRecipient()).toBe(true)
  next.release()
  await waitUntil(() => mine.readyInMs > 0)
  expect(mine.status('mx.test').pause?.why).toBe('unknown-users')
})

test('a known recipient in one process ends the streak in another', async () => {
  const [one, other] = await processes(2)
  const [mine, theirs] = [one.pace(), other.pace()]
  const first = await permitOf(mine.start(0, never))
  for (let n = 0; n < 12; n++) mine.onUnknownRecipient()
  first.release()
  await untilFree(one)
  const second = await permitOf(theirs.start(0, never))
  theirs.onKnownRecipient()
  second.release()
  await waitUntil(() => mine.unknownsLeft === 20)
})

test('the state of an operator that is unused for two hours is deleted', async () => {
  const [one] = await processes(1)
  one.pace().throttled(null)
  await waitUntil(async () => (await storedOf(one)) !== null)
  await deleteRates(one.database)
  expect(await storedOf(one)).not.toBeNull()
  await one.database.db
    .updateTable('pace')
    .set(eb => ({ changed_at: eb('changed_at', '-', 2 * HOUR + MINUTE) }))
    .execute()
  await deleteRates(one.database)
  expect(await storedOf(one)).toBeNull()
})
