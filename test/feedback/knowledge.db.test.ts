import { expect, test } from 'vitest'
import { write } from '../../src/db/database.ts'
import { parseAddress } from '../../src/engine/address/address.ts'
import { toEvidence } from '../../src/engine/verdict/judge.ts'
import type { Reason } from '../../src/engine/verdict/reason.ts'
import type { FeedbackInput } from '../../src/feedback/feedback.ts'
import { getCatchAllCounts } from '../../src/feedback/feedback-counts.ts'
import { FeedbackKnowledge, type FeedbackSettings } from '../../src/feedback/knowledge.ts'
import { recordFeedback } from '../../src/feedback/record-feedback.ts'
import { DAY, MINUTE } from '../../src/platform/clock.ts'
import { fakeClock } from '../support/clock.ts'
import { tempDatabase } from '../support/database.ts'
import { resultOf } from '../support/result.ts'

/** With `tickMs`, each look at the clock takes this long, as if the database were slow. */
async function setUp({
  tickMs = 0,
  ...settings
}: Partial<FeedbackSettings> & { tickMs?: number } = {}) {
  const clock = fakeClock()
  let ticks = 0
  const monotonicNow = () => clock.monotonicNow() + tickMs * ticks++
  const database = await tempDatabase({ clock: { ...clock, monotonicNow } })
  const knowledge = new FeedbackKnowledge(database, {
    feedbackScope: 'account',
    calibration: true,
    ...settings,
  })
  const report = async (address: string, kind: FeedbackInput['kind'], accountId = 'acc_1') => {
    const code = kind === 'bounced' ? { code: 550, enhancedCode: '5.1.1' } : {}
    const items = [{ address, kind, ...code, occurredAt: clock.now() }]
    await recordFeedback({ database }, { accountId, plan: null, source: 'api', items })
    knowledge.refresh()
  }
  const verify = (reason: Reason, address: string, accountId = 'acc_1') => {
    const parsed = parseAddress(address)
    const provider = address.replace(/^.*@/, '')
    const evidence = toEvidence({ address: parsed })
    const result = resultOf(reason, { email: address, provider, evidence, checkedAt: clock.now() })
    return write(database, async trx => {
      const [adjusted] = await knowledge.adjust(trx, accountId, [result])
      return adjusted
    })
  }
  const states = () => database.db.selectFrom('feedback_address').selectAll().execute()
  return { database, clock, knowledge, report, verify, states }
}

test('an account without feedback changes and stores nothing', async () => {
  const { verify, states, report } = await setUp()
  await report('ann@example.com', 'bounced', 'acc_2')
  const result = await verify('catch_all', 'ann@example.com')
  expect(result?.verdict).toMatchObject({ reason: 'catch_all', confidence: 50 })
  expect((await states()).map(({ account_id }) => account_id)).toEqual(['acc_2'])
})

test('feedback of all accounts is used where the settings say so', async () => {
  const { verify, report } = await setUp({ feedbackScope: 'all' })
  await report('ann@example.com', 'bounced', 'acc_2')
  expect((await verify('catch_all', 'ann@example.com'))?.verdict.reason).toBe('rejected_email')
})

test('of the reports of two accounts the newest counts', async () => {
  const { verify, report, clock } = await setUp({ feedbackScope: 'all' })
  await report('ann@example.com', 'bounced', 'acc_2')
  await clock.advance(DAY)
  await report('ann@example.com', 'delivered', 'acc_1')
  expect((await verify('catch_all', 'ann@example.com'))?.verdict).toMatchObject({ risk: 'low' })
})

test('a domain with reports about catch-all verdicts is counted as a catch-all of its operator', async () => {
  const { verify, report, database } = await setUp()
  await report('first@plain.example', 'delivered')
  await verify('catch_all', 'ann@all.example')
  await verify('accepted_email', 'ann@plain.example')
  for (const domain of ['all', 'plain']) await report(`ann@${domain}.example`, 'bounced')
  await report('bob@all.example', 'delivered')
  const counts = [{ operator: '', alive: 1, dead: 1, domains: 1 }]
  expect(await getCatchAllCounts(database, 'acc_1')).toEqual(counts)
  expect(await getCatchAllCounts(database, null)).toEqual(counts)
  expect(await getCatchAllCounts(database, 'acc_2')).toEqual([])
})

test('a model that takes long to build is kept for a while after new feedback', async () => {
  const { verify, report, clock } = await setUp({ tickMs: 20 })
  const reported = async (name: string) => {
    await verify('accepted_email', `${name}@example.com`)
    await clock.advance(1)
    await report(`${name}@example.com`, 'bounced')
  }
  await report('first@example.com', 'delivered')
  await reported('ann')
  const confidence = async () =>
    (await verify('accepted_email', 'next@example.com'))?.verdict.confidence
  await clock.advance(MINUTE + 1)
  const before = await confidence()
  for (const name of ['bob', 'cy', 'dan']) await reported(name)
  expect(await confidence()).toBe(before)
  await clock.advance(30_000)
  expect(await confidence()).toBeLessThan(before ?? 0)
})

test('feedback of another process is used within a minute', async () => {
  const { verify, database, clock } = await setUp()
  await verify('catch_all', 'ann@example.com')
  const items = [{ address: 'ann@example.com', kind: 'delivered' as const, occurredAt: null }]
  await recordFeedback({ database }, { accountId: 'acc_1', plan: null, source: 'api', items })
  expect((await verify('catch_all', 'ann@example.com'))?.verdict.risk).toBe('medium')
  await clock.advance(MINUTE + 1)
  expect((await verify('catch_all', 'ann@example.com'))?.verdict.risk).toBe('low')
})
