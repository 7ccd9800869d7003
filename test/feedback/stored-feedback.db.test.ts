import { expect, test } from 'vitest'
import { write } from '../../src/db/database.ts'
import { deleteFeedbackBefore } from '../../src/feedback/feedback-store.ts'
import { recordFeedback } from '../../src/feedback/record-feedback.ts'
import { tempDatabase } from '../support/database.ts'

const record = (
  database: Awaited<ReturnType<typeof tempDatabase>>,
  plan: { name: string; storedFeedback: number } | null,
  prefix = 'user',
) => {
  const items = Array.from({ length: 3 }, (_, n) => ({
    address: `${prefix}${n}@example.com`,
    kind: 'delivered' as const,
    occurredAt: database.clock.now(),
  }))
  const accountId = plan === null ? '' : 'acc_1'
  return recordFeedback({ database }, { accountId, plan, source: 'api', items })
}

const PLAN = { name: 'small', storedFeedback: 3 }

test('an account has room again after pieces have expired', async () => {
  const database = await tempDatabase()
  expect(await record(database, PLAN)).toMatchObject({ recorded: 3 })
  await expect(record(database, PLAN, 'other')).rejects.toMatchObject({
    code: 'stored_feedback_exceeded',
  })
  const until = database.clock.now() + 1
  expect(await write(database, trx => deleteFeedbackBefore(trx, until, 100))).toBe(3)
  expect(await record(database, PLAN, 'other')).toMatchObject({ recorded: 3 })
})

test('the owner of lists of the command line has no limit', async () => {
  const database = await tempDatabase()
  for (const prefix of ['a', 'b']) {
    expect(await record(database, null, prefix)).toMatchObject({ recorded: 3 })
  }
})
