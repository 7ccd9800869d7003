import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { creditsFor } from '../../../src/accounts/credits/credit-rules.ts'
import { readCredit } from '../../../src/accounts/credits/credit-store.ts'
import { getHistoryPage } from '../../../src/accounts/credits/history-page.ts'
import { verdictCounters } from '../../../src/accounts/credits/ledger-entries.ts'
import {
  type Reservation,
  ReservationsInFlight,
} from '../../../src/accounts/credits/reservations.ts'
import { listUsage } from '../../../src/accounts/credits/usage.ts'
import {
  createUsageLedger,
  type SettledVerification,
  type UsageLedger,
} from '../../../src/accounts/credits/usage-ledger.ts'
import { findPlan, mergePlans, type Plan } from '../../../src/accounts/plan.ts'
import { type Database, write } from '../../../src/db/database.ts'
import { DAY } from '../../../src/platform/clock.ts'
import type { Log, LogFields } from '../../../src/platform/log.ts'
import { createWebhook } from '../../../src/webhooks/endpoint-store.ts'
import { addAccount } from '../../support/account-rows.ts'
import { fakeClock } from '../../support/clock.ts'
import { tempDatabase } from '../../support/database.ts'
import { countedRandom } from '../../support/random.ts'
import { resultOf } from '../../support/result.ts'
import { drainEventLoop } from '../../support/wait.ts'

const PLANS = mergePlans({ free: { creditsPerDay: 20 } })
const FREE = findPlan(PLANS, 'free')
const ENTERPRISE = findPlan(PLANS, 'enterprise')
/** Start of the credit period of the fake clock. */
const TODAY = Date.UTC(2026, 5, 1)

/** A ledger of an account with a webhook for quota events. */
async function services(plan = 'free') {
  const clock = fakeClock()
  const database = await tempDatabase({ clock })
  await addAccount(database, 'acc_a', plan)
  await write(database, trx =>
    createWebhook(trx, {
      id: 'wh_a',
      accountId: 'acc_a',
      url: 'https://hook.test/',
      active: true,
      events: ['quota.warning', 'quota.exceeded'],
      description: null,
      secret: 's',
      secretHint: 's',
      createdAt: 0,
    }),
  )
  const logged: [string, LogFields | undefined][] = []
  const error: Log['error'] = (message, fields) => void logged.push([message, fields])
  const log = { debug() {}, info() {}, warn: error, error }
  const deps = { database, clock, log, random: countedRandom(), plans: PLANS }
  return { clock, database, logged, deps, ledger: createUsageLedger(deps) }
}

const settled = (
  reservation: Reservation | null,
  facts: Partial<SettledVerification> = {},
): SettledVerification => ({
  accountId: 'acc_a',
  keyId: 'key_a',
  source: 'single',
  sandbox: false,
  reservation: reservation,
  entry: { result: resultOf('accepted_email') },
  ...facts,
})

async function held(ledger: UsageLedger, plan: Plan = FREE, amount = 1): Promise<Reservation> {
  const reservation = await ledger.reserve('acc_a', plan, amount)
  if (!('amount' in reservation)) throw new Error('there are no credits left')
  return reservation
}

/** Uses the given number of credits, one by one. */
async function use(ledger: UsageLedger, count: number): Promise<void> {
  for (let n = 0; n < count; n++) ledger.settle(settled(await held(ledger)))
  await ledger.flushed()
}

const creditOf = (database: Database, period = TODAY) => readCredit(database, 'acc_a', period)
const historyOf = (database: Database, sandbox = false) =>
  getHistoryPage(database, { accountId: 'acc_a', sandbox, before: null, max: 100 }).then(
    ({ rows }) => rows,
  )

async function eventsOf(database: Database) {
  const events = await database.db.selectFrom('event').selectAll().orderBy('id').execute()
  return events.map(({ body }) => {
    const { event, data } = JSON.parse(body)
    return `${event} ${data.threshold_percent} % ${data.used}/${data.limit} ${data.remaining} left`
  })
}

