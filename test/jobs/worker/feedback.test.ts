import { expect, test } from 'vitest'
import { recordFeedback } from '../../../src/feedback/record-feedback.ts'
import { createTestJob } from '../../support/job.ts'

const TEXTS = ['ann@a.test', 'ben@a.test', 'cy@a.test', 'not an address']
const UNKNOWN = { code: 550, enhancedCode: '5.1.1', occurredAt: null }

test('a list uses the feedback of its account, and its verdicts are stored for later feedback', async () => {
  const job = await createTestJob({ texts: TEXTS, script: { answer: () => undefined } })
  const { database } = job
  const items = [
    { address: 'ann@a.test', kind: 'bounced' as const, ...UNKNOWN },
    { address: 'ben@a.test', kind: 'delivered' as const, occurredAt: null },
  ]
  await recordFeedback({ database }, { accountId: '', plan: null, source: 'import', items })
  await job.work()
  const results = await job.results()
  expect(results.map(result => [result?.verdict.reason, result?.verdict.risk])).toEqual([
    ['rejected_email', 'high'],
    ['catch_all', 'low'],
    ['catch_all', 'medium'],
    ['invalid_email', 'high'],
  ])
  expect(results[0]?.evidence.feedback).toMatchObject({ kind: 'bounced', code: 550 })
  const states = await database.db
    .selectFrom('feedback_address')
    .select(['address_key', 'reason', 'outcome'])
    .orderBy('address_key')
    .execute()
  expect(states).toEqual([
    { address_key: 'ann@a.test', reason: null, outcome: 'dead' },
    { address_key: 'ben@a.test', reason: null, outcome: 'alive' },
    { address_key: 'cy@a.test', reason: 'catch_all', outcome: null },
  ])
})

test('a list without feedback stores nothing about its verdicts', async () => {
  const job = await createTestJob({ texts: TEXTS })
  await job.work()
  expect(await job.database.db.selectFrom('feedback_address').selectAll().execute()).toEqual([])
})
