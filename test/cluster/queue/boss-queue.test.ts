import { setTimeout as wait } from 'node:timers/promises'
import { describe, test } from 'vitest'
import { queueConformance } from '../../queue/conformance.ts'
import { emptyPostgres, entriesIn, openQueue, until } from './bench.ts'

queueConformance('on PostgreSQL', async () => {
  const queue = await openQueue(await emptyPostgres())
  return {
    queue,
    now: () => Date.now(),
    pass: async ms => void (await wait(ms)),
    until: event => event,
    dispose: async () => {},
  }
})

describe('the queue on PostgreSQL', () => {
  test('what is done with leaves nothing behind', async () => {
    const url = await emptyPostgres()
    const queue = await openQueue(url)
    queue.work('k', async () => 'done', { concurrency: 5 })
    await queue.putAll(
      'k',
      Array.from({ length: 50 }, (_, n) => `key${n}`),
    )
    await until(async () => (await entriesIn(url)).length === 0)
  })
})
