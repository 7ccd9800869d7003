import { expect, test } from 'vitest'
import { endSessionsOfKey } from '../../src/accounts/key-store.ts'
import { deleteSessionsUntil } from '../../src/accounts/retention.ts'
import {
  createSession,
  findSession,
  listSessions,
  type NewSession,
  SESSION_IDLE_MS,
  SESSION_MAX_MS,
} from '../../src/accounts/session-store.ts'
import { write } from '../../src/db/database.ts'
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
  return { clock, database, signIn }
}

test('a session is deleted after its end by retention, in steps', async () => {
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
