import { describe, expect, test } from 'vitest'
import { createAccount } from '../../../src/accounts/account-store.ts'
import { readCredit } from '../../../src/accounts/credits/credit-store.ts'
import { write } from '../../../src/db/database.ts'
import { deleteLoadingJobs } from '../../../src/jobs/import/item-import.ts'
import {
  dropLoading,
  type Loaded,
  loadJob,
  queueLoaded,
  type Row,
  type Submission,
} from '../../../src/jobs/import/load-job.ts'
import { accountJob } from '../../../src/jobs/job-list.ts'
import { DAY } from '../../../src/platform/clock.ts'
import { fakeClock } from '../../support/clock.ts'
import { tempDatabase } from '../../support/database.ts'
import { countedRandom } from '../../support/random.ts'

async function createFixture() {
  const clock = fakeClock()
  const database = await tempDatabase({ clock })
  const deps = { database, random: countedRandom() }
  const period = clock.now() - (clock.now() % DAY)
  await write(database, trx =>
    createAccount(trx, { id: 'acc_1', name: 'one', plan: 'free', now: clock.now() }),
  )
  const submission = (o: Partial<Submission> = {}): Submission => ({
    accountId: 'acc_1',
    keyId: 'key_1',
    type: 'batch',
    name: null,
    sandbox: false,
    source: '{}',
    deduplicate: true,
    ...o,
  })
  return {
    database,
    load: (
      rows: Iterable<readonly Row[]>,
      o: Partial<Submission> = {},
      max: number | null = null,
    ) => loadJob(deps, submission(o), rows, max),
    /** Returns how many rows are stored at each turn of the event loop. */
    loadInTurns: async (rows: Iterable<readonly Row[]>) => {
      const stored: number[] = []
      const countStoredRows = async () => {
        const count = database.db.selectFrom('item').select(eb => eb.fn.countAll().as('rows'))
        stored.push(Number((await count.executeTakeFirstOrThrow()).rows))
      }
      await loadJob(
        { ...deps, priority: { yieldToRequests: countStoredRows } },
        submission(),
        rows,
        null,
      )
      await countStoredRows()
      return stored
    },
    queue: (loaded: Loaded | null, creditsPerDay: number | null = null) =>
      write(database, trx =>
        queueLoaded(trx, loaded as Loaded, { now: clock.now(), creditsPerDay }),
      ),
    jobs: () => database.db.selectFrom('job').selectAll().execute(),
    items: () => database.db.selectFrom('item').selectAll().orderBy('position').execute(),
    credit: () => readCredit(database, 'acc_1', period),
  }
}

const rowsOf = (...texts: string[]) => [texts.map(text => ({ text }))]

