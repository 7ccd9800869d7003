import { expect, test } from 'vitest'
import { createTestJob } from '../../support/job.ts'
import { scriptedMx } from '../../support/mx.ts'
import { knows, users } from '../../support/recipients.ts'

test('items in memory that a connection cannot reach are probed over another one meanwhile', async () => {
  const texts = users(60)
  const mx = scriptedMx(knows(...texts.filter((_, i) => i % 4 !== 3)))
  const sessionsAtConnect: number[] = []
  const fixture = await createTestJob({
    texts,
    flags: { recipientsPerSession: '100', sessionsPerOperator: '5', sessionsPerSecond: '1000' },
    dial: {
      ...mx,
      connect(to, signal) {
        sessionsAtConnect.push(mx.sessions.filter(({ closed }) => !closed).length)
        return mx.connect(to, signal)
      },
    },
  })
  expect(await fixture.work({})).toMatchObject({
    state: 'completed',
    done: 60,
    deliverable: 45,
    undeliverable: 15,
  })
  expect(sessionsAtConnect.slice(0, 2)).toEqual([0, 1])
})
