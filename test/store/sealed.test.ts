import { expect, test } from 'vitest'
import { write } from '../../src/store/database.ts'
import { deleteWebhook } from '../../src/store/event/webhooks.ts'
import { sealedSamples } from '../../src/store/sealed.ts'
import { addWebhook } from './event/house.ts'
import { tempDatabase } from './temp-database.ts'

test('looked at is the newest of what was sealed, and nothing of a webhook that was deleted', async () => {
  const database = await tempDatabase()
  expect(await sealedSamples(database)).toEqual([])
  await addWebhook(database, { id: 'wh_a', secret: 'old', createdAt: 1 })
  await addWebhook(database, { id: 'wh_b', secret: 'new', createdAt: 2 })
  await addWebhook(database, { id: 'wh_c', secret: 'deleted', createdAt: 3 })
  await write(database, trx => deleteWebhook(trx, 'acc_a', 'wh_c', 4))
  for (const [answer, created_at] of [
    ['first', 1],
    ['second', 2],
  ] as const) {
    const replay = { key_id: 'key_a', idempotency_key: answer, fingerprint: '', status: 200 }
    await database.db
      .insertInto('replay')
      .values({ ...replay, answer, created_at })
      .execute()
  }
  expect(await sealedSamples(database)).toEqual(['new', 'second'])
})