describe('a single verification', () => {
  test('reserves a credit while it is in flight, and uses it when it is settled', async () => {
    const { clock, database, ledger } = await services()
    const reservation = await held(ledger)
    expect(reservation).toEqual({ period: TODAY, amount: 1 })
    expect(await creditOf(database)).toMatchObject({ used: 0, held: 1 })
    ledger.settle(settled(reservation))
    await clock.advance(50)
    await ledger.flushed()
    expect(await creditOf(database)).toMatchObject({ used: 1, held: 0 })
  })

  test('is in the history under its given ID, and in the usage', async () => {
    const { clock, database, ledger } = await services()
    const entry = { id: 'ver_told', result: resultOf('catch_all') }
    ledger.settle(settled(await held(ledger), { entry }))
    ledger.settle(settled(await held(ledger), { entry: { result: resultOf('timeout') } }))
    await ledger.flushed()
    const [one, other] = (await historyOf(database)).toSorted((a, b) => (a.id < b.id ? 1 : -1))
    expect(one).toEqual({
      id: 'ver_told',
      account_id: 'acc_a',
      key_id: 'key_a',
      email: 'ann@good.test',
      valid: 1,
      deliverable: 0,
      risk_level: 'medium',
      reason: 'catch_all',
      class: 'risky',
      cached: 0,
      source: 'single',
      job_id: null,
      sandbox: 0,
      created_at: clock.now(),
    })
    expect(other).toMatchObject({ id: expect.stringMatching(/^ver_[0-9a-z]{20}$/) })
    const usage = await listUsage(database, { accountId: 'acc_a', from: TODAY, to: TODAY + DAY })
    expect(usage.map(row => [row.class, row.verifications, row.credits])).toEqual([
      ['risky', 1, 1],
      ['unknown', 1, 0],
    ])
  })

  test.each([
    ['unknown', resultOf('timeout')],
    ['cached', resultOf('accepted_email', { cached: true })],
    ['no address', resultOf('invalid_email')],
  ])('that is %s releases its credit', async (_, result) => {
    const { database, ledger } = await services()
    ledger.settle(settled(await held(ledger), { entry: { result } }))
    await ledger.flushed()
    expect(await creditOf(database)).toMatchObject({ used: 0, held: 0 })
    expect(await historyOf(database)).toHaveLength(1)
  })

  test('that ended without a result releases its credit', async () => {
    const { database, ledger } = await services()
    ledger.giveBack('acc_a', await held(ledger))
    await ledger.flushed()
    expect(await creditOf(database)).toMatchObject({ used: 0, held: 0 })
    expect(await historyOf(database)).toEqual([])
  })

  test('of the sandbox costs nothing and is only in its own history', async () => {
    const { database, ledger } = await services()
    ledger.settle(settled(null, { sandbox: true }))
    await ledger.flushed()
    expect(await creditOf(database)).toMatchObject({ used: 0, held: 0 })
    expect(await historyOf(database)).toEqual([])
    expect(await historyOf(database, true)).toHaveLength(1)
    const usage = await listUsage(database, { accountId: 'acc_a', from: 0, to: TODAY + DAY })
    expect(usage).toEqual([])
  })

  test('that runs past midnight is settled on the day on which it started', async () => {
    const { clock, database, ledger } = await services()
    clock.jump(DAY / 2 - 1_000)
    const reservation = await held(ledger)
    clock.jump(2_000)
    ledger.settle(settled(reservation))
    ledger.settle(settled(await held(ledger)))
    await ledger.flushed()
    expect(await creditOf(database)).toMatchObject({ used: 1, held: 0 })
    expect(await creditOf(database, TODAY + DAY)).toMatchObject({ used: 1, held: 0 })
  })

  test('of a plan without a limit writes nothing before its answer, and counts after it', async () => {
    const { database, ledger } = await services('enterprise')
    const reservation = await held(ledger, ENTERPRISE)
    expect(await database.db.selectFrom('credit').selectAll().execute()).toEqual([])
    ledger.settle(settled(reservation))
    await ledger.flushed()
    expect(await creditOf(database)).toMatchObject({ used: 1, held: 0, warned: 0 })
    expect(await eventsOf(database)).toEqual([])
  })
})

