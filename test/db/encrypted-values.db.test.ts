import { expect, test } from 'vitest'
import { type Database, write } from '../../src/db/database.ts'
import { canDecrypt } from '../../src/db/service-secret.ts'
import { createSecretBox } from '../../src/platform/secret-box.ts'
import { deleteWebhook } from '../../src/webhooks/endpoint-store.ts'
import { tempDatabase } from '../support/database.ts'
import { countedRandom } from '../support/random.ts'
import { addWebhook } from '../support/webhook-rows.ts'

const [ours, before] = [
  createSecretBox('ours', countedRandom()),
  createSecretBox('before', countedRandom()),
]

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

test('stored values can be decrypted if the newest of each kind can', async () => {
  const database = await tempDatabase()
  expect(await canDecrypt(database, ours)).toBe(true)
  await addWebhook(database, { id: 'wh_a', secret: before.encrypt('a'), createdAt: 1 })
  expect(await canDecrypt(database, ours)).toBe(false)
  await addWebhook(database, { id: 'wh_b', secret: ours.encrypt('b'), createdAt: 2 })
  expect(await canDecrypt(database, ours)).toBe(true)
  await addReplay(database, before.encrypt('answer'), 1)
  expect(await canDecrypt(database, ours)).toBe(false)
  await addReplay(database, ours.encrypt('answer'), 2)
  expect(await canDecrypt(database, ours)).toBe(true)
})

test('secrets of deleted webhooks are not checked', async () => {
  const database = await tempDatabase()
  await addWebhook(database, { id: 'wh_a', secret: before.encrypt('a'), createdAt: 1 })
  await write(database, trx => deleteWebhook(trx, 'acc_a', 'wh_a', 4))
  expect(await canDecrypt(database, ours)).toBe(true)
})
