import { describe, expect, test } from 'vitest'
import { newSecret } from '../../src/accounts/key.ts'
import { revokeKey, rotateKey, updateKey } from '../../src/accounts/key-store.ts'
import { deleteSessionsUntil } from '../../src/accounts/retention.ts'
import {
  createSession,
  endSession,
  endSessionsOfKey,
  findSession,
  listSessions,
  type NewSession,
  SESSION_IDLE_MS,
  SESSION_MAX_MS,
  SESSIONS_MAX,
  touchSession,
} from '../../src/accounts/session-store.ts'
import { write } from '../../src/db/database.ts'
import { HOUR, MINUTE } from '../../src/platform/clock.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { plansOf } from '../db/plan/query-plans.ts'
import { addAccount, addKey } from '../support/account-rows.ts'
import { fakeClock } from '../support/clock.ts'
import { onPostgres, tempDatabase } from '../support/database.ts'

async function services() {
  const clock = fakeClock()
  const database = await tempDatabase({ clock })
  await addAccount(database)
  await addKey(database)
  await addKey(database, { id: 'key_b', name: 'Other' })
  const signIn = (id: string, o: Partial<NewSession> = {}) =>
    write(database, trx =>
      createSession(trx, {
        id: `ses_${id}`,
        hash: `hash of ${id}`,
        keyId: 'key_a',
        accountId: 'acc_a',
        ip: '192.0.2.1',
        agent: 'Browser',
        now: clock.now(),
        ...o,
      }),
    )
  const find = (id: string) => findSession(database, `hash of ${id}`, clock.now())
  const listed = async () =>
    (await listSessions(database, 'acc_a', clock.now())).map(({ id }) => id)
  return { clock, database, signIn, find, listed }
}

const rotation = (now: number) => ({ secret: newSecret(systemRandom, 'live'), graceMs: HOUR, now })