describe('the reservations in flight', () => {
  const inFlight = (ledger: UsageLedger, period = TODAY) =>
    ledger.inFlight.amount('acc_a', period, null)

  test('are those that are neither settled nor given back', async () => {
    const { ledger } = await services()
    const [one, two, three] = [await held(ledger), await held(ledger, FREE, 2), await held(ledger)]
    expect(inFlight(ledger)).toBe(4)
    await ledger.settle(settled(one))
    expect(inFlight(ledger)).toBe(3)
    ledger.giveBack('acc_a', two)
    await ledger.flushed()
    expect(inFlight(ledger)).toBe(1)
    ledger.settled('acc_a', three)
    expect(inFlight(ledger)).toBe(0)
  })

  test('are counted by account and period', async () => {
    const { clock, ledger } = await services()
    await held(ledger)
    clock.jump(DAY)
    await held(ledger, FREE, 2)
    expect([inFlight(ledger), inFlight(ledger, TODAY + DAY)]).toEqual([1, 2])
    expect(ledger.inFlight.amount('acc_b', TODAY, null)).toBe(0)
    expect(ledger.inFlight.amount('acc_a', TODAY, 'mem_a')).toBe(0)
  })

  test('are none of a plan without a limit, nor of a request that was refused', async () => {
    const { ledger } = await services()
    expect(await held(ledger, ENTERPRISE)).toEqual({ period: TODAY, amount: 0 })
    expect(await ledger.reserve('acc_a', FREE, 21)).toEqual({ creditsLeft: 20 })
    expect(inFlight(ledger)).toBe(0)
  })

  test('of a member of a cluster are its own', () => {
    const inFlight = new ReservationsInFlight()
    inFlight.add('acc_a', { period: TODAY, amount: 2, member: 'mem_a' })
    inFlight.add('acc_a', { period: TODAY, amount: 1 })
    expect(inFlight.amount('acc_a', TODAY, 'mem_a')).toBe(2)
    expect(inFlight.amount('acc_a', TODAY, null)).toBe(1)
    inFlight.remove('acc_a', { period: TODAY, amount: 2, member: 'mem_a' })
    expect(inFlight.amount('acc_a', TODAY, 'mem_a')).toBe(0)
  })

  test('do not contain one that could not be written', async () => {
    const { database, ledger } = await services()
    await sql`create trigger refuse before insert on credit
      begin select raise(abort, 'disk trouble'); end`.execute(database.db)
    await expect(held(ledger)).rejects.toThrow('disk trouble')
    expect(inFlight(ledger)).toBe(0)
  })

  test('end with an entry that can never be written', async () => {
    const { database, ledger } = await services()
    await sql`create trigger refuse before insert on verification
      begin select raise(abort, 'bad entry'); end`.execute(database.db)
    await expect(ledger.settle(settled(await held(ledger)))).rejects.toThrow('bad entry')
    expect(inFlight(ledger)).toBe(0)
  })

  test('stay while an entry waits to be written', async () => {
    const { clock, database, ledger: before, deps } = await services()
    const full = Object.assign(new Error('disk full'), { code: 'SQLITE_FULL' })
    const faults = [full]
    const ledger = createUsageLedger({ ...deps, database: failing(database, () => faults.shift()) })
    const reservation = await held(before)
    ledger.inFlight.add('acc_a', reservation)
    const written = ledger.settle(settled(reservation))
    await clock.advance(500)
    expect(inFlight(ledger)).toBe(1)
    await clock.advance(1_000)
    await written
    expect(inFlight(ledger)).toBe(0)
  })
})

test('verdicts are counted by their reason, without those of the sandbox', async () => {
  const { database, ledger } = await services()
  for (let n = 0; n < 2; n++) await ledger.settle(settled(await held(ledger)))
  await ledger.settle(settled(null, { sandbox: true }))
  const entries = [{ result: resultOf('timeout') }]
  const of = { accountId: 'acc_a', keyId: 'key_a', source: 'batch', jobId: 'job_a' } as const
  await write(database, trx =>
    ledger.record(trx, { ...of, sandbox: false, period: TODAY, released: 0, entries }),
  )
  expect([...verdictCounters(database)]).toEqual([
    ['accepted_email', 2],
    ['timeout', 1],
  ])
})

