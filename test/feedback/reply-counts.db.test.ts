import { expect, test } from 'vitest'
import { write, writeAsyncCommit } from '../../src/db/database.ts'
import { parseAddress } from '../../src/engine/address/address.ts'
import type { Evidence, Result } from '../../src/engine/verdict/verdict.ts'
import { FeedbackKnowledge } from '../../src/feedback/knowledge.ts'
import { recordFeedback } from '../../src/feedback/record-feedback.ts'
import { REPLY_AGE_MAX_MS } from '../../src/feedback/replies.ts'
import { deleteReplyCountsBefore, getReplySums } from '../../src/feedback/reply-counts.ts'
import { DAY, HOUR } from '../../src/platform/clock.ts'
import { fakeClock } from '../support/clock.ts'
import { tempDatabase } from '../support/database.ts'
import { resultOf } from '../support/result.ts'

const REPLY = { code: 250, enhanced: null, text: 'OK' }
const ANSWER = { kind: 'accepted', why: 'recipient', stage: 'rcpt', reply: REPLY } as const

async function setUp() {
  const clock = fakeClock()
  const database = await tempDatabase({ clock })
  const knowledge = new FeedbackKnowledge(database, { feedbackScope: 'account', calibration: true })
  const names = Array.from({ length: 6 }, (_, n) => `user${n}@good.test`)
  const record = (kind: 'bounced' | 'delivered', accountId = 'acc_1', code: number | null = 550) =>
    recordFeedback(
      { database },
      {
        accountId,
        plan: null,
        source: 'api',
        items: names.map(address => ({
          address,
          kind,
          code,
          occurredAt: clock.now(),
          enhancedCode: kind === 'bounced' ? '5.1.1' : null,
        })),
      },
    )
  const resultFor = (email: string): Result => {
    const result = resultOf('accepted_email', { email, checkedAt: clock.now() })
    const address = parseAddress(email) as Evidence['address']
    return { ...result, evidence: { ...result.evidence, address, answer: ANSWER } }
  }
  /** Enrolls an account, and stores the verdicts of the addresses. */
  const verify = async (accountId = 'acc_1') => {
    const other = { address: 'x@other.test', kind: 'delivered' as const, occurredAt: null }
    await recordFeedback({ database }, { accountId, plan: null, source: 'api', items: [other] })
    knowledge.refresh()
    await writeAsyncCommit(database, trx => knowledge.adjust(trx, accountId, names.map(resultFor)))
    await clock.advance(HOUR)
  }
  const sums = (since = 0) => getReplySums(database, since)
  return { clock, database, record, verify, sums }
}

const SUM = { operator: '', reply: 'accepted/recipient 250 ok' }

test('a reply is counted when feedback arrives, and moves to the newer outcome', async () => {
  const { clock, record, verify, sums } = await setUp()
  await verify()
  expect(await sums()).toEqual([])
  await record('delivered')
  expect(await sums()).toEqual([])
  await clock.advance(HOUR)
  await record('bounced')
  expect(await sums()).toEqual([{ ...SUM, confirmed: 0, contradicted: 6, accounts: 1 }])
  // Feedback without a new verdict counts once.
  await clock.advance(HOUR)
  await record('bounced')
  expect(await sums()).toMatchObject([{ contradicted: 6 }])
})

test('replies are summed over accounts', async () => {
  const { record, verify, sums } = await setUp()
  for (const accountId of ['acc_1', 'acc_2']) {
    await verify(accountId)
    await record('bounced', accountId)
  }
  expect(await sums()).toEqual([{ ...SUM, confirmed: 0, contradicted: 12, accounts: 2 }])
})

test('old counts are left out, and deleted', async () => {
  const { clock, database, record, verify, sums } = await setUp()
  await verify()
  await record('bounced')
  await clock.advance(REPLY_AGE_MAX_MS + 31 * DAY)
  const since = clock.now() - REPLY_AGE_MAX_MS
  expect(await sums(since)).toEqual([])
  expect(await sums()).toHaveLength(1)
  const deleted = await write(database, trx => deleteReplyCountsBefore(trx, since, 10))
  expect(deleted).toBe(1)
  expect(await sums()).toEqual([])
})
