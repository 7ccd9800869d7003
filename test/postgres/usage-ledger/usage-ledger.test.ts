import { setTimeout } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import type { Reservation } from '../../../src/accounts/credits/reservations.ts'
import { createUsageLedger } from '../../../src/accounts/credits/usage-ledger.ts'
import { findPlan } from '../../../src/accounts/plan.ts'
import { deregister } from '../../../src/cluster/members.ts'
import type { Database } from '../../../src/db/database.ts'
import { releaseClaims } from '../../../src/jobs/member-claims.ts'
import { type Log, silentLog } from '../../../src/platform/log.ts'
import { systemRandom } from '../../../src/platform/random.ts'
import type { FakeClock } from '../../support/clock.ts'
import {
  claimedList,
  createTwoServers,
  depsOf,
  join,
  losingAnswers,
  PLANS,
  RESULT,
  resultsOf,
  summarize,
  undoingOnce,
  writeChanges,
} from '../../support/cluster-results.ts'

const FREE = findPlan(PLANS, 'free')

/** Creates a usage ledger, and asserts that it logs only retries. */
function createLedger(database: Database, member: string) {
  const error: Log['error'] = (message, fields) =>
    expect([message, fields]).toEqual([RETRY_MESSAGE, fields])
  return createUsageLedger({
    database,
    clock: database.clock,
    random: systemRandom,
    plans: PLANS,
    log: { ...silentLog, error },
    member: () => member,
  })
}

const RETRY_MESSAGE = 'usage ledger write failed; will retry'

const toSettlement = (accountId: string, reservation: Reservation | null) => ({
  accountId,
  keyId: 'key_a',
  source: 'single' as const,
  sandbox: false,
  reservation,
  entry: { result: RESULT },
})

/**
 * Advances the clock with the real time until the promises settle. Queries take real time: a faster
 * clock would time them out and reach the next credit period.
 */
async function untilDone(clock: FakeClock, ...done: Promise<unknown>[]): Promise<void> {
  let isDone = false
  const all = Promise.all(done).finally(() => {
    isDone = true
  })
  for (let at = Date.now(); !isDone; ) {
    await setTimeout(1)
    const now = Date.now()
    await clock.advance(now - at)
    at = now
  }
  await all
}

const listHolds = async ({ db }: Database) =>
  (await db.selectFrom('hold').selectAll().orderBy('member_id').execute()).map(
    ({ member_id, amount }) => `${member_id} ${amount}`,
  )

async function reserve(
  ledger: ReturnType<typeof createUsageLedger>,
  accountId = 'acc_a',
  amount = 1,
) {
  const reservation = await ledger.reserve(accountId, FREE, amount)
  if (!('amount' in reservation)) throw new Error('there are no credits left')
  return reservation
}

describe('credits reserved by a server for single verifications', () => {
  test('are stored under its member ID and shrink with each settlement or release', async () => {
    const { a, clock } = await createTwoServers()
    await join(a, 'mem_a')
    const ledger = createLedger(a, 'mem_a')
    const holds = [await reserve(ledger), await reserve(ledger), await reserve(ledger, 'acc_a', 5)]
    expect(holds[0]).toMatchObject({ amount: 1, member: 'mem_a' })
    expect(await listHolds(a)).toEqual(['mem_a 7'])
    ledger.settle(toSettlement('acc_a', holds[0] ?? null))
    ledger.giveBack('acc_a', holds[2] as Reservation)
    await untilDone(clock, ledger.flushed())
    expect(await listHolds(a)).toEqual(['mem_a 1'])
    expect(await summarize(a)).toMatchObject({ credits: ['acc_a used 1 held 1'], history: 1 })
    ledger.giveBack('acc_a', holds[1] as Reservation)
    await untilDone(clock, ledger.flushed())
    expect(await listHolds(a)).toEqual([])
    expect(await summarize(a)).toMatchObject({ credits: ['acc_a used 1 held 0'] })
  })

  test('are released when the member expires, and late settlements leave other reservations unchanged', async () => {
    const { a, b, clock } = await createTwoServers()
    for (const id of ['mem_a', 'mem_b']) await join(a, id)
    const [dying, living] = [createLedger(a, 'mem_a'), createLedger(b, 'mem_b')]
    const late = [await reserve(dying), await reserve(dying)]
    await reserve(living, 'acc_a', 3)
    await deregister(b, 'mem_a', releaseClaims)
    expect(await summarize(a)).toMatchObject({ credits: ['acc_a used 0 held 3'] })
    dying.settle(toSettlement('acc_a', late[0] ?? null))
    dying.giveBack('acc_a', late[1] as Reservation)
    await untilDone(clock, dying.flushed())
    expect(await summarize(a)).toMatchObject({ credits: ['acc_a used 1 held 3'], history: 1 })
    expect(await listHolds(a)).toEqual(['mem_b 3'])
  })
})

