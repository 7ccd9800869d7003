import { expect, test } from 'vitest'
import { getLearnedReplySums, openLearnedReplies } from '../../src/cluster/learned-replies.ts'
import type { Database } from '../../src/db/database.ts'
import { REPLIES_MAX, REPLY_AGE_MAX_MS } from '../../src/engine/learned-replies/learned-replies.ts'
import type { LearnedReply } from '../../src/index.ts'
import { DAY, MINUTE } from '../../src/platform/clock.ts'
import { silentLog } from '../../src/platform/log.ts'
import { fakeClock } from '../support/clock.ts'
import { tempDatabase } from '../support/database.ts'

const open = (database: Database, network: string | null = null) =>
  openLearnedReplies({ database, log: silentLog, network })

const learned = (domain: string, more: Partial<LearnedReply> = {}): LearnedReply => ({
  domain,
  reply: '550 5.7.1 <> ei onnistu',
  operator: 'op.test',
  software: 'postfix',
  subnet: '192.0.2.0/24',
  isRefuted: false,
  at: 5 * DAY,
  ...more,
})

async function temp() {
  const clock = fakeClock()
  const database = await tempDatabase({ clock })
  return { clock, database, now: clock.now() }
}

test('a process reads what another one has learned, the oldest first', async () => {
  const { database, now } = await temp()
  const store = open(database)
  const all = [learned('b.test', { at: now, software: null }), learned('a.test', { at: now - DAY })]
  for (const one of all) store.put(one)
  await store.close()
  expect(await open(database).load()).toEqual(all.toReversed())
})

test('each network has its own replies', async () => {
  const { database, now } = await temp()
  const store = open(database, '{"smtpPort":2525}')
  store.put(learned('a.test', { at: now }))
  await store.close()
  expect(await open(database).load()).toEqual([])
  expect(await open(database, '{"smtpPort":2525}').load()).toHaveLength(1)
})

test('a refuted text stays refuted, also if another process does not know it', async () => {
  const { database, now } = await temp()
  const [one, other] = [open(database), open(database)]
  one.put(learned('a.test', { at: now, isRefuted: true }))
  await one.close()
  other.put(learned('a.test', { at: now + 1 }))
  await other.close()
  expect(await one.load()).toEqual([learned('a.test', { at: now + 1, isRefuted: true })])
})

test('old replies are deleted, and the oldest beyond the limit', async () => {
  const { clock, database, now } = await temp()
  const store = open(database)
  store.put(learned('old.test', { at: now - REPLY_AGE_MAX_MS - 1 }))
  for (let n = 0; n < REPLIES_MAX + 5; n++) {
    store.put(learned(`d${n}.test`, { at: now + n }))
    if (n % 4_000 === 0) await store.close()
  }
  await store.close()
  await clock.advance(10 * MINUTE)
  store.put(learned('last.test', { at: now + REPLIES_MAX + 5 }))
  await store.close()
  const rows = await database.db.selectFrom('learned_reply').select('domain').execute()
  expect(rows.length).toBeLessThanOrEqual(REPLIES_MAX + 1)
  const kept = new Set(rows.map(({ domain }) => domain))
  expect([kept.has('old.test'), kept.has('d0.test'), kept.has('last.test')]).toEqual([
    ...[false, false, true],
  ])
})

test('the most frequent replies are listed with their domains and operators', async () => {
  const { database, now } = await temp()
  const store = open(database)
  for (const n of [0, 1, 2]) store.put(learned(`d${n}.test`, { at: now, isRefuted: n === 2 }))
  store.put(learned('e.test', { at: now, operator: 'other.test', reply: '550 muu' }))
  store.put(learned('f.test', { at: now, operator: 'third.test', reply: '550 muu' }))
  await store.close()
  const rare = { reply: '550 muu', domains: 2, operators: 2, operator: null, refuted: 0 }
  const common = { reply: '550 5.7.1 <> ei onnistu', domains: 2, operators: 1, refuted: 1 }
  expect(await getLearnedReplySums(database, null, 5)).toEqual([
    { ...common, operator: 'op.test' },
    rare,
  ])
})
