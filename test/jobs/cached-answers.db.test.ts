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

async function createFixture(): Promise<{ database: Database; clock: FakeClock }> {
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

/** Returns an answer with the fields that matter for caching. */
const answerOf = (kind: keyof typeof ANSWERS, at: number, host = 'mx.a.test'): CachedAnswer =>
  ({ probed: { answer: ANSWERS[kind], catchAll: false, host }, at }) as unknown as CachedAnswer

const put = (database: Database, entries: Record<string, CachedAnswer>) =>
  write(database, trx => putCachedAnswers(trx, new Map(Object.entries(entries))))

test('returns an answer as it was cached, and nothing for an unknown address', async () => {
  const { database, clock } = await createFixture()
  const answer = answerOf('accepted', clock.now())
  await put(database, { 'a@x.test': answer })
  const found = await getCachedAnswers(database, ['a@x.test', 'b@x.test'])
  expect([...found]).toEqual([['a@x.test', answer]])
  expect(await getCachedAnswers(database, [])).toEqual(new Map())
})

test.each([
  ['accepted', 7 * DAY],
  ['rejected', 6 * HOUR],
] as const)('an answer of kind %s is cached until it expires', async (kind, keepMs) => {
  const { database, clock } = await createFixture()
  await put(database, { 'a@x.test': answerOf(kind, clock.now()) })
  await clock.advance(keepMs - 1)
  expect((await getCachedAnswers(database, ['a@x.test'])).size).toBe(1)
  await clock.advance(1)
  expect((await getCachedAnswers(database, ['a@x.test'])).size).toBe(0)
})

test.each(['deferred', 'silent', 'refused'] as const)(
  'a %s outcome says nothing about the address: it is not cached, and the cached answer stays',
  async kind => {
    const { database, clock } = await createFixture()
    const known = answerOf('accepted', clock.now())
    await put(database, { 'a@x.test': known })
    const after = clock.now() + 1
    await put(database, {
      'a@x.test': answerOf(kind, after),
      'b@x.test': answerOf(kind, after),
    })
    expect([...(await getCachedAnswers(database, ['a@x.test', 'b@x.test']))]).toEqual([
      ['a@x.test', known],
    ])
  },
)

test('a later definite answer replaces an earlier one, with its own expiry', async () => {
  const { database, clock } = await createFixture()
  await put(database, { 'a@x.test': answerOf('accepted', clock.now()) })
  const later = answerOf('rejected', clock.now() + HOUR)
  await put(database, { 'a@x.test': later })
  expect((await getCachedAnswers(database, ['a@x.test'])).get('a@x.test')).toEqual(later)
  await clock.advance(7 * HOUR)
  expect((await getCachedAnswers(database, ['a@x.test'])).size).toBe(0)
})

test('caches and returns thousands of answers at once', async () => {
  const { database, clock } = await createFixture()
  const keys = Array.from({ length: 2_100 }, (_, n) => `user${n}@x.test`)
  const one = answerOf('accepted', clock.now())
  await put(database, Object.fromEntries(keys.map(key => [key, one])))
  expect((await getCachedAnswers(database, keys)).size).toBe(keys.length)
})

test('deletes only expired answers', async () => {
  const { database, clock } = await createFixture()
  await put(database, {
    'a@x.test': answerOf('rejected', clock.now()),
    'b@x.test': answerOf('accepted', clock.now()),
  })
  await clock.advance(DAY)
  await write(database, trx => deleteCachedAnswers(trx, clock.now()))
  const left = await database.db.selectFrom('answer').select('address_key').execute()
  expect(left).toEqual([{ address_key: 'b@x.test' }])
})
