import { describe, expect, test } from 'vitest'
import {
  readCredit,
  reserveCredits,
  settleCredits,
} from '../../../src/accounts/credits/credit-store.ts'
import type { LedgerBatch } from '../../../src/accounts/credits/ledger-entries.ts'
import type { UsageLedger } from '../../../src/accounts/credits/usage-ledger.ts'
import { type Database, write } from '../../../src/db/database.ts'
import { fromFailure } from '../../../src/engine/verdict/build-result.ts'
import { startJob } from '../../../src/jobs/job-state.ts'
import { DAY } from '../../../src/platform/clock.ts'
import { knows } from '../../support/engine.ts'
import { createTestWorker } from '../../support/worker.ts'

/** Records the entries and settles them as if each result cost a credit. */
function fakeLedger() {
  const entered: LedgerBatch[] = []
  const ledger = {
    async record(trx, ...batches) {
      entered.push(...batches)
      for (const { accountId, released, period } of batches) {
        await settleCredits(trx, { accountId, released, period: period ?? 0, used: 1 })
      }
    },
  } satisfies Pick<UsageLedger, 'record'> as unknown as UsageLedger
  return { entered, ledger }
}

/** Subscribes the account to all events of jobs. */
const subscribe = ({ db }: Database) =>
  db
    .insertInto('webhook')
    .values({
      id: 'wh_1',
      account_id: 'acc_a',
      url: 'https://hook.test/',
      active: 1,
      events: JSON.stringify(['batch.completed', 'batch.failed', 'verification.completed']),
      description: null,
      secret: '',
      secret_hint: '',
      created_at: 0,
      updated_at: 0,
    })
    .execute()

const eventsOf = async ({ db }: Database) =>
  (await db.selectFrom('event').selectAll().execute()).map(({ kind, body }) => ({
    kind,
    data: JSON.parse(body).data,
  }))

describe('a job of an account', () => {
  test('is entered in the usage ledger, and its unused reservation is released', async () => {
    const { ledger, entered } = fakeLedger()
    const { worker, submit, finished, database } = await createTestWorker({
      script: knows('ann'),
      ledger,
    })
    const credits = { accountId: 'acc_a', period: DAY }
    await write(database, trx => reserveCredits(trx, { ...credits, amount: 5, limit: 10 }))
    const texts = ['ann@a.test', 'gone@a.test', 'no address', 'ann@a.test']
    await submit('job_1', texts, {}, { amount: 5, period: DAY })
    worker.take('job_1')
    expect(await finished('job_1')).toMatchObject([{ state: 'completed', held: 0, duplicates: 1 }])
    const emails = entered.flatMap(({ entries }) => entries.map(({ result }) => result.email))
    expect(emails.toSorted()).toEqual(['ann@a.test', 'gone@a.test', 'no address'])
    expect(entered.reduce((sum, { released }) => sum + released, 0)).toBe(2)
    for (const one of entered) {
      expect(one).toMatchObject({
        accountId: 'acc_a',
        keyId: 'key_a',
        source: 'batch',
        jobId: 'job_1',
        sandbox: false,
        period: DAY,
      })
    }
    const { held, used } = await readCredit(database, 'acc_a', DAY)
    expect([held, used]).toEqual([0, entered.length])
  })

  test('emits its completion event once, in the transaction that completes it', async () => {
    const { worker, submit, finished, database } = await createTestWorker({ script: knows('ann') })
    await subscribe(database)
    await submit('job_1', ['ann@a.test', 'gone@a.test', 'no address'])
    await submit('job_2', ['x'])
    for (const id of ['job_1', 'job_2']) worker.take(id)
    await finished('job_1', 'job_2')
    const events = await eventsOf(database)
    expect(events.map(({ kind, data }) => `${kind} ${data.job_id}`).toSorted()).toEqual([
      'batch.completed job_1',
      'batch.completed job_2',
    ])
    expect(events.find(({ data }) => data.job_id === 'job_1')?.data).toMatchObject({
      total: 3,
      valid: 1,
      invalid: 2,
      download_url: 'https://ev.test/v1/jobs/job_1/download',
    })
  })

  test('of a single address is entered under its own ID and emits its result', async () => {
    const { ledger, entered } = fakeLedger()
    const { worker, submit, finished, database } = await createTestWorker({
      script: knows('ann'),
      ledger,
    })
    await subscribe(database)
    await submit('ver_1', ['ann@a.test'], { type: 'single' })
    worker.take('ver_1')
    await finished('ver_1')
    expect(entered).toMatchObject([
      {
        source: 'single',
        jobId: null,
        entries: [{ id: 'ver_1', result: { email: 'ann@a.test' } }],
      },
    ])
    expect(await eventsOf(database)).toMatchObject([
      {
        kind: 'verification.completed',
        data: { verification_id: 'ver_1', email: 'ann@a.test', reason: 'accepted_email' },
      },
    ])
  })

  test('that the ledger rejects fails with an event; the others continue', async () => {
    const { ledger } = fakeLedger()
    const rejecting = {
      async record(trx, ...batches) {
        if (batches.some(({ jobId }) => jobId === 'job_1')) throw new Error('no such account')
        await ledger.record(trx, ...batches)
      },
    } satisfies Pick<UsageLedger, 'record'> as unknown as UsageLedger
    const services = await createTestWorker({ script: knows('ann'), ledger: rejecting })
    const { worker, submit, finished, database, reasons, failures, loggedErrors } = services
    await subscribe(database)
    await submit('job_1', ['x', 'ann@a.test'])
    await submit('job_2', ['y', 'ann@a.test'])
    for (const id of ['job_1', 'job_2']) worker.take(id)
    expect(await finished('job_1', 'job_2')).toMatchObject([
      { state: 'failed', error: 'server_error', done: 0 },
      { state: 'completed', done: 2 },
    ])
    expect(await reasons('job_2')).toEqual(['invalid_email', 'accepted_email'])
    expect(await eventsOf(database)).toMatchObject([
      { kind: 'batch.failed', data: { job_id: 'job_1' } },
      { kind: 'batch.completed', data: { job_id: 'job_2' } },
    ])
    expect(failures.map(([id]) => id)).toEqual(['job_1'])
    expect(loggedErrors).toEqual(['job failed with an internal error'])
  })
})

