import { expect, test } from 'vitest'
import { MINUTE } from '../../../src/platform/clock.ts'
import { createTestJob } from '../../support/job.ts'
import type { MxSession } from '../../support/mx.ts'
import { isRandomRecipient, recipientOf, users } from '../../support/recipients.ts'

const ZONE = {
  'one.test': { MX: [[10, 'mx.first.test']] },
  'two.test': {
    MX: [
      [10, 'mx.first.test'],
      [20, 'mx.second.test'],
    ],
  },
  'mx.first.test': { A: ['192.0.2.11'] },
  'mx.second.test': { A: ['192.0.2.12'] },
} as const
const SECOND = '192.0.2.12'

const rejectRandom = (line: string) =>
  isRandomRecipient(recipientOf(line)) ? '550 5.1.1 No such user' : undefined

test('probes the second MX host for rows that wait while their operator is paused', async () => {
  let isBusy = true
  const dials: { ip: string; at: number }[] = []
  const texts = [...users(50, 'one.test'), ...users(3, 'two.test')]
  const job = await createTestJob({
    texts,
    zone: ZONE,
    flags: { recipientsPerSession: '10', sessionsPerOperator: '1' },
    script: {
      connect: ({ ip }) => void dials.push({ ip, at: job.clock.monotonicNow() }),
      greeting: ({ to }: MxSession) =>
        isBusy && to.ip !== SECOND ? '421 4.7.0 Too many connections' : undefined,
      answer: rejectRandom,
    },
  })
  const startedAt = job.clock.monotonicNow()
  job.clock.after(MINUTE, () => {
    isBusy = false
  })
  await job.work()
  expect(new Set(await job.reasons())).toEqual(new Set(['accepted_email']))
  // The three rows share one connection, long before the pause of five minutes is over.
  const atSecond = dials.filter(({ ip }) => ip === SECOND)
  expect(atSecond).toHaveLength(1)
  expect((atSecond[0]?.at ?? 0) - startedAt).toBeLessThan(MINUTE)
  expect(job.asked().filter(to => to.endsWith('@two.test'))).toEqual(users(3, 'two.test'))
  // No other MX host was probed during the pause.
  const early = dials.filter(({ ip, at }) => ip !== SECOND && at - startedAt < 5 * MINUTE)
  expect(early).toHaveLength(1)
})
