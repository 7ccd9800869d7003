import { expect, test } from 'vitest'
import { cluster } from '../../support/cluster-jobs.ts'
import { isRandomRecipient, toRecipients } from '../../support/engine.ts'

const OK = '250 2.1.5 Ok'
const UNKNOWN = '550 5.1.1 No such user'
const REFUSAL = '554 5.7.1 Service unavailable; Client host blocked using bl.example'
const accepting = toRecipients(to => (isRandomRecipient(to) ? UNKNOWN : OK))

const addresses = (count: number, domains: number) =>
  Array.from({ length: count }, (_, n) => `u${n}@d${n % domains}.test`)

/** Returns the egress that probed each row. */
const listProbingEgresses = async (home: Awaited<ReturnType<typeof cluster>>, id: string) =>
  (await home.results(id)).map(result => result?.evidence.egress ?? null)

test('workers with different egresses divide the operators, and each probes from its own egress', async () => {
  const home = await cluster({ script: accepting, domains: 20 })
  const a = await home.join({ egress: 'a' })
  const b = await home.join({ egress: 'b' })
  // Wait until each worker knows the other.
  await home.known(2)
  const texts = addresses(100, 20)
  await home.submit('job_1', texts)
  a.worker.take('job_1')
  expect(await home.finished('job_1')).toMatchObject({ done: 100, deliverable: 100 })
  const egresses = await listProbingEgresses(home, 'job_1')
  expect(new Set(egresses)).toEqual(new Set(['a', 'b']))
  // If an operator has few items, one egress probes them all.
  const operators = texts.map((text, n) => `${text.split('@')[1]} ${egresses[n]}`)
  expect(new Set(operators).size).toBe(20)
  expect(new Set(b.dialled).size + new Set(a.dialled).size).toBe(20)
  expect(home.loggedErrors).toEqual([])
})

test('an operator that blocks one egress is probed from the other', async () => {
  const home = await cluster({ script: accepting, domains: 1 })
  const refused = await home.join({ egress: 'a' }, { greeting: REFUSAL })
  const other = await home.join({ egress: 'b' })
  await home.known(2)
  const texts = addresses(60, 1)
  await home.submit('job_1', texts)
  refused.worker.take('job_1')
  expect(await home.finished('job_1')).toMatchObject({ done: 60, deliverable: 60 })
  expect(new Set(await listProbingEgresses(home, 'job_1'))).toEqual(new Set(['b']))
  expect(refused.dialled.length).toBeLessThanOrEqual(2)
  expect(home.asked(texts).toSorted()).toEqual(texts.toSorted())
  expect(other.dialled.length).toBeGreaterThan(0)
})

test('a greylisted address is retried from the same egress', async () => {
  const seen = new Set<string>()
  const greylists = toRecipients(to => {
    if (isRandomRecipient(to)) return UNKNOWN
    if (seen.has(to)) return OK
    seen.add(to)
    return '450 4.2.0 Greylisted, try again later'
  })
  const home = await cluster({ script: greylists, domains: 8 })
  const flags = { greylistDelayMs: '2' }
  const a = await home.join({ ...flags, egress: 'a' })
  const b = await home.join({ ...flags, egress: 'b' })
  await home.known(2)
  const texts = addresses(40, 8)
  await home.submit('job_1', texts)
  a.worker.take('job_1')
  expect(await home.finished('job_1')).toMatchObject({ done: 40, deliverable: 40 })
  expect(home.asked(texts)).toHaveLength(80)
  // No host was dialed by both.
  expect(a.dialled.filter(host => b.dialled.includes(host))).toEqual([])
})
