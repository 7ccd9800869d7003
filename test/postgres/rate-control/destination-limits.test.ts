import { expect, test } from 'vitest'
import { DomainBlocks } from '../../../src/engine/probe/domain-blocks.ts'
import { DestinationLimits } from '../../../src/engine/rate-control/destination-limits.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import {
  never,
  type Process,
  pause,
  permitOf,
  processes,
  REFUSAL,
  ROW,
} from '../../support/cluster-rate-state.ts'
import { waitUntil } from '../../support/wait.ts'

const IP = '192.0.2.80'

const createLimits = ({ paces }: Process) =>
  new DestinationLimits({
    clock: systemClock,
    limits: ROW,
    address: ROW,
    network: { sessionsMax: 100 * ROW.sessionsMax, sessionsPerSecond: 100 * ROW.sessionsPerSecond },
    isKnown: () => false,
    hasSeveralEgresses: () => true,
    share: paces,
  })

const request = (key: string) => ({
  key,
  single: false,
  signal: never,
  timeoutMs: 0,
  isReturnable: false,
})

async function acquireAt(limits: DestinationLimits, operator: string) {
  const start = await limits.start(operator, IP, request(operator))
  if ('permit' in start) return start.permit
  throw new Error(`no permit: ${JSON.stringify(start)}`)
}

test('several processes together open no more connections to an address than one operator allows', async () => {
  const all = (await processes(4)).map(createLimits)
  // Each process has seen two operators at the address.
  for (const limits of all) {
    for (const operator of ['one.test', 'two.test']) (await acquireAt(limits, operator)).release()
  }
  let [held, most] = [0, 0]
  await Promise.all(
    all.flatMap((limits, process) =>
      Array.from({ length: 6 }, async (_, n) => {
        const permit = await acquireAt(limits, `vanity${process}-${n}.test`)
        most = Math.max(most, ++held)
        await pause(2)
        held--
        permit.release()
      }),
    ),
  )
  expect(most).toBe(2)
})

test('an address of only one operator stores no state of its own', async () => {
  const [one] = await processes(1)
  const limits = createLimits(one)
  for (let n = 0; n < 3; n++) (await acquireAt(limits, 'one.test')).release()
  await one.polled(1)
  const rows = await one.database.db.selectFrom('pace').select('operator').execute()
  expect(rows).toEqual([])
})

test('the egresses of several processes share the limit of an unknown operator', async () => {
  const [one, other] = await processes(2)
  const [mine, theirs] = [
    createLimits(one).operator('op.test'),
    createLimits(other).operator('op.test'),
  ]
  if (mine === null || theirs === null) throw new Error('no limit')
  const first = await permitOf(mine.start(0, never))
  await permitOf(mine.start(0, never))
  let isGranted = false
  const waiting = permitOf(theirs.start(0, never)).then(() => {
    isGranted = true
  })
  await other.polled(3)
  expect(isGranted).toBe(false)
  first.release()
  await waiting
})

test('a domain that blocks an egress is known to all processes until it answers', async () => {
  const [one, other] = await processes(2)
  const createBlocks = ({ paces }: Process, egress: string) =>
    new DomainBlocks({ clock: systemClock, egress, limits: ROW, share: paces })
  const [mine, theirs] = [createBlocks(one, 'a'), createBlocks(other, 'a')]
  expect([1, 2, 3].map(() => mine.blocked('tenant.test', REFUSAL))).toEqual([false, false, true])
  await waitUntil(() => theirs.find('tenant.test') !== null)
  expect(theirs.find('tenant.test')).toMatchObject({ answer: REFUSAL })
  expect(theirs.find('other.test')).toBeNull()
  expect(createBlocks(other, 'b').find('tenant.test')).toBeNull()
  mine.notBlocked('tenant.test')
  await waitUntil(() => theirs.find('tenant.test') === null)
})

test('domains that block an egress are counted per operator over all processes', async () => {
  const [one, other] = await processes(2)
  const [mine, theirs] = [one.pace('op'), other.pace('op')]
  mine.refusedByDomain('a.test', REFUSAL)
  mine.refusedByDomain('b.test', REFUSAL)
  mine.refusedByDomain('b.test', REFUSAL)
  await one.polled(1)
  expect(mine.isRefused).toBe(false)
  theirs.refusedByDomain('c.test', REFUSAL)
  await waitUntil(() => mine.isRefused && theirs.isRefused)
})
