import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  countAccounts,
  findAccount,
  listAccounts,
  updateAccount,
} from '../../src/accounts/account-store.ts'
import { newSecret } from '../../src/accounts/key.ts'
import {
  findKey,
  findKeyByHash,
  getCachedKey,
  listKeys,
  revokeKey,
  rotateKey,
  touchKeys,
  updateKey,
} from '../../src/accounts/key-store.ts'
import { type Database, write } from '../../src/db/database.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { addAccount, addKey } from '../support/account-rows.ts'
import { fakeClock } from '../support/clock.ts'
import { tempDatabase, tempFolder } from '../support/database.ts'

async function services() {
  const clock = fakeClock()
  const database = await tempDatabase({ clock })
  await addAccount(database)
  return { clock, database, ...(await addKey(database)) }
}

const revoke = (database: Database, accountId = 'acc_a', id = 'key_a') =>
  write(database, trx => revokeKey(trx, accountId, id, database.clock.now()))

async function rotate(database: Database, graceMs: number, id = 'key_a') {
  const { text: _, ...secret } = newSecret(systemRandom, 'live')
  const now = database.clock.now()
  const key = await write(database, trx => rotateKey(trx, 'acc_a', id, { secret, graceMs, now }))
  return { key, secret }
}

describe('accounts', () => {
  test('are found, counted, listed by age, and can change their plan', async () => {
    const clock = fakeClock()
    const database = await tempDatabase({ clock })
    expect(await countAccounts(database)).toBe(0)
    const first = await addAccount(database, 'acc_z')
    await clock.advance(1)
    const second = await addAccount(database, 'acc_a', 'starter')
    expect(await countAccounts(database)).toBe(2)
    expect(await listAccounts(database)).toEqual([first, second])
    expect(await findAccount(database, 'acc_a')).toEqual(second)
    expect(await findAccount(database, 'acc_b')).toBeNull()
    expect(
      await write(database, trx => updateAccount(trx, 'acc_z', { plan: 'enterprise' })),
    ).toEqual({ ...first, plan: 'enterprise' })
    expect(await findAccount(database, 'acc_z')).toMatchObject({ plan: 'enterprise' })
    expect(
      await write(database, trx => updateAccount(trx, 'acc_b', { plan: 'enterprise' })),
    ).toBeNull()
  })

  test('have an alert address from when it is set until it is removed', async () => {
    const database = await tempDatabase()
    await addAccount(database, 'acc_a')
    await addAccount(database, 'acc_b')
    const set = (id: string, email: string | null) =>
      write(database, trx => updateAccount(trx, id, { email }))
    expect(await findAccount(database, 'acc_a')).toMatchObject({ email: null })
    expect(await set('acc_a', 'ann@owner.example')).toMatchObject({ email: 'ann@owner.example' })
    expect((await listAccounts(database)).map(({ email }) => email)).toEqual([
      'ann@owner.example',
      null,
    ])
    expect(await set('acc_a', null)).toMatchObject({ email: null })
    expect(await findAccount(database, 'acc_a')).toMatchObject({ email: null })
    expect(await set('acc_x', 'ann@owner.example')).toBeNull()
  })
})

describe('a key', () => {
  test('is found by the hash of its secret, with its account', async () => {
    const { database, key, secret } = await services()
    const found = await findKeyByHash(database, secret.hash)
    expect(found).toEqual({
      key,
      account: await findAccount(database, 'acc_a'),
      secretExpiresAt: null,
    })
    expect(key).toMatchObject({ prefix: secret.prefix, hint: secret.hint, scopes: ['*'] })
    expect(await findKeyByHash(database, 'f'.repeat(64))).toBeNull()
  })

  test('does not store its secret', async () => {
    const { database, secret } = await services()
    const rows = [
      await database.db.selectFrom('api_key').selectAll().execute(),
      await database.db.selectFrom('key_secret').selectAll().execute(),
    ]
    expect(JSON.stringify(rows)).toContain(secret.hash)
    expect(JSON.stringify(rows)).not.toContain(secret.text.slice(8, 40))
  })

  test('stops working once it is revoked, is no longer listed, and cannot be revoked again', async () => {
    const { database, secret } = await services()
    expect(await revoke(database)).toBe(true)
    expect(await findKeyByHash(database, secret.hash)).toBeNull()
    expect(await listKeys(database, 'acc_a')).toEqual([])
    expect(await findKey(database.db, 'acc_a', 'key_a')).toBeNull()
    expect(await revoke(database)).toBe(false)
    expect((await rotate(database, 0)).key).toBeNull()
  })

  test('of one account cannot be seen, changed, rotated or revoked by another account', async () => {
    const { database, key, secret } = await services()
    await addAccount(database, 'acc_b')
    expect(await listKeys(database, 'acc_b')).toEqual([])
    expect(await findKey(database.db, 'acc_b', 'key_a')).toBeNull()
    const other = { secret: { hash: 'h', prefix: 'p', hint: 'h' }, graceMs: 0, now: 0 }
    await write(database, async trx => {
      expect(await updateKey(trx, 'acc_b', 'key_a', { name: 'mine' })).toBeNull()
      expect(await rotateKey(trx, 'acc_b', 'key_a', other)).toBeNull()
      expect(await revokeKey(trx, 'acc_b', 'key_a', 0)).toBe(false)
    })
    expect(await findKeyByHash(database, secret.hash)).toMatchObject({ key })
  })

  test('changes only the fields of a patch', async () => {
    const { database, key } = await services()
    const patch = { name: 'Shop', allowedIps: ['192.0.2.0/24'], rateLimitPerMinute: 30 }
    const changed = await write(database, trx => updateKey(trx, 'acc_a', 'key_a', patch))
    expect(changed).toEqual({ ...key, ...patch })
    expect(await findKey(database.db, 'acc_a', 'key_a')).toEqual(changed)
  })

  test('records the latest use, never an earlier one', async () => {
    const { database } = await services()
    await touchKeys(database, new Map([['key_a', 20]]))
    await touchKeys(database, new Map([['key_a', 10]]))
    expect(await findKey(database.db, 'acc_a', 'key_a')).toMatchObject({ lastUsedAt: 20 })
  })
})