test('cached results cost nothing and are counted as cached', async () => {
  const { database, ledger } = await services()
  const entry = { result: resultOf('accepted_email', { cached: true }) }
  await ledger.settle(settled(await held(ledger), { entry }))
  await ledger.settle(settled(await held(ledger)))
  const usage = await listUsage(database, { accountId: 'acc_a', from: TODAY, to: TODAY + DAY })
  expect(usage).toMatchObject([{ class: 'deliverable', verifications: 2, cached: 1, credits: 1 }])
  expect(creditsFor(resultOf('rejected_email'))).toBe(1)
})

test('results of several accounts and days in one transaction are charged separately', async () => {
  const { database, ledger } = await services()
  await addAccount(database, 'acc_b', 'free')
  const entries = [{ result: resultOf('accepted_email') }]
  const of = { keyId: 'key_a', source: 'batch', jobId: 'job_a', sandbox: false } as const
  const batch = { ...of, released: 0, entries }
  await write(database, trx =>
    ledger.record(
      trx,
      { ...batch, accountId: 'acc_b', period: null },
      { ...batch, accountId: 'acc_a', period: TODAY },
      { ...batch, accountId: 'acc_a', period: TODAY - DAY },
      { ...batch, accountId: 'acc_a', period: TODAY },
    ),
  )
  expect(await creditOf(database)).toMatchObject({ used: 2 })
  expect(await creditOf(database, TODAY - DAY)).toMatchObject({ used: 1 })
  expect(await readCredit(database, 'acc_b', TODAY)).toMatchObject({ used: 1 })
})

test('rows are written in the order in which they are locked, whatever the order of results', async () => {
  const { database, ledger } = await services()
  const entries = [{ result: resultOf('rejected_email') }, { result: resultOf('accepted_email') }]
  const of = { keyId: 'key_a', source: 'batch', jobId: 'job_a', sandbox: false } as const
  const batch = { ...of, released: 0, entries }
  await write(database, trx =>
    ledger.record(
      trx,
      { ...batch, accountId: 'acc_b', period: TODAY },
      { ...batch, accountId: 'acc_a', period: TODAY },
      { ...batch, accountId: 'acc_c', period: TODAY },
      { ...batch, accountId: 'acc_a', period: TODAY - DAY },
    ),
  )
  const credits = await sql<{ account_id: string; period_start: number }>`
    select account_id, period_start from credit order by rowid`.execute(database.db)
  expect(credits.rows.map(row => [row.account_id, row.period_start])).toEqual([
    ['acc_a', TODAY - DAY],
    ['acc_a', TODAY],
    ['acc_b', TODAY],
    ['acc_c', TODAY],
  ])
  const usage = await sql<{ class: string }>`
    select class from usage where account_id = 'acc_b' order by rowid`.execute(database.db)
  expect(usage.rows.map(row => row.class)).toEqual(['deliverable', 'undeliverable'])
})

test('a refused request writes only the first event, and none while credits are left', async () => {
  const { database, deps, logged, ledger: before } = await services()
  let writes = 0
  const ledger = createUsageLedger({ ...deps, database: failing(database, () => void writes++) })
  await use(before, 19)
  await ledger.refused('acc_a', FREE)
  expect(writes).toBe(0)
  await use(before, 1)
  expect((await eventsOf(database)).at(-1)).toBe('quota.exceeded 100 % 20/20 0 left')
  for (let n = 0; n < 3; n++) await ledger.refused('acc_a', FREE)
  expect([writes, logged]).toEqual([0, []])
  await database.db.updateTable('credit').set({ warned: 95 }).execute()
  await ledger.refused('acc_a', FREE)
  expect(writes).toBe(1)
})