test('two servers that settle the same accounts while lists are written count everything without deadlock', async () => {
  const accounts = ['acc_a', 'acc_b', 'acc_c', 'acc_d']
  const { a, b, clock, deps } = await createTwoServers(accounts)
  for (const id of ['mem_a', 'mem_b']) await join(a, id)
  const lists = [
    await claimedList(a, { accountId: 'acc_d', rows: 20, holder: 'mem_a' }),
    await claimedList(a, { accountId: 'acc_a', rows: 20, holder: 'mem_a' }),
  ]
  const ledger = [createLedger(a, 'mem_a'), createLedger(b, 'mem_b')]
  const rounds = ledger.map(async (one, n) => {
    const order = n === 0 ? accounts : accounts.toReversed()
    for (let round = 0; round < 10; round++) {
      for (const id of order) one.settle(toSettlement(id, await reserve(one, id)))
      for (const id of order) one.giveBack(id, await reserve(one, id))
      await one.flushed()
    }
  })
  const groups = Array.from({ length: 10 }, (_, n) => {
    const rows = [resultsOf('mem_a', 2 * n + 1, 2 * n + 2)]
    const order = n % 2 === 0 ? lists : lists.toReversed()
    return writeChanges(deps.b, Object.fromEntries(order.map(id => [id, rows])))
  })
  await untilDone(clock, ...rounds, ...groups)
  expect(await summarize(a)).toMatchObject({
    credits: [
      ...['acc_a used 40 held 0', 'acc_b used 20 held 0'],
      ...['acc_c used 20 held 0', 'acc_d used 40 held 0'],
    ],
    verifications: 120,
    history: 120,
  })
  expect(await listHolds(a)).toEqual([])
}, 60_000)

test('emits one quota.exceeded event if two servers reject an account at once', async () => {
  const { a, b } = await createTwoServers()
  for (const id of ['mem_a', 'mem_b']) await join(a, id)
  const ledger = [createLedger(a, 'mem_a'), createLedger(b, 'mem_b')] as const
  await reserve(ledger[0], 'acc_a', 1_000)
  const refused = Array.from({ length: 10 }, (_, n) =>
    (n % 2 === 0 ? ledger[0] : ledger[1]).reserve('acc_a', FREE, 1),
  )
  expect((await Promise.all(refused)).filter(one => 'amount' in one)).toEqual([])
  expect((await summarize(a)).events).toEqual(['quota.exceeded', 'quota.warning', 'quota.warning'])
})

describe('a ledger group whose commit answer is lost', () => {
  test.each([1, 3])('is written once, even if the answer is lost repeatedly (%i)', async times => {
    const { a, clock } = await createTwoServers()
    await join(a, 'mem_a')
    const ledger = createLedger(losingAnswers(a, times), 'mem_a')
    const holds = [await reserve(ledger), await reserve(ledger), await reserve(ledger)]
    ledger.settle(toSettlement('acc_a', holds[0] ?? null))
    ledger.giveBack('acc_a', holds[1] as Reservation)
    await untilDone(clock, ledger.flushed())
    expect(await summarize(a)).toMatchObject({
      credits: ['acc_a used 1 held 1'],
      history: 1,
      verifications: 1,
    })
  })

  test('releases a reservation once if that is its only change', async () => {
    const { a, clock } = await createTwoServers()
    await join(a, 'mem_a')
    const ledger = createLedger(losingAnswers(a), 'mem_a')
    const holds = [await reserve(ledger), await reserve(ledger, 'acc_a', 5)]
    ledger.giveBack('acc_a', holds[0] as Reservation)
    await untilDone(clock, ledger.flushed())
    expect(await summarize(a)).toMatchObject({ credits: ['acc_a used 0 held 5'] })
    expect(await listHolds(a)).toEqual(['mem_a 5'])
  })

  test('is retried if the commit failed', async () => {
    const { a, clock } = await createTwoServers()
    await join(a, 'mem_a')
    const ledger = createLedger(undoingOnce(a), 'mem_a')
    ledger.settle(toSettlement('acc_a', await reserve(ledger)))
    await untilDone(clock, ledger.flushed())
    expect(await summarize(a)).toMatchObject({ credits: ['acc_a used 1 held 0'], history: 1 })
  })
})

test('both servers see the same list and credits', async () => {
  const { a, b } = await createTwoServers()
  await join(a, 'mem_a')
  const jobId = await claimedList(b, { accountId: 'acc_a', rows: 5, holder: 'mem_a' })
  expect(await summarize(a)).toMatchObject({ credits: ['acc_a used 0 held 5'] })
  await writeChanges(depsOf(a), { [jobId]: [resultsOf('mem_a', 1, 5)] })
  expect(await summarize(b)).toMatchObject({ credits: ['acc_a used 5 held 0'] })
})
