import { describe, expect, test } from 'vitest'
import { type Database, write } from '../../src/db/database.ts'
import { HOUR } from '../../src/platform/clock.ts'
import {
  countWebhooks,
  deleteWebhook,
  findWebhook,
  listWebhooks,
  rotateSecret,
  subscribers,
  updateWebhook,
} from '../../src/webhooks/endpoint-store.ts'
import type { WebhookTable } from '../../src/webhooks/tables.ts'
import { tempDatabase } from '../support/database.ts'
import { addWebhook } from '../support/webhook-rows.ts'

describe('webhooks', () => {
  test('are visible to, changed and deleted by their own account only', async () => {
    const database = await tempDatabase()
    await addWebhook(database, { id: 'wh_a' })
    const now = database.clock.now() + 1
    expect(await findWebhook(database, 'acc_b', 'wh_a')).toBeNull()
    expect(await listWebhooks(database, 'acc_b')).toEqual([])
    expect(await countWebhooks(database.db, 'acc_b')).toBe(0)
    const changed = write(database, trx =>
      updateWebhook(trx, 'acc_b', 'wh_a', { active: false, now }),
    )
    expect(await changed).toBeNull()
    expect(await write(database, trx => deleteWebhook(trx, 'acc_b', 'wh_a', now))).toBe(false)
    expect(await findWebhook(database, 'acc_a', 'wh_a')).toMatchObject({ active: true })
    expect(await countWebhooks(database.db, 'acc_a')).toBe(1)
  })

  test('change in the given fields and no others', async () => {
    const database = await tempDatabase()
    await addWebhook(database, { id: 'wh_a' })
    const before = await findWebhook(database, 'acc_a', 'wh_a')
    const now = database.clock.now() + 1
    const after = await write(database, trx =>
      updateWebhook(trx, 'acc_a', 'wh_a', { url: 'https://b.example/', description: null, now }),
    )
    expect(after).toEqual({
      ...before,
      url: 'https://b.example/',
      description: null,
      updatedAt: now,
    })
  })

  test('that are enabled start over: without a reason for being disabled, and not failing', async () => {
    const database = await tempDatabase()
    await addWebhook(database, { id: 'wh_a', active: false })
    await setState(database, { disabled_reason: 'gone', failing_since: 7 })
    const now = database.clock.now()
    const still = await write(database, trx =>
      updateWebhook(trx, 'acc_a', 'wh_a', { description: 'x', now }),
    )
    expect(still).toMatchObject({ active: false, disabledReason: 'gone', failingSince: 7 })
    const on = await write(database, trx =>
      updateWebhook(trx, 'acc_a', 'wh_a', { active: true, now }),
    )
    expect(on).toMatchObject({ active: true, disabledReason: null, failingSince: null })
  })

  test('that are enabled already keep failing when they are enabled again', async () => {
    const database = await tempDatabase()
    await addWebhook(database, { id: 'wh_a' })
    await setState(database, { failing_since: 7 })
    const now = database.clock.now()
    const on = write(database, trx => updateWebhook(trx, 'acc_a', 'wh_a', { active: true, now }))
    expect(await on).toMatchObject({ active: true, failingSince: 7 })
  })

  test.each([
    ['to another URL', 'https://b.example/', null],
    ['to their current URL', 'https://app.example/hook', 7],
  ])('that fail and are changed %s: %s, failing since %s', async (_, url, failingSince) => {
    const database = await tempDatabase()
    await addWebhook(database, { id: 'wh_a' })
    await setState(database, { failing_since: 7 })
    const changed = write(database, trx => updateWebhook(trx, 'acc_a', 'wh_a', { url, now: 1 }))
    expect(await changed).toMatchObject({ url, failingSince })
  })

  test('that were deleted are not listed, and cannot be changed or deleted again', async () => {
    const database = await tempDatabase()
    await addWebhook(database, { id: 'wh_a' })
    await addWebhook(database, { id: 'wh_b' })
    const now = database.clock.now() + 1
    expect(await write(database, trx => deleteWebhook(trx, 'acc_a', 'wh_a', now))).toBe(true)
    expect(await findWebhook(database, 'acc_a', 'wh_a')).toBeNull()
    expect((await listWebhooks(database, 'acc_a')).map(({ id }) => id)).toEqual(['wh_b'])
    expect(await countWebhooks(database.db, 'acc_a')).toBe(1)
    await write(database, async trx => {
      expect(await subscribers(trx, { accountId: 'acc_a', kind: 'batch.completed' })).toEqual([
        'wh_b',
      ])
      expect(await updateWebhook(trx, 'acc_a', 'wh_a', { active: true, now })).toBeNull()
      expect(await rotateSecret(trx, 'acc_a', 'wh_a', { ...NEWER, graceMs: 0, now })).toBeNull()
      expect(await deleteWebhook(trx, 'acc_a', 'wh_a', now)).toBe(false)
    })
    const rows = database.db.selectFrom('webhook').select(['id', 'deleted_at']).orderBy('id')
    expect(await rows.execute()).toEqual([
      { id: 'wh_a', deleted_at: now },
      { id: 'wh_b', deleted_at: null },
    ])
  })
})

describe('a secret that is rotated', () => {
  test('keeps the previous one for its grace period', async () => {
    const database = await tempDatabase()
    const before = await addWebhook(database, { id: 'wh_a', secret: 'first' })
    const now = database.clock.now() + 5
    const rotated = write(database, trx =>
      rotateSecret(trx, 'acc_a', 'wh_a', { ...NEWER, graceMs: HOUR, now }),
    )
    expect(await rotated).toEqual({
      ...before,
      ...NEWER,
      updatedAt: now,
      previousSecret: { secret: 'first', until: now + HOUR },
    })
    expect(await findWebhook(database, 'acc_a', 'wh_a')).toEqual(await rotated)
  })

  test('keeps none without a grace period, and drops the previous one', async () => {
    const database = await tempDatabase()
    await addWebhook(database, { id: 'wh_a', secret: 'first' })
    const rotate = (secret: string, graceMs: number) =>
      write(database, trx =>
        rotateSecret(trx, 'acc_a', 'wh_a', { secret, secretHint: secret, graceMs, now: 100 }),
      )
    await rotate('second', HOUR)
    expect(await rotate('third', HOUR)).toMatchObject({
      secret: 'third',
      previousSecret: { secret: 'second', until: 100 + HOUR },
    })
    expect(await rotate('fourth', 0)).toMatchObject({ secret: 'fourth', previousSecret: null })
    const row = await database.db.selectFrom('webhook').selectAll().executeTakeFirst()
    expect(row).toMatchObject({ previous_secret: null, previous_until: null })
  })

  test('belongs to its own account only', async () => {
    const database = await tempDatabase()
    await addWebhook(database, { id: 'wh_a', secret: 'first' })
    const foreign = write(database, trx =>
      rotateSecret(trx, 'acc_b', 'wh_a', { ...NEWER, graceMs: 0, now: 1 }),
    )
    expect(await foreign).toBeNull()
    expect(await findWebhook(database, 'acc_a', 'wh_a')).toMatchObject({ secret: 'first' })
  })
})

const NEWER = { secret: 'second', secretHint: 'cond' }

const setState = ({ db }: Database, facts: Partial<WebhookTable>) =>
  db.updateTable('webhook').set(facts).execute()