test('a result that costs nothing warns of nothing', async () => {
  const { database, ledger } = await services('enterprise')
  for (let n = 0; n < 16; n++) await ledger.settle(settled(null))
  await database.db.updateTable('account').set({ plan: 'free' }).execute()
  const unknown = { entry: { result: resultOf('timeout') } }
  await ledger.settle(settled(await held(ledger), unknown))
  expect(await creditOf(database)).toMatchObject({ used: 16, held: 0 })
  expect(await eventsOf(database)).toEqual([])
  await ledger.settle(settled(await held(ledger)))
  expect(await eventsOf(database)).toEqual(['quota.warning 80 % 17/20 3 left'])
})

test('what costs nothing and reserved nothing writes no credits', async () => {
  const { database, ledger } = await services('enterprise')
  ledger.giveBack('acc_a', await held(ledger, ENTERPRISE))
  await ledger.settle(
    settled(await held(ledger, ENTERPRISE), { entry: { result: resultOf('timeout') } }),
  )
  await ledger.flushed()
  expect(await database.db.selectFrom('credit').selectAll().execute()).toEqual([])
})

test('the last results of an account that was deleted are charged without an event', async () => {
  const { database, ledger } = await services()
  await ledger.settle(settled(null, { accountId: 'acc_gone' }))
  expect(await readCredit(database, 'acc_gone', TODAY)).toMatchObject({ used: 1 })
  expect(await eventsOf(database)).toEqual([])
})

test('reservations of several accounts and days are given back separately', async () => {
  const { clock, database, ledger } = await services()
  await addAccount(database, 'acc_b', 'free')
  const reserve = async (id: string) => (await ledger.reserve(id, FREE, 3)) as Reservation
  const mine = [await reserve('acc_a'), await reserve('acc_a')]
  const other = await reserve('acc_b')
  clock.jump(DAY)
  const later = await reserve('acc_a')
  ledger.giveBack('acc_b', other)
  for (const one of [...mine, later]) ledger.giveBack('acc_a', one)
  await ledger.flushed()
  expect(await creditOf(database)).toMatchObject({ held: 0 })
  expect(await creditOf(database, TODAY + DAY)).toMatchObject({ held: 0 })
  expect(await readCredit(database, 'acc_b', TODAY)).toMatchObject({ held: 0 })
})

test('a ledger that stops says how many entries are lost', async () => {
  const { database, logged, deps, ledger: before } = await services()
  const full = Object.assign(new Error('disk full'), { code: 'SQLITE_FULL' })
  const ledger = createUsageLedger({ ...deps, database: failing(database, () => full) })
  ledger.giveBack('acc_a', await held(before))
  await before.stop()
  expect(logged).toEqual([])
  await ledger.stop()
  expect(logged.at(-1)).toEqual(['usage ledger write failed; entries lost', { entries: 1 }])
})

describe('the last credit', () => {
  test('goes to one of a hundred concurrent requests', async () => {
    const { database, ledger } = await services()
    await use(ledger, 19)
    const holds = await Promise.all(
      Array.from({ length: 100 }, () => ledger.reserve('acc_a', FREE, 1)),
    )
    expect(holds.filter(one => 'amount' in one)).toHaveLength(1)
    expect(await creditOf(database)).toMatchObject({ used: 19, held: 1 })
  })

  test('is available again when its verification fails', async () => {
    const { ledger } = await services()
    await use(ledger, 19)
    const reservation = await held(ledger)
    expect(await ledger.reserve('acc_a', FREE, 1)).toEqual({ creditsLeft: 0 })
    ledger.giveBack('acc_a', reservation)
    await ledger.flushed()
    expect(await ledger.reserve('acc_a', FREE, 1)).toMatchObject({ amount: 1 })
  })
})