describe('a session', () => {
  test('is found by the hash of its token, with its key and its account', async () => {
    const { signIn, find } = await services()
    const session = await signIn('1')
    expect(await find('1')).toEqual({
      session,
      key: expect.objectContaining({ id: 'key_a', scopes: ['*'] }),
      account: expect.objectContaining({ id: 'acc_a', operator: 0 }),
      person: null,
    })
    expect(await find('2')).toBeNull()
  })

  test('ends after a week, however often it is used', async () => {
    const { clock, database, signIn, find } = await services()
    await signIn('1')
    const end = clock.now() + SESSION_MAX_MS
    while (clock.now() + 6 * HOUR < end) {
      await clock.advance(6 * HOUR)
      await write(database, trx => touchSession(trx, 'ses_1', clock.now()))
    }
    await clock.advance(end - clock.now() - 1)
    expect(await find('1')).not.toBeNull()
    await clock.advance(1)
    expect(await find('1')).toBeNull()
  })

  test('ends after a night without use', async () => {
    const { clock, database, signIn, find, listed } = await services()
    await signIn('1')
    await clock.advance(MINUTE)
    await write(database, trx => touchSession(trx, 'ses_1', clock.now()))
    await clock.advance(SESSION_IDLE_MS - 1)
    expect([await find('1'), await listed()]).toEqual([expect.anything(), ['ses_1']])
    await clock.advance(1)
    expect([await find('1'), await listed()]).toEqual([null, []])
  })

  test('lasts no longer than the secret that opened it', async () => {
    const { clock, signIn, find } = await services()
    await signIn('1', { secretExpiresAt: clock.now() + HOUR })
    await clock.advance(HOUR - 1)
    expect(await find('1')).not.toBeNull()
    await clock.advance(1)
    expect(await find('1')).toBeNull()
  })

  test('ends early when the secret that opened it does, even if that was its own request', async () => {
    const { clock, database, signIn, find } = await services()
    await signIn('1', { secretExpiresAt: clock.now() + HOUR })
    await signIn('2')
    const secret = newSecret(systemRandom, 'live')
    const rotation = { secret, graceMs: 1_000, now: clock.now(), keepSession: 'ses_1' }
    await write(database, trx => rotateKey(trx, 'acc_a', 'key_a', rotation))
    await clock.advance(999)
    expect([(await find('1'))?.session.id, await find('2')]).toEqual(['ses_1', null])
    await clock.advance(1)
    expect(await find('1')).toBeNull()
  })

  test('ends when its key expires', async () => {
    const { clock, database, signIn, find, listed } = await services()
    await signIn('1')
    const expiresAt = clock.now() + HOUR
    await write(database, trx => updateKey(trx, 'acc_a', 'key_a', { expiresAt }))
    await clock.advance(HOUR - 1)
    expect([await find('1'), await listed()]).toEqual([expect.anything(), ['ses_1']])
    await clock.advance(1)
    expect([await find('1'), await listed()]).toEqual([null, []])
  })

  test('keeps the latest time at which it was seen', async () => {
    const { clock, database, signIn, find } = await services()
    const { lastSeenAt } = await signIn('1')
    await write(database, trx => touchSession(trx, 'ses_1', lastSeenAt + 5))
    await write(database, trx => touchSession(trx, 'ses_1', lastSeenAt + 3))
    await clock.advance(10)
    expect((await find('1'))?.session.lastSeenAt).toBe(lastSeenAt + 5)
  })

  test('is deleted after its end by retention, in steps', async () => {
    const { clock, database, signIn } = await services()
    await signIn('idle')
    await signIn('short', { secretExpiresAt: clock.now() + 1 })
    await clock.advance(SESSION_IDLE_MS - 1)
    await signIn('young')
    const deleteExpired = (max: number) =>
      write(database, trx => deleteSessionsUntil(trx, clock.now(), max))
    expect(await deleteExpired(9)).toBe(1)
    await clock.advance(1)
    expect([await deleteExpired(9), await deleteExpired(9)]).toEqual([1, 0])
    await clock.advance(SESSION_MAX_MS)
    await signIn('other')
    expect([await deleteExpired(1), await deleteExpired(1)]).toEqual([1, 0])
  })
})

describe('the sessions of an account', () => {
  test('are listed by when they were last seen, with the names of their keys and without their secrets', async () => {
    const { clock, database, signIn } = await services()
    await addAccount(database, 'acc_b')
    await addKey(database, { id: 'key_c', accountId: 'acc_b' })
    await signIn('1')
    await clock.advance(1)
    await signIn('2', { keyId: 'key_b', ip: '192.0.2.2', agent: 'Telephone' })
    await signIn('3', { keyId: 'key_c', accountId: 'acc_b' })
    const sessions = await listSessions(database, 'acc_a', clock.now())
    expect(sessions).toMatchObject([
      { id: 'ses_2', name: 'Other', ip: '192.0.2.2', agent: 'Telephone' },
      { id: 'ses_1', name: 'CI', ip: '192.0.2.1' },
    ])
    expect(JSON.stringify(sessions)).not.toMatch(/hash/)
  })

  test('can be ended one by one, only by their own account', async () => {
    const { database, signIn, find, listed } = await services()
    await signIn('1')
    await signIn('2')
    const end = (account: string) => write(database, trx => endSession(trx, account, 'ses_1'))
    expect([await end('acc_b'), await listed()]).toEqual([false, ['ses_1', 'ses_2']])
    expect([await end('acc_a'), await end('acc_a')]).toEqual([true, false])
    expect([await find('1'), await listed()]).toEqual([null, ['ses_2']])
  })

  test('of one key can be ended together, except one', async () => {
    const { database, signIn, listed } = await services()
    for (const id of ['1', '2', '3']) await signIn(id)
    await signIn('4', { keyId: 'key_b' })
    expect(await write(database, trx => endSessionsOfKey(trx, 'key_a', 'ses_2'))).toBe(2)
    expect(await listed()).toEqual(['ses_2', 'ses_4'])
    expect(await write(database, trx => endSessionsOfKey(trx, 'key_a', null))).toBe(1)
    expect(await listed()).toEqual(['ses_4'])
  })

  test('of one key are limited in number, and those seen longest ago end', async () => {
    const { clock, database, signIn, find } = await services()
    await signIn('other', { keyId: 'key_b' })
    for (let n = 0; n < SESSIONS_MAX; n++) {
      await signIn(`${n}`)
      await clock.advance(1)
    }
    await write(database, trx => touchSession(trx, 'ses_0', clock.now()))
    await signIn('new')
    const there = await Promise.all(['0', '1', '2', 'new', 'other'].map(find))
    expect(there.map(found => found !== null)).toEqual([true, false, true, true, true])
  })
})