describe('an item with an internal failure', () => {
  /** Fails for every item that is probed together with `poison@`. */
  function failOnPoison({
    engine,
    clock,
  }: Pick<Awaited<ReturnType<typeof createTestWorker>>, 'engine' | 'clock'>) {
    const probed: string[][] = []
    const probe = engine.probe.bind(engine)
    engine.probe = async (operator, tasks, sink, options) => {
      probed.push(tasks.map(({ text }) => text))
      if (!tasks.some(({ text }) => text.startsWith('poison@'))) {
        return probe(operator, tasks, sink, options)
      }
      const error = new Error('poison')
      for (const task of tasks) {
        const result = fromFailure(clock, task, error)
        sink.probed(task, { result, asked: true, egress: 'default' })
      }
    }
    return probed
  }

  test('fails after three tries; other items get their results, and the job completes', async () => {
    const services = await createTestWorker({ script: knows('ann', 'bob') })
    const { worker, submit, finished, reasons } = services
    const probed = failOnPoison(services)
    await submit('job_1', ['ann@a.test', 'poison@a.test', 'bob@a.test'])
    await submit('job_2', ['ann@b.test'])
    for (const id of ['job_1', 'job_2']) worker.take(id)
    expect(await finished('job_1', 'job_2')).toMatchObject([
      { state: 'completed', done: 3, failed: 1, deliverable: 2, unknown: 1 },
      { state: 'completed', done: 1, failed: 0 },
    ])
    expect(await reasons('job_1')).toEqual([
      ...['accepted_email', 'unexpected_error', 'accepted_email'],
    ])
    const tries = probed.filter(texts => texts.includes('poison@a.test'))
    expect(tries.map(({ length }) => length)).toEqual([3, 1, 1])
  })

  test('during routing has the failure as its result', async () => {
    const { worker, submit, finished, engine, reasons } = await createTestWorker({
      script: knows('ann'),
    })
    const routeOne = engine.routeOne.bind(engine)
    engine.routeOne = async (text, options) => {
      if (text.startsWith('poison@')) throw new Error('poison')
      return routeOne(text, options)
    }
    await submit('job_1', ['poison@a.test', 'ann@a.test'])
    worker.take('job_1')
    expect(await finished('job_1')).toMatchObject([{ state: 'completed', failed: 1 }])
    expect(await reasons('job_1')).toEqual(['unexpected_error', 'accepted_email'])
  })

  test('while it is restored has the failure as its result', async () => {
    const { worker, submit, finished, engine, reasons, database } = await createTestWorker({
      script: knows('ann'),
    })
    await submit('job_1', ['poison@a.test', 'ann@a.test'])
    await startJob(database, 'job_1')
    const filed = {
      state: 'routed',
      operator: 'a.test',
      domain: 'a.test',
      route: '{"kind"',
    } as const
    await database.db.updateTable('item').set(filed).execute()
    const routeOne = engine.routeOne.bind(engine)
    engine.routeOne = async (text, options) => {
      if (text.startsWith('poison@')) throw new Error('poison')
      return routeOne(text, options)
    }
    worker.take('job_1')
    expect(await finished('job_1')).toMatchObject([{ state: 'completed', failed: 1 }])
    expect(await reasons('job_1')).toEqual(['unexpected_error', 'accepted_email'])
  })
})

test('fails a list that cannot be read after three tries', async () => {
  const { worker, submit, finished, database, loggedErrors } = await createTestWorker()
  await submit('job_1', ['ann@a.test'])
  let tries = 0
  const select = database.db.selectFrom.bind(database.db)
  database.db.selectFrom = ((table: never) => {
    if (table === 'item' && ++tries > 0) throw new Error('unreadable')
    return select(table)
  }) as never
  worker.take('job_1')
  expect(await finished('job_1')).toMatchObject([{ state: 'failed', error: 'server_error' }])
  expect(loggedErrors.filter(line => line === 'job failed with an internal error')).toHaveLength(1)
  expect(tries).toBeGreaterThanOrEqual(3)
})
