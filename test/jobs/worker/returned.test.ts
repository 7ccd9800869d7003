import { expect, test } from 'vitest'
import { createTestJob } from '../../support/job.ts'
import { knows, users } from '../../support/recipients.ts'
import { remoteDial } from '../../support/remote.ts'

test('rows that a connection cannot reach are probed over another one while it is open', async () => {
  const texts = users(60)
  const opensAtConnect: number[] = []
  const fixture = await createTestJob({
    texts,
    script: knows(...texts.filter((_, i) => i % 4 !== 3)),
    flags: { recipientsPerSession: '100', sessionsPerOperator: '5', sessionsPerSecond: '1000' },
    wrapDial: (mx, clock) => {
      const remote = remoteDial(mx, clock, 200)
      return {
        ...remote,
        connect(to, signal) {
          opensAtConnect.push(fixture.mx.sessions.filter(({ closed }) => !closed).length)
          return remote.connect(to, signal)
        },
      }
    },
  })
  expect(await fixture.work({})).toMatchObject({
    state: 'completed',
    done: 60,
    deliverable: 45,
    undeliverable: 15,
  })
  expect(opensAtConnect.slice(0, 2)).toEqual([0, 1])
})
