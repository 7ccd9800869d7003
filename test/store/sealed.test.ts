import { expect, test } from 'vitest'
import { createSeal } from '../../src/base/seal.ts'
import { type Database, write } from '../../src/store/database.ts'
import { deleteWebhook } from '../../src/store/event/webhooks.ts'
import { opensSealed } from '../../src/store/sealed.ts'
import { tempDatabase } from '../support/database.ts'
import { countedRandom } from '../support/random.ts'
import { addWebhook } from '../support/webhook-rows.ts'

const [ours, before] = [createSeal('ours', countedRandom()), createSeal('before', countedRandom())]

const addReplay = ({ db }: Database, answer: string, created_at: number) =>
  db
    .insertInto('replay')
    .values({
      key_id: 'key_a',
      idempotency_key: answer,
      fingerprint: '',
      status: 200,
      answer,
      created_at,
    })
    .execute()

test('a seal opens what was sealed before where it opens the newest of each kind', async () => {
  const database = await tempDatabase()
  expect(await opensSealed(database, ours)).toBe(true)
  await addWebhook(database, { id: 'wh_a', secret: before.seal('a'), createdAt: 1 })
  expect(await opensSealed(database, ours)).toBe(false)
  await addWebhook(database, { id: 'wh_b', secret: ours.seal('b'), createdAt: 2 })
  expect(await opensSealed(database, ours)).toBe(true)
  await addReplay(database, before.seal('answer'), 1)
  expect(await opensSealed(database, ours)).toBe(false)
  await addReplay(database, ours.seal('answer'), 2)
  expect(await opensSealed(database, ours)).toBe(true)
})

test('a webhook that was deleted says nothing of a seal', async () => {
  const database = await tempDatabase()
  await addWebhook(database, { id: 'wh_a', secret: before.seal('a'), createdAt: 1 })
  await write(database, trx => deleteWebhook(trx, 'acc_a', 'wh_a', 4))
  expect(await opensSealed(database, ours)).toBe(true)
})
