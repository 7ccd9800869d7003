import { describe, expect, test } from 'vitest'
import { write } from '../../src/db/database.ts'
import { newAddressState } from '../../src/feedback/address-state.ts'
import type { FeedbackInput } from '../../src/feedback/feedback.ts'
import { getDomainCounts, getVerdictCounts } from '../../src/feedback/feedback-counts.ts'
import {
  deleteFeedbackBefore,
  getAddressStates,
  getStoredPieces,
  listEnrolledAccounts,
  putVerdicts,
} from '../../src/feedback/feedback-store.ts'
import { recordFeedback } from '../../src/feedback/record-feedback.ts'
import { DAY } from '../../src/platform/clock.ts'
import type { OperationError } from '../../src/platform/operation-error.ts'
import { fakeClock } from '../support/clock.ts'
import { tempDatabase } from '../support/database.ts'

async function setUp() {
  const clock = fakeClock()
  const database = await tempDatabase({ clock })
  const now = clock.now()
  const bounce = (address: string, occurredAt = now - DAY): FeedbackInput => ({
    address,
    kind: 'bounced',
    code: 550,
    enhancedCode: '5.1.1',
    text: 'unknown',
    occurredAt,
  })
  const delivery = (address: string, occurredAt = now - DAY): FeedbackInput => ({
    address,
    kind: 'delivered',
    occurredAt,
  })
  const record = (
    items: FeedbackInput[],
    accountId = 'acc_1',
    plan: { name: string; storedFeedback: number } | null = null,
  ) => recordFeedback({ database }, { accountId, plan, source: 'api', items })
  const domain = async (accountId: string | null = 'acc_1') =>
    (await getDomainCounts(database.db, accountId, ['example.com'])).get('example.com')
  const state = async (address: string) =>
    (await getAddressStates(database.db, 'acc_1', [address]))[0]
  const verdict = (address: string, deliverable: boolean, at = now - 2 * DAY) =>
    write(database, trx =>
      putVerdicts(trx, [
        {
          ...newAddressState(address, 'acc_1'),
          reason: 'accepted_email',
          operator: 'Google',
          confidence: 95,
          deliverable: Number(deliverable),
          verified_at: at,
        },
      ]),
    )
  const counts = async () =>
    (await getVerdictCounts(database, 'acc_1')).map(({ correct, wrong }) => [correct, wrong])
  return { database, now, bounce, delivery, record, domain, state, verdict, counts }
}

test('the same piece counts once, in one batch and in several', async () => {
  const { record, bounce, domain, database } = await setUp()
  const items = [bounce('ann@example.com'), bounce('ann@example.com'), bounce('bob@example.com')]
  expect(await record(items)).toEqual({ received: 3, recorded: 2, duplicates: 1, rejected: [] })
  expect(await record(items)).toEqual({ received: 3, recorded: 0, duplicates: 3, rejected: [] })
  expect(await domain()).toMatchObject({ alive: 0, dead: 2 })
  expect(await listEnrolledAccounts(database)).toEqual(['acc_1'])
})

test('an invalid piece is rejected, and the others are recorded', async () => {
  const { record, bounce } = await setUp()
  expect(await record([bounce('no address'), bounce('ann@example.com')])).toMatchObject({
    recorded: 1,
    rejected: [{ index: 0, error: expect.stringContaining('invalid') }],
  })
})

test('more pieces than one transaction takes are recorded', async () => {
  const { record, delivery, domain } = await setUp()
  const items = Array.from({ length: 1_200 }, (_, i) => delivery(`user${i}@example.com`))
  expect(await record(items)).toMatchObject({ recorded: 1_200, duplicates: 0 })
  expect(await domain()).toMatchObject({ alive: 1_200, dead: 0 })
})

test('the newest outcome of an address counts, in any order of arrival', async () => {
  const { record, bounce, delivery, domain, state, now } = await setUp()
  await record([bounce('ann@example.com', now - DAY)])
  await record([delivery('ann@example.com', now - 3 * DAY)])
  expect(await state('ann@example.com')).toMatchObject({ outcome: 'dead', code: 550 })
  expect(await domain()).toMatchObject({ alive: 0, dead: 1 })
  await record([delivery('ann@example.com', now)])
  expect(await state('ann@example.com')).toMatchObject({ outcome: 'alive', code: null })
  expect(await domain()).toMatchObject({ alive: 1, dead: 0 })
})

test('accounts are counted apart, and together where feedback is shared', async () => {
  const { record, bounce, domain } = await setUp()
  await record([bounce('ann@example.com')])
  await record([bounce('ann@example.com')], 'acc_2')
  expect(await domain('acc_2')).toMatchObject({ dead: 1 })
  expect(await domain(null)).toMatchObject({ dead: 2 })
})

test('a verdict is counted with its last outcome', async () => {
  const { record, bounce, delivery, verdict, counts, state, now } = await setUp()
  await verdict('ann@example.com', true)
  await record([delivery('ann@example.com', now - 1.5 * DAY)])
  expect(await counts()).toEqual([[1, 0]])
  await record([delivery('ann@example.com', now - 1.4 * DAY)])
  expect(await counts()).toEqual([[1, 0]])
  await record([bounce('ann@example.com')])
  expect(await counts()).toEqual([[0, 1]])
  expect(await state('ann@example.com')).toMatchObject({ contradicted: 1, counted: 'dead' })
})

