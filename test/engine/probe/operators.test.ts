import { expect, test } from 'vitest'
import { HOUR } from '../../../src/platform/clock.ts'
import { createTestProber, people } from '../../support/prober.ts'
import { knows } from '../../support/recipients.ts'

const LISTED = { greeting: '554 5.7.1 blocked using zen.spamhaus.org' }

test('operators are listed while their rate controller is in memory, the most recent first', async () => {
  const { prober, clock } = createTestProber(knows())
  prober.rateController('a.test')
  await clock.advance(HOUR)
  prober.rateController('b.test')
  expect([...prober.rateControllers()].map(([operator]) => operator)).toEqual(['b.test', 'a.test'])
  await clock.advance(HOUR + 1)
  expect([...prober.rateControllers()].map(([operator]) => operator)).toEqual(['b.test'])
})

test('addresses after a block are counted as skipped, the blocked one is not', async () => {
  const { prober, run, single } = createTestProber(LISTED)
  const refusal = () => prober.rateController('mx.test').status('mx.test').refusal
  await run(people(3))
  expect(refusal()).toMatchObject({ skipped: 0, answer: { why: 'blocklist' } })
  await run(people(30))
  await single('ann@a.test')
  expect(refusal()).toMatchObject({ skipped: 31 })
})

test('a successful session clears the block', async () => {
  const { prober, run } = createTestProber(knows('p00@a.test'))
  await run(people(3))
  const all = [...prober.rateControllers()].map(([operator, pace]) => pace.status(operator))
  expect(all).toMatchObject([{ operator: 'mx.test', sessions: 0, refusal: null, pause: null }])
})
