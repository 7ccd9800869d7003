import { expect, test } from 'vitest'
import { type Database, write } from '../../src/db/database.ts'
import type { CachedAnswer } from '../../src/engine/result-cache.ts'
import {
  deleteCachedAnswers,
  getCachedAnswers,
  putCachedAnswers,
} from '../../src/jobs/cached-answers.ts'
import { DAY, HOUR } from '../../src/platform/clock.ts'
import { type FakeClock, fakeClock } from '../support/clock.ts'
import { tempDatabase } from '../support/database.ts'

async function memory(): Promise<{ database: Database; clock: FakeClock }> {
  const clock = fakeClock()
  return { database: await tempDatabase({ clock }), clock }
}

const ANSWERS = {
  accepted: { kind: 'accepted', why: 'accepted' },
  rejected: { kind: 'rejected', why: 'no-mailbox' },
  deferred: { kind: 'deferred', why: 'greylist' },
  silent: { kind: 'no-response', why: 'timeout' },
  refused: { kind: 'blocked', why: 'blocklist' },
} as const

/** What a server said, as far as it matters for keeping it. */
const remembered = (kind: keyof typeof ANSWERS, at: number, host = 'mx.a.test'): CachedAnswer =>
  ({ probed: { answer: ANSWERS[kind], catchAll: false, host }, at }) as unknown as CachedAnswer

const keep = (database: Database, entries: Record<string, CachedAnswer>) =>
  write(database, trx => putCachedAnswers(trx, new Map(Object.entries(entries))))

test('an answer comes back as it was kept; an unknown address has none', async () => {
  const { database, clock } = await memory()
  const answer = remembered('accepted', clock.now())
  await keep(database, { 'a@x.test': answer })
  const found = await getCachedAnswers(database, ['a@x.test', 'b@x.test'])
  expect([...found]).toEqual([['a@x.test', answer]])
  expect(await getCachedAnswers(database, [])).toEqual(new Map())
})

test.each([
  ['accepted', 7 * DAY],
  ['rejected', 6 * HOUR],
] as const)('what was %s is kept for its time and not longer', async (kind, keepMs) => {
  const { database, clock } = await memory()
  await keep(database, { 'a@x.test': remembered(kind, clock.now()) })
  await clock.advance(keepMs - 1)
  expect((await getCachedAnswers(database, ['a@x.test'])).size).toBe(1)
  await clock.advance(1)
  expect((await getCachedAnswers(database, ['a@x.test'])).size).toBe(0)
})

test.each(['deferred', 'silent', 'refused'] as const)(
  'what was %s says nothing of the address: it is not kept, and what was known stays',
  async kind => {
    const { database, clock } = await memory()
    const known = remembered('accepted', clock.now())
    await keep(database, { 'a@x.test': known })
    const after = clock.now() + 1
    await keep(database, {
      'a@x.test': remembered(kind, after),
      'b@x.test': remembered(kind, after),
    })
    expect([...(await getCachedAnswers(database, ['a@x.test', 'b@x.test']))]).toEqual([
      ['a@x.test', known],
    ])
  },
)

test('a later definite answer takes the place of an earlier one, with its own time', async () => {
  const { database, clock } = await memory()
  await keep(database, { 'a@x.test': remembered('accepted', clock.now()) })
  const later = remembered('rejected', clock.now() + HOUR)
  await keep(database, { 'a@x.test': later })
  expect((await getCachedAnswers(database, ['a@x.test'])).get('a@x.test')).toEqual(later)
  await clock.advance(7 * HOUR)
  expect((await getCachedAnswers(database, ['a@x.test'])).size).toBe(0)
})

test('thousands are kept and recalled at once', async () => {
  const { database, clock } = await memory()
  const keys = Array.from({ length: 2_100 }, (_, n) => `user${n}@x.test`)
  const one = remembered('accepted', clock.now())
  await keep(database, Object.fromEntries(keys.map(key => [key, one])))
  expect((await getCachedAnswers(database, keys)).size).toBe(keys.length)
})

test('forgetting removes what is no longer kept, and only that', async () => {
  const { database, clock } = await memory()
  await keep(database, {
    'a@x.test': remembered('rejected', clock.now()),
    'b@x.test': remembered('accepted', clock.now()),
  })
  await clock.advance(DAY)
  await write(database, trx => deleteCachedAnswers(trx, clock.now()))
  const left = await database.db.selectFrom('answer').select('address_key').execute()
  expect(left).toEqual([{ address_key: 'b@x.test' }])
})
