import { expect, test } from 'vitest'
import { type Database, write } from '../../../src/db/database.ts'
import { sandboxResult } from '../../../src/engine/sandbox.ts'
import { encodeResult } from '../../../src/engine/verdict/stored-result.ts'
import { toClass } from '../../../src/engine/verdict/verdict.ts'
import { recordResults } from '../../../src/jobs/item-store.ts'
import { countBreakdown } from '../../../src/jobs/results/breakdown.ts'
import { plansOf } from '../../db/plan/query-plans.ts'
import { onPostgres, queuedJob } from '../../support/database.ts'
import { ofJob } from '../../support/job-rows.ts'

const NONE = { deliverable: 0, risky: 0, undeliverable: 0, unknown: 0 }

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