describe('an account is notified', () => {
  test('at 80, 95 and 100 percent, once each', async () => {
    const { database, ledger } = await services()
    await use(ledger, 15)
    expect(await eventsOf(database)).toEqual([])
    await use(ledger, 1)
    expect(await eventsOf(database)).toEqual(['quota.warning 80 % 16/20 4 left'])
    await use(ledger, 4)
    await ledger.reserve('acc_a', FREE, 1)
    expect(await eventsOf(database)).toEqual([
      'quota.warning 80 % 16/20 4 left',
      'quota.warning 95 % 20/20 0 left',
      'quota.exceeded 100 % 20/20 0 left',
    ])
  })

  test('when it is rejected while all remaining credits are reserved, and not again in that period', async () => {
    const { clock, database, ledger } = await services()
    await held(ledger, FREE, 20)
    for (let n = 0; n < 3; n++)
      expect(await ledger.reserve('acc_a', FREE, 1)).toEqual({ creditsLeft: 0 })
    const emitted = await eventsOf(database)
    expect(emitted.filter(text => text.startsWith('quota.exceeded'))).toEqual([
      'quota.exceeded 100 % 20/20 0 left',
    ])
    clock.jump(DAY)
    await held(ledger, FREE, 20)
    await ledger.reserve('acc_a', FREE, 1)
    expect(await eventsOf(database)).toHaveLength(2 * emitted.length)
  })

  test('when another part of the service rejected it for lack of credits', async () => {
    const { database, ledger } = await services()
    await use(ledger, 15)
    await ledger.refused('acc_a', FREE)
    await ledger.refused('acc_a', ENTERPRISE)
    expect(await eventsOf(database)).toEqual([])
    await held(ledger, FREE, 5)
    for (let n = 0; n < 2; n++) await ledger.refused('acc_a', FREE)
    expect(await eventsOf(database)).toEqual([
      'quota.warning 80 % 20/20 0 left',
      'quota.warning 95 % 20/20 0 left',
      'quota.exceeded 100 % 20/20 0 left',
    ])
    const events = await database.db.selectFrom('event').select('body').execute()
    for (const { body } of events) expect(JSON.parse(body)).not.toHaveProperty('sandbox')
  })

  test('of nothing if the event cannot be written, and is rejected all the same', async () => {
    const { database, ledger, logged } = await services()
    await held(ledger, FREE, 20)
    await sql`create trigger refuse before insert on event
      begin select raise(abort, 'no events'); end`.execute(database.db)
    expect(await ledger.reserve('acc_a', FREE, 1)).toEqual({ creditsLeft: 0 })
    expect(logged).toEqual([['quota event could not be written', { why: 'no events' }]])
  })

  test('not at all when it requested more at once than is left', async () => {
    const { database, ledger } = await services()
    await use(ledger, 10)
    expect(await ledger.reserve('acc_a', FREE, 11)).toEqual({ creditsLeft: 10 })
    expect(await eventsOf(database)).toEqual([])
  })
})

test('list results are written in their own transaction', async () => {
  const { database, ledger } = await services()
  await held(ledger, FREE, 5)
  const entries = [resultOf('accepted_email'), resultOf('timeout')].map(result => ({ result }))
  const list = { accountId: 'acc_a', keyId: 'key_a', source: 'batch', jobId: 'job_a' } as const
  const of = { ...list, sandbox: false, period: TODAY, released: 2, entries }
  const undoneCommit = write(database, async trx => {
    await ledger.record(trx, of)
    throw new Error('undone')
  })
  await expect(undoneCommit).rejects.toThrow('undone')
  expect(await historyOf(database)).toEqual([])
  await write(database, trx => ledger.record(trx, of))
  expect(await historyOf(database)).toMatchObject([{ job_id: 'job_a' }, { source: 'batch' }])
  expect(await creditOf(database)).toMatchObject({ used: 1, held: 3 })
})