describe('a loaded list', () => {
  test('has its rows cleaned and in order, and counts the addresses to verify', async () => {
    const { load, items } = await createFixture()
    const texts = ['a@a.test', ' b@a.test ', 'nonsense', 'a@A.test', 'nonsense', '', 'n/a', '']
    expect(await load(rowsOf(...texts), {}, 9)).toMatchObject({
      total: 8,
      malformed: 2,
      noAddress: 3,
      duplicates: 2,
      addressCount: 2,
    })
    expect((await items()).map(({ text }) => text)).toEqual([
      ...['a@a.test', 'b@a.test', 'nonsense', 'a@A.test', 'nonsense', '', 'n/a', ''],
    ])
  })

  test('counts each row if duplicates are verified separately', async () => {
    const { load } = await createFixture()
    const rows = rowsOf('a@a.test', 'a@a.test', 'nonsense')
    expect(await load(rows, { deduplicate: false }, 9)).toMatchObject({ addressCount: 2 })
  })

  test('has its duplicates marked while it is read, across stored chunks', async () => {
    const { load, queue, jobs, items } = await createFixture()
    const texts = Array.from({ length: 7_000 }, (_, n) => `u${n % 2_500}@a.test`)
    texts.push('nonsense', 'nonsense')
    expect(await load(rowsOf(...texts), {}, 2_500)).toMatchObject({ duplicates: 4_501 })
    const copies = Map.groupBy(texts.keys(), row => texts[row])
    expect(
      (await items()).map(({ same_as, state, copies }) => `${state} ${same_as} ${copies}`),
    ).toEqual(
      texts.map((text, row) => {
        const [first = 0, ...others] = copies.get(text) ?? []
        return row === first ? `queued null ${others.length + 1}` : `same ${first + 1} 0`
      }),
    )
    await queue(await load(rowsOf(...texts)))
    expect((await jobs()).at(-1)).toMatchObject({ total: 7_002, duplicates: 4_501 })
  })

  test.each([
    ['many at a time', 1_700],
    ['few at a time', 90],
  ])('stores at most 500 rows per turn of the event loop, if they arrive %s', async (_, size) => {
    const { loadInTurns } = await createFixture()
    const texts = Array.from({ length: 3_400 }, (_, n) => ({ text: `u${n}@a.test` }))
    const batches = Array.from({ length: Math.ceil(texts.length / size) }, (_, n) =>
      texts.slice(n * size, (n + 1) * size),
    )
    const stored = await loadInTurns(batches)
    expect(stored.at(-1)).toBe(3_400)
    const added = stored.map((count, turn) => count - (stored[turn - 1] ?? 0))
    expect(Math.max(...added)).toBe(500)
  })

  test.each([
    ['one address', 1, 0],
    ['490 rows', 480, 10],
  ])('of %s does not wait for other requests', async (_, rows, repeated) => {
    const { loadInTurns } = await createFixture()
    const texts = Array.from({ length: rows }, (_, n) => ({ text: `u${n}@a.test` }))
    // The only count is that after the import.
    expect(await loadInTurns([texts, texts.slice(0, repeated)])).toEqual([rows + repeated])
  })

  test('is not visible, and is deleted at the next start', async () => {
    const { database, load, jobs, items } = await createFixture()
    const { jobId } = (await load(rowsOf('a@a.test'))) as Loaded
    expect(await jobs()).toMatchObject([{ id: jobId, state: 'loading' }])
    expect(await accountJob(database, 'acc_1', jobId)).toBeNull()
    await deleteLoadingJobs(database)
    expect([await jobs(), await items()]).toEqual([[], []])
  })

  test('that fails midway leaves nothing behind', async () => {
    const { load, jobs, items } = await createFixture()
    function* failing() {
      yield Array.from({ length: 2_500 }, (_, n) => ({ text: `u${n}@a.test` }))
      throw new Error('the file ends here')
    }
    await expect(load(failing())).rejects.toThrow('the file ends here')
    expect([await jobs(), await items()]).toEqual([[], []])
  })

  test('that exceeds the credits is rejected at once and leaves nothing behind', async () => {
    const { load, jobs, items } = await createFixture()
    let batches = 0
    function* endless() {
      for (;;) yield [{ text: `u${++batches}@a.test` }, { text: 'u1@a.test' }]
    }
    expect(await load(endless(), {}, 3)).toBeNull()
    expect(batches).toBe(4)
    expect([await jobs(), await items()]).toEqual([[], []])
  })

  test.each([
    ['batch', false, /^job_[a-z0-9]{20}$/],
    ['bulk', true, /^job_sbx_[a-z0-9]{20}$/],
    ['single', false, /^ver_[a-z0-9]{20}$/],
  ] as const)('has an ID that shows its kind: %s, sandbox %s', async (type, sandbox, id) => {
    const { load } = await createFixture()
    expect((await load(rowsOf('a@a.test'), { type, sandbox }))?.jobId).toMatch(id)
  })
})

describe('a queued list', () => {
  test('reserves a credit per address in the period in which it is queued', async () => {
    const { load, queue, jobs, credit } = await createFixture()
    await queue(await load(rowsOf('a@a.test', 'b@a.test', 'a@a.test', 'nonsense'), {}, 2), 2)
    expect(await jobs()).toMatchObject([{ state: 'queued', total: 4, duplicates: 1, held: 2 }])
    expect(await credit()).toMatchObject({ used: 0, held: 2 })
  })

  test('without enough credits reports how many are left and stays unchanged', async () => {
    const { load, queue, jobs, credit } = await createFixture()
    await queue(await load(rowsOf('a@a.test', 'b@a.test'), {}, 3), 3)
    const loaded = await load(rowsOf('c@a.test', 'd@a.test'), {}, 3)
    expect(await queue(loaded, 3)).toEqual({ creditsLeft: 1 })
    expect((await jobs()).map(({ state }) => state).toSorted()).toEqual(['loading', 'queued'])
    expect(await credit()).toMatchObject({ held: 2 })
  })

  test('reserves no credits without a limit or without addresses', async () => {
    const { load, queue, credit, jobs } = await createFixture()
    await queue(await load(rowsOf('a@a.test')))
    await queue(await load(rowsOf('nonsense'), {}, 0), 0)
    expect(await credit()).toMatchObject({ held: 0 })
    expect(await jobs()).toMatchObject([{ state: 'queued' }, { state: 'queued' }])
  })

  test('is not deleted, as its commit may have been reported as failed', async () => {
    const { database, load, queue, jobs } = await createFixture()
    const loaded = (await load(rowsOf('a@a.test'))) as Loaded
    await queue(loaded)
    await dropLoading(database, loaded.jobId)
    expect(await jobs()).toMatchObject([{ state: 'queued' }])
  })
})
