import { expect, test } from 'vitest'
import { type Database, write } from '../../../src/db/database.ts'
import { sandboxResult } from '../../../src/engine/sandbox.ts'
import { encodeResult } from '../../../src/engine/verdict/stored-result.ts'
import { toClass } from '../../../src/engine/verdict/verdict.ts'
import { addItems } from '../../../src/jobs/import/item-import.ts'
import { recordResults } from '../../../src/jobs/item-store.ts'
import { createJob } from '../../../src/jobs/job-store.ts'
import { countBreakdown } from '../../../src/jobs/results/breakdown.ts'
import { plansOf } from '../../db/plan/query-plans.ts'
import { onPostgres, queuedJob, tempDatabase } from '../../support/database.ts'
import { ofJob } from '../../support/job-rows.ts'
import { queueJob } from '../../support/queue-job.ts'

const NONE = { deliverable: 0, risky: 0, undeliverable: 0, unknown: 0 }

test('counts each row that has a result, including duplicates, the most frequent first', async () => {
  const database = await tempDatabase()
  await createJob(database, { id: 'job_a', sourceKey: 's', source: '{}' })
  const texts = ['valid@a.test', 'timeout@b.test', 'Timeout@b.test', 'timeout@B.test', 'no address']
  const items = texts.map((text, n) => ({ position: n + 1, text, dedupeKey: text.toLowerCase() }))
  await addItems(database, 'job_a', [
    ...items,
    { position: 6, text: 'later@a.test', dedupeKey: 'l' },
  ])
  await queueJob(database, 'job_a')
  await storeResults(database, [
    [1, 'valid@a.test', 'google.com'],
    [2, 'timeout@b.test', 'google.com'],
    [5, 'no address', null],
  ])
  const { groups, ...counts } = await countBreakdown(database, 'job_a')
  const sorted = groups.toSorted((a, b) => a.which.localeCompare(b.which))
  expect({ ...counts, groups: sorted }).toEqual({
    done: 5,
    classes: { deliverable: 1, risky: 0, undeliverable: 1, unknown: 3 },
    reasons: [
      { reason: 'timeout', class: 'unknown', count: 3 },
      { reason: 'accepted_email', class: 'deliverable', count: 1 },
      { reason: 'invalid_email', class: 'undeliverable', count: 1 },
    ],
    operators: [
      { operator: 'google.com', count: 4, classes: { ...NONE, deliverable: 1, unknown: 3 } },
      { operator: null, count: 1, classes: { ...NONE, undeliverable: 1 } },
    ],
    operatorsLeft: 0,
    groups: [
      { which: 'accepted_email', operator: 'google.com', count: 1, squares: 1 },
      { which: 'invalid_email', operator: null, count: 1, squares: 1 },
      { which: 'timeout', operator: 'google.com', count: 3, squares: 9 },
    ],
  })
})

test('a job without results has zero counts', async () => {
  const { database } = await queuedJob(['a@a.test'])
  const counts = { done: 0, classes: NONE, reasons: [], operators: [], operatorsLeft: 0 }
  const nothing = { ...counts, groups: [] }
  expect(await countBreakdown(database, 'job_a')).toEqual(nothing)
  expect(await countBreakdown(database, 'job_none')).toEqual(nothing)
})

test('counts an erased row by its class, with the default reason and no operator', async () => {
  const { database } = await queuedJob(['mailbox-full@a.test'])
  await storeResults(database, [[1, 'mailbox-full@a.test', 'google.com']])
  await database.db.updateTable('item').set({ result: 'null', text: '' }).execute()
  expect(await countBreakdown(database, 'job_a')).toMatchObject({
    classes: { ...NONE, risky: 1 },
    reasons: [{ reason: 'low_deliverability', class: 'risky', count: 1 }],
    operators: [{ operator: null, count: 1 }],
  })
})

test('reports twenty operators and the number of rows of the others', async () => {
  const { database, texts } = await createJobAt(
    231,
    n => `op${String(rankOf(n)).padStart(2, '0')}.test`,
  )
  const { operators, operatorsLeft, done } = await countBreakdown(database, 'job_a')
  // The nth operator has n rows.
  expect(operators.map(({ operator, count }) => `${operator} ${count}`)).toEqual(
    Array.from({ length: 20 }, (_, n) => `op${String(21 - n).padStart(2, '0')}.test ${21 - n}`),
  )
  expect([operatorsLeft, done]).toEqual([1, texts.length])
})

test('counts frequent operators completely and keeps the sums correct if there are many', async () => {
  const name = (n: number) => (n % 3 === 0 ? 'big.test' : n % 3 === 1 ? `small${n}.test` : null)
  const { database, texts } = await createJobAt(4_200, name)
  const { operators, operatorsLeft, done, classes } = await countBreakdown(database, 'job_a', 100)
  expect(operators.slice(0, 2).map(({ operator, count }) => [operator, count])).toEqual([
    [null, 1_400],
    ['big.test', 1_400],
  ])
  expect(done).toBe(texts.length)
  expect(classes).toEqual({ ...NONE, deliverable: done })
  expect(operators.reduce((sum, { count }) => sum + count, operatorsLeft)).toBe(done)
})

test.skipIf(onPostgres)('reads rows by position', async () => {
  const { database } = await queuedJob(['a@a.test'])
  const plan = await plansOf(database, db => countBreakdown(db, 'job_a'))
  expect(plan.join('\n')).toMatch(/SEARCH item .*\(job_id=\? AND position>\? AND position<\?\)/)
  expect(plan.filter(line => /^SCAN/.test(line))).toEqual([])
})

/** Returns the number at a position of the sequence 1, 2, 2, 3, 3, 3, … */
const rankOf = (position: number) => Math.ceil((Math.sqrt(8 * position + 1) - 1) / 2)

/** Creates a job with deliverable rows, numbered from 1, at the operators that `name` returns. */
async function createJobAt(rows: number, name: (n: number) => string | null) {
  const texts = Array.from({ length: rows }, (_, n) => `valid${n + 1}@a.test`)
  const { database } = await queuedJob(texts)
  await storeResults(
    database,
    texts.map((text, n): ResultRow => [n + 1, text, name(n + 1)]),
  )
  return { database, texts }
}

type ResultRow = readonly [position: number, text: string, operator: string | null]

/** Stores simulated results with these operators. */
async function storeResults(database: Database, rows: readonly ResultRow[]): Promise<void> {
  const recorded = rows.map(([position, text, operator]) => {
    const result = sandboxResult(database.clock, text)
    const named =
      operator === null ? null : { name: operator, title: operator, truth: 'tells' as const }
    const stored = encodeResult({ ...result, evidence: { ...result.evidence, operator: named } })
    return { position, result: stored, class: toClass(result.verdict) }
  })
  await write(database, trx => recordResults(trx, ofJob('job_a', recorded)))
}