describe('while nothing can be written', () => {
  const full = () => Object.assign(new Error('disk full'), { code: 'SQLITE_FULL' })

  test('verifications wait, and are written afterwards', async () => {
    const { clock, database, ledger: before, logged, deps } = await services()
    const faults = [full(), full()]
    const ledger = createUsageLedger({ ...deps, database: failing(database, () => faults.shift()) })
    const written = ledger.settle(settled(await held(before)))
    await drainEventLoop()
    await clock.advance(2_000)
    await written
    expect(logged.map(([text]) => text)).toEqual(
      Array(2).fill('usage ledger write failed; will retry'),
    )
    expect(await historyOf(database)).toHaveLength(1)
    expect(await creditOf(database)).toMatchObject({ used: 1, held: 0 })
  })

  test('waiting callers get the error after two seconds, and no verification starts until it is over', async () => {
    const { clock, database, ledger: before, deps } = await services()
    let isFull = true
    const ledger = createUsageLedger({
      ...deps,
      database: failing(database, () => (isFull ? full() : undefined)),
    })
    const begun = await held(before)
    const written = ledger.settle(settled(await held(before)))
    const rejection = expect(written).rejects.toThrow('disk full')
    await drainEventLoop()
    await clock.advance(2_000)
    await rejection
    await expect(held(ledger)).rejects.toThrow('disk full')
    await expect(ledger.settle(settled(null, { sandbox: true }))).rejects.toThrow('disk full')
    // One that had started before is kept.
    const kept = ledger.settle(settled(begun)).catch(() => {})
    isFull = false
    await clock.advance(1_000)
    await kept
    await ledger.flushed()
    expect(await historyOf(database)).toHaveLength(2)
    expect(await historyOf(database, true)).toEqual([])
    expect(await creditOf(database)).toMatchObject({ used: 2, held: 0 })
  })

  test('reservations are given back afterwards', async () => {
    const { clock, database, ledger: before, deps } = await services()
    const faults = [full()]
    const ledger = createUsageLedger({ ...deps, database: failing(database, () => faults.shift()) })
    ledger.giveBack('acc_a', await held(before))
    await drainEventLoop()
    await clock.advance(1_000)
    await ledger.flushed()
    expect(await creditOf(database)).toMatchObject({ used: 0, held: 0 })
  })

  test('an entry that can never be written is dropped alone', async () => {
    const { clock, database, ledger, logged } = await services()
    await sql`create trigger refuse before insert on verification when new.id = 'ver_bad'
      begin select raise(abort, 'bad entry'); end`.execute(database.db)
    const settle = async (id: string) =>
      ledger.settle(settled(await held(ledger), { entry: { id, result: resultOf('catch_all') } }))
    const written = await Promise.allSettled(['ver_a', 'ver_bad', 'ver_b'].map(settle))
    expect(written.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect((await historyOf(database)).map(({ id }) => id).toSorted()).toEqual(['ver_a', 'ver_b'])
    expect(logged.at(-1)).toEqual([
      'usage ledger write failed; entries lost',
      { entries: 1, tries: expect.any(Number), why: 'bad entry' },
    ])
    expect(clock.pending).toBe(0)
  })

  test('a batch that was committed although its commit failed is not counted again', async () => {
    const { clock, database, ledger, deps } = await services()
    ledger.settle(
      settled(await held(ledger), { entry: { id: 'ver_a', result: resultOf('timeout') } }),
    )
    ledger.settle(settled(await held(ledger)))
    await ledger.flushed()
    // The same two are retried; their first attempt fails after its commit.
    const faults = [Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR_FSYNC' })]
    const failed = Promise.withResolvers<void>()
    const afterCommit = () => {
      failed.resolve()
      return faults.shift()
    }
    const again = createUsageLedger({
      ...deps,
      database: failing(database, () => undefined, afterCommit),
    })
    again.settle(
      settled(await held(ledger), { entry: { id: 'ver_b', result: resultOf('timeout') } }),
    )
    again.settle(settled(await held(ledger)))
    await failed.promise
    await clock.advance(2_000)
    await again.flushed()
    expect(await historyOf(database)).toHaveLength(4)
    expect(await creditOf(database)).toMatchObject({ used: 2, held: 0 })
  })
})

type Fault = () => Error | undefined

/**
 * The database with failing transactions: with `before` nothing is written, with `after` they were
 * committed.
 */
function failing(database: Database, before: Fault, after: Fault = () => undefined): Database {
  const run = async (
    work: Parameters<ReturnType<typeof database.db.transaction>['execute']>[0],
  ) => {
    const early = before()
    if (early !== undefined) throw early
    const result = await database.db.transaction().execute(work)
    const late = after()
    if (late !== undefined) throw late
    return result
  }
  const db = Object.create(database.db, { transaction: { value: () => ({ execute: run }) } })
  return { ...database, db }
}