describe('a key that is rotated', () => {
  test('has two secrets during its grace period, and shows the newest', async () => {
    const { clock, database, secret: old } = await services()
    const { key, secret } = await rotate(database, 5_000)
    expect(key).toMatchObject({ id: 'key_a', hint: secret.hint })
    expect(await listKeys(database, 'acc_a')).toEqual([key])
    const end = clock.now() + 5_000
    expect(await findKeyByHash(database, old.hash)).toMatchObject({ key, secretExpiresAt: end })
    expect(await findKeyByHash(database, secret.hash)).toMatchObject({ secretExpiresAt: null })
  })

  test('has one secret without a grace period', async () => {
    const { database, secret: old } = await services()
    await rotate(database, 0)
    expect(await findKeyByHash(database, old.hash)).toBeNull()
  })

  test('keeps the end of earlier grace periods when it is rotated again', async () => {
    const { clock, database, secret: first } = await services()
    const { secret: second } = await rotate(database, 1_000)
    const firstEnd = clock.now() + 1_000
    await clock.advance(500)
    await rotate(database, 9_000)
    expect(await findKeyByHash(database, first.hash)).toMatchObject({ secretExpiresAt: firstEnd })
    expect(await findKeyByHash(database, second.hash)).toMatchObject({
      secretExpiresAt: clock.now() + 9_000,
    })
    await clock.advance(500)
    await rotate(database, 100)
    expect(await findKeyByHash(database, first.hash)).toBeNull()
    expect(await findKeyByHash(database, second.hash)).toMatchObject({
      secretExpiresAt: clock.now() + 100,
    })
  })
})

describe('the key cache', () => {
  test('does not query the database again within a second', async () => {
    const { clock, database, secret } = await services()
    const first = await getCachedKey(database, secret.hash)
    await clock.advance(999)
    expect(await getCachedKey(database, secret.hash)).toBe(first)
    await clock.advance(1)
    expect(await getCachedKey(database, secret.hash)).not.toBe(first)
    expect(await getCachedKey(database, secret.hash)).toEqual(first)
  })

  test.each<[string, (database: Database) => Promise<unknown>]>([
    ['revoked', database => revoke(database)],
    ['rotated without a grace period', database => rotate(database, 0)],
  ])('drops a key at once that this process %s', async (_, change) => {
    const { database, secret } = await services()
    expect(await getCachedKey(database, secret.hash)).not.toBeNull()
    await change(database)
    expect(await getCachedKey(database, secret.hash)).toBeNull()
  })

  test('drops a key that was being read while it was revoked', async () => {
    const { database, secret } = await services()
    const reading = getCachedKey(database, secret.hash)
    await revoke(database)
    await reading
    expect(await getCachedKey(database, secret.hash)).toBeNull()
  })

  test('sees a revocation by another process within a second', async () => {
    const clock = fakeClock()
    const file = join(tempFolder(), 'ev.sqlite')
    const [ours, theirs] = [
      await tempDatabase({ clock, file }),
      await tempDatabase({ clock, file }),
    ]
    await addAccount(ours)
    const { secret } = await addKey(ours)
    expect(await getCachedKey(ours, secret.hash)).not.toBeNull()
    // Written as by another process: the change is not counted in this one.
    await theirs.db.updateTable('api_key').set({ revoked_at: 1 }).execute()
    await clock.advance(1_000)
    expect(await getCachedKey(ours, secret.hash)).toBeNull()
  })

  test('finds a new key at once although it was looked up before', async () => {
    const { database } = await services()
    const { text: _, ...secret } = newSecret(systemRandom, 'live')
    expect(await getCachedKey(database, secret.hash)).toBeNull()
    await addKey(database, { id: 'key_b', secret })
    expect(await getCachedKey(database, secret.hash)).toMatchObject({ key: { id: 'key_b' } })
  })
})
