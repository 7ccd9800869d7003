import { expect, test } from 'vitest'
import { countBefore } from '../../src/maintenance/purge-data.ts'
import { expire, retentions } from '../../src/maintenance/retention-job.ts'
import { DAY } from '../../src/platform/clock.ts'
import { verificationRow } from '../support/account-rows.ts'
import { fakeClock } from '../support/clock.ts'
import { tempDatabase } from '../support/database.ts'

test('old rows are deleted in steps, and young ones are kept', async () => {
  const clock = fakeClock()
  const database = await tempDatabase({ clock })
  const now = clock.now()
  const [history] = retentions(now, now, 90 * DAY)
  const rows = Array.from({ length: 2_500 }, (_, n) =>
    verificationRow({
      id: `ver_${n}`,
      created_at: n < 2_499 ? now - 90 * DAY - 1 : now - 90 * DAY,
    }),
  )
  for (let from = 0; from < rows.length; from += 500) {
    await database.db
      .insertInto('verification')
      .values(rows.slice(from, from + 500))
      .execute()
  }
  const gone = expire(database, history as NonNullable<typeof history>)
  for (let steps = 0; steps < 5; steps++) await clock.runAll()
  expect(await gone).toBe(2_499)
  expect(await countBefore(database, 'verification', Number.MAX_SAFE_INTEGER)).toBe(1)
})

test('sandbox rows and stored responses are kept for a day, deliveries of a disabled webhook for seven', () => {
  const before = new Map(
    retentions(100 * DAY, 100 * DAY, 90 * DAY).map(one => [one.name, one.before / DAY]),
  )
  expect(Object.fromEntries(before)).toEqual({
    history: 10,
    sandboxHistory: 99,
    replays: 99,
    deliveries: 100,
    stranded: 93,
    webhooks: 100,
    feedback: 10,
    feedbackAddresses: 100 - 730,
    feedbackReplies: 100 - 180,
    events: 100 - 1 / 24,
    secrets: 100,
    credits: 60,
    answers: 100,
    witnesses: 99,
    sessions: 100,
    audit: 100 - 365,
  })
})

test('slow steps are followed by smaller ones', async () => {
  const clock = fakeClock()
  const database = await tempDatabase({ clock })
  const steps: number[] = []
  const expiry = async (_trx: unknown, _before: number, max: number) => {
    steps.push(max)
    // Takes 1 ms per row.
    await clock.advance(max)
    return steps.length === 8 ? 0 : max
  }
  const gone = expire(database, { expiry, before: 0 })
  for (let pauses = 0; pauses < 8; pauses++) await clock.runAll()
  await gone
  expect(steps).toEqual([125, 62, 31, 25, 25, 25, 25, 25])
})
