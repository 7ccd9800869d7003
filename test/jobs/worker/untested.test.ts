import { describe, expect, test } from 'vitest'
import { createTestJob } from '../../support/job.ts'
import type { MxSession } from '../../support/mx.ts'
import { isRandomRecipient, recipientsOf, toRecipients, users } from '../../support/recipients.ts'

const SLOW_DOWN = '450 4.7.1 Throttled, slow down'
const NO = '550 5.1.1 No such user'

/** Accepts five recipients in each connection and throttles the next. */
const fiveEach = () => {
  const counts = new Map<MxSession, number>()
  return toRecipients((to, session) => {
    const count = (counts.get(session) ?? 0) + 1
    counts.set(session, count)
    if (count > 5) return SLOW_DOWN
    return isRandomRecipient(to) ? NO : undefined
  })
}

const reasonCounts = (reasons: readonly (string | null)[]) =>
  Object.fromEntries([...Map.groupBy(reasons, String)].map(([key, { length }]) => [key, length]))

// Also without the cache, because acceptances are stored with their items.
describe.each([{ cache: 'on' }, { cache: 'off' }])('a list that is throttled, %o', flags => {
  test('tests every accepted address for catch-all, and probes none twice', async () => {
    const job = await createTestJob({ texts: users(6), script: fiveEach(), flags })
    await job.work()
    expect(reasonCounts(await job.reasons())).toEqual({ accepted_email: 6 })
    expect(job.asked()).toEqual([...users(6), 'user5@a.test'])
    expect(recipientsOf(job.mx.lines()).filter(isRandomRecipient)).toHaveLength(1)
    const items = await job.database.db.selectFrom('item').select('accepted').execute()
    expect(items.every(({ accepted }) => accepted === null)).toBe(true)
  })

  test('keeps acceptances when each retry is throttled', async () => {
    let isFirst = true
    const script = toRecipients(to => {
      if (to === 'user5@a.test') isFirst = false
      return isFirst ? undefined : SLOW_DOWN
    })
    const job = await createTestJob({ texts: users(6), script, flags })
    await job.work()
    const [last, ...known] = (await job.reasons()).toReversed()
    expect([last, ...known]).toEqual(['unavailable_smtp', ...Array(5).fill('low_deliverability')])
    expect(job.asked().filter(to => to !== 'user5@a.test')).toEqual(users(5))
  })

  test('keeps acceptances over a restart', async () => {
    const stop = new AbortController()
    const script = fiveEach()
    const job = await createTestJob({
      texts: users(6),
      flags,
      script: (line, session) => {
        const reply = script(line, session)
        if (reply === SLOW_DOWN) job.clock.after(5_000, () => stop.abort())
        return reply
      },
    })
    await job.work({ stopping: stop.signal })
    expect(reasonCounts(await job.reasons())).toEqual({ null: 6 })
    await job.work()
    expect(reasonCounts(await job.reasons())).toEqual({ accepted_email: 6 })
    expect(job.asked()).toEqual([...users(6), 'user5@a.test'])
  })

  test('ends with the verdicts that it has if the job does not wait', async () => {
    const job = await createTestJob({ texts: users(6), script: fiveEach(), flags })
    await job.work({ wait: false })
    expect(reasonCounts(await job.reasons())).toEqual({
      low_deliverability: 5,
      unavailable_smtp: 1,
    })
  })
})
