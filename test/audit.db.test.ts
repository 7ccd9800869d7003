import { describe, expect, test } from 'vitest'
import {
  AUDIT_RETENTION_MS,
  addAuditEntry,
  COMMAND_LINE,
  deleteAuditBefore,
  getAuditPage,
  type Origin,
} from '../src/audit.ts'
import { type Database, write } from '../src/db/database.ts'
import { DAY } from '../src/platform/clock.ts'
import { plansOf } from './db/plan/query-plans.ts'
import { fakeClock } from './support/clock.ts'
import { onPostgres, tempDatabase } from './support/database.ts'
import { countedRandom } from './support/random.ts'

const REQUEST: Origin = {
  actor: 'key',
  keyId: 'key_a',
  person: null,
  sessionId: null,
  ip: '192.0.2.1',
}

async function createLog() {
  const clock = fakeClock()
  const services = { database: await tempDatabase({ clock }), clock, random: countedRandom() }
  const add = (
    action: Parameters<typeof addAuditEntry>[2]['action'],
    { accountId = 'acc_a' as string | null, origin = REQUEST, changed = ['b', 'a'] } = {},
  ) =>
    write(services.database, trx =>
      addAuditEntry(
        trx,
        { ...services, origin },
        { action, accountId, changed, target: { id: 'key_b', name: 'CI' } },
      ),
    )
  return { ...services, add }
}

const QUERY = { accountId: 'acc_a', before: null, max: 9 }

const actionsOf = async (database: Database, query: object) =>
  (await getAuditPage(database, { ...QUERY, ...query })).map(({ action }) => action)

test('an entry has its actor, its target and the names of the changed fields', async () => {
  const { database, clock, add } = await createLog()
  await add('key.updated')
  expect(await getAuditPage(database, QUERY)).toEqual([
    {
      id: expect.stringMatching(/^aud_\w{16}$/),
      account_id: 'acc_a',
      action: 'key.updated',
      actor: 'key',
      key_id: 'key_a',
      person_id: null,
      person_name: null,
      session_id: null,
      ip: '192.0.2.1',
      target_id: 'key_b',
      target_name: 'CI',
      changed: '["a","b"]',
      created_at: clock.now(),
    },
  ])
})

test('an entry is rolled back with the transaction that it belongs to', async () => {
  const { database, clock, random } = await createLog()
  const failing = write(database, async trx => {
    const services = { clock, random, origin: COMMAND_LINE }
    await addAuditEntry(trx, services, { action: 'account.created', accountId: 'acc_a' })
    throw new Error('rolled back')
  })
  await expect(failing).rejects.toThrow('rolled back')
  expect(await getAuditPage(database, QUERY)).toEqual([])
})

describe('a page', () => {
  test('is filtered by account, action and time', async () => {
    const { database, clock, add } = await createLog()
    const start = clock.now()
    await add('key.created')
    await clock.advance(1_000)
    await add('key.revoked')
    await add('key.rotated', { accountId: 'acc_b' })
    await clock.advance(1_000)
    await add('session.refused', { accountId: null })
    expect(await actionsOf(database, {})).toEqual(['key.revoked', 'key.created'])
    expect(await actionsOf(database, { accountId: null })).toHaveLength(4)
    expect(await actionsOf(database, { action: 'key.created' })).toEqual(['key.created'])
    expect(await actionsOf(database, { since: start + 1_000 })).toEqual(['key.revoked'])
    expect(await actionsOf(database, { until: start + 1_000 })).toEqual(['key.created'])
  })

  test('starts after the last row of the previous one, newest first', async () => {
    const { database, add } = await createLog()
    for (let n = 0; n < 5; n++) await add('key.created')
    const all = await getAuditPage(database, QUERY)
    expect(all.map(({ id }) => id)).toEqual(
      all
        .map(({ id }) => id)
        .toSorted()
        .reverse(),
    )
    const [, second] = all
    const before = { createdAt: second?.created_at ?? 0, id: second?.id ?? '' }
    expect(await getAuditPage(database, { ...QUERY, before })).toEqual(all.slice(2))
  })

  test.skipIf(onPostgres).each([
    ['acc_a', /INDEX audit_account \(account_id=\? AND/],
    [null, /INDEX audit_age \(created_at>\? AND/],
  ])('of %s reads an index, in order', async (accountId, index) => {
    const { database } = await createLog()
    const before = { createdAt: 9, id: 'aud_a' }
    const plan = await plansOf(database, db =>
      getAuditPage(db, { accountId, before, since: 1, action: 'key.created', max: 9 }),
    )
    expect(plan.join('\n')).toMatch(index)
    expect(plan.filter(line => /TEMP B-TREE|^SCAN/.test(line))).toEqual([])
  })
})

test('entries are deleted after a year', async () => {
  const { database, clock, add } = await createLog()
  await add('key.created')
  await clock.advance(AUDIT_RETENTION_MS)
  await add('key.revoked')
  const before = () => clock.now() - AUDIT_RETENTION_MS
  expect(await write(database, trx => deleteAuditBefore(trx, before(), 9))).toBe(0)
  await clock.advance(DAY)
  expect(await write(database, trx => deleteAuditBefore(trx, before(), 9))).toBe(1)
  expect(await actionsOf(database, {})).toEqual(['key.revoked'])
})