test.each([
  ['older than the verdict', 3, 0],
  ['more than 30 days younger', 40, 31],
])('feedback that is %s is not compared with it', async (_, verifiedDaysAgo, days) => {
  const { record, bounce, verdict, counts, now } = await setUp()
  const verifiedAt = now - verifiedDaysAgo * DAY
  await verdict('ann@example.com', true, verifiedAt)
  const occurredAt = days === 0 ? verifiedAt - DAY : verifiedAt + days * DAY
  await record([bounce('ann@example.com', occurredAt)])
  expect(await counts()).toEqual([])
})

test('a full mailbox is stored, but is no outcome', async () => {
  const { record, state, domain, now } = await setUp()
  const full = { code: 552, enhancedCode: '5.2.2', text: 'Mailbox full', occurredAt: now }
  const done = await record([{ address: 'ann@example.com', kind: 'bounced', ...full }])
  expect(done.recorded).toBe(1)
  expect(await state('ann@example.com')).toBeUndefined()
  expect(await domain()).toBeUndefined()
})

describe('the limit of stored pieces', () => {
  const plan = { name: 'small', storedFeedback: 3 }
  const addresses = (count: number, prefix = 'user') =>
    Array.from({ length: count }, (_, index) => `${prefix}${index}@example.com`)

  async function limited() {
    const setup = await setUp()
    const { database, record, bounce } = setup
    const report = (items: readonly string[], accountId = 'acc_1') =>
      record(
        items.map(address => bounce(address)),
        accountId,
        plan,
      )
    const stored = async (accountId = 'acc_1') => {
      const rows = await database.db
        .selectFrom('feedback')
        .select('dedupe_key')
        .where('account_id', '=', accountId)
        .execute()
      expect(await getStoredPieces(database.db, accountId)).toBe(rows.length)
      return rows.length
    }
    return { ...setup, report, stored }
  }

  const exceeded = (facts: Partial<OperationError<'stored_feedback_exceeded'>['facts']>) =>
    expect.objectContaining({
      code: 'stored_feedback_exceeded',
      facts: expect.objectContaining({ plan: 'small', max: 3, ...facts }),
    })

  test('is exact, and a request beyond it records nothing', async () => {
    const { report, stored } = await limited()
    await expect(report(addresses(4))).rejects.toEqual(exceeded({ stored: 0, pieces: 4 }))
    expect(await stored()).toBe(0)
    expect(await report(addresses(3))).toMatchObject({ recorded: 3 })
    await expect(report(['other@example.com'])).rejects.toEqual(exceeded({ stored: 3, pieces: 1 }))
    expect(await stored()).toBe(3)
  })

  test('is of each account', async () => {
    const { report, stored } = await limited()
    await report(addresses(3))
    await report(addresses(3), 'acc_2')
    expect([await stored(), await stored('acc_2')]).toEqual([3, 3])
  })

  test('counts no piece twice, and refuses no repeated request', async () => {
    const { report, stored } = await limited()
    const repeated = [...addresses(2), ...addresses(2)]
    expect(await report(repeated)).toMatchObject({ recorded: 2, duplicates: 2 })
    expect(await report([...repeated, 'last@example.com'])).toMatchObject({ recorded: 1 })
    expect(await report(repeated)).toMatchObject({ recorded: 0, duplicates: 4 })
    await expect(report([...repeated, 'more@example.com'])).rejects.toEqual(exceeded({ pieces: 1 }))
    expect(await stored()).toBe(3)
  })

  test('does not count invalid pieces', async () => {
    const { report } = await limited()
    const broken = addresses(9).map(address => address.replace('@', ' '))
    expect(await report([...broken, ...addresses(3)])).toMatchObject({ recorded: 3 })
  })

  test('holds for a request of several transactions, which is refused as a whole', async () => {
    const { record, bounce, stored } = await limited()
    const items = addresses(1_000).map(address => bounce(address))
    const of = (storedFeedback: number) => ({ name: 'small', storedFeedback })
    await expect(record(items, 'acc_1', of(999))).rejects.toMatchObject({
      facts: { pieces: 1_000 },
    })
    expect(await stored()).toBe(0)
    expect(await record(items, 'acc_1', of(1_000))).toMatchObject({ recorded: 1_000 })
    expect(await stored()).toBe(1_000)
  })

  test('is exact for simultaneous requests', async () => {
    const { report, stored } = await limited()
    const all = await Promise.allSettled(addresses(8).map(address => report([address])))
    expect(all.filter(({ status }) => status === 'fulfilled')).toHaveLength(3)
    expect(await stored()).toBe(3)
  })

  test('has room again after pieces have expired', async () => {
    const { report, stored, database, now } = await limited()
    await report(addresses(3))
    await report(addresses(2), 'acc_2')
    expect(await write(database, trx => deleteFeedbackBefore(trx, now + 1, 100))).toBe(5)
    expect([await stored(), await stored('acc_2')]).toEqual([0, 0])
    expect(await report(addresses(3, 'new'))).toMatchObject({ recorded: 3 })
  })

  test('is not there for the owner of lists of the command line', async () => {
    const { record, bounce } = await limited()
    const items = addresses(9).map(address => bounce(address))
    expect(await record(items, '', null)).toMatchObject({ recorded: 9 })
  })
})