describe('a key', () => {
  test('that is revoked ends its sessions and no others', async () => {
    const { clock, database, signIn, find, listed } = await services()
    await signIn('1')
    await signIn('2', { keyId: 'key_b' })
    await write(database, trx => revokeKey(trx, 'acc_a', 'key_a', clock.now()))
    expect([await find('1'), await listed()]).toEqual([null, ['ses_2']])
    expect(await database.db.selectFrom('session').select('id').execute()).toEqual([
      { id: 'ses_2' },
    ])
  })

  test('of another account is not revoked, and keeps its sessions', async () => {
    const { clock, database, signIn, listed } = await services()
    await signIn('1')
    await write(database, trx => revokeKey(trx, 'acc_b', 'key_a', clock.now()))
    await write(database, trx => rotateKey(trx, 'acc_b', 'key_a', rotation(clock.now())))
    expect(await listed()).toEqual(['ses_1'])
  })

  test('that is rotated ends its sessions, except the one that asks', async () => {
    const { clock, database, signIn, listed } = await services()
    for (const id of ['1', '2']) await signIn(id)
    await signIn('3', { keyId: 'key_b' })
    const keepSession = 'ses_2'
    await write(database, trx =>
      rotateKey(trx, 'acc_a', 'key_a', { ...rotation(clock.now()), keepSession }),
    )
    expect(await listed()).toEqual(['ses_2', 'ses_3'])
    await write(database, trx => rotateKey(trx, 'acc_a', 'key_a', rotation(clock.now())))
    expect(await listed()).toEqual(['ses_3'])
  })

  test('that may no longer sign in ends its sessions permanently', async () => {
    const { database, signIn, listed } = await services()
    await signIn('1')
    const change = (patch: Parameters<typeof updateKey>[3]) =>
      write(database, trx => updateKey(trx, 'acc_a', 'key_a', patch))
    await change({ name: 'Renamed' })
    await change({ scopes: ['dashboard', 'jobs:read'] })
    expect(await listed()).toEqual(['ses_1'])
    await change({ scopes: ['jobs:read'] })
    await change({ scopes: ['*'] })
    expect(await listed()).toEqual([])
  })

  test('whose change fails keeps its sessions', async () => {
    const { clock, database, signIn, listed } = await services()
    await signIn('1')
    const failing = write(database, async trx => {
      await revokeKey(trx, 'acc_a', 'key_a', clock.now())
      throw new Error('the disk is full')
    })
    await expect(failing).rejects.toThrow('the disk is full')
    expect(await listed()).toEqual(['ses_1'])
  })
})

test.skipIf(onPostgres)('sessions are looked up by index', async () => {
  const { database, signIn } = await services()
  await signIn('1')
  const plan = await plansOf(database, async db => {
    await findSession(db, 'hash of 1', 0)
    await listSessions(db, 'acc_a', 0)
    await write(db, trx => endSessionsOfKey(trx, 'key_a', null))
    await write(db, trx => deleteSessionsUntil(trx, 0, 9))
  })
  expect(plan.filter(line => /^SCAN (session|api_key|key_secret)/.test(line))).toEqual([])
})
