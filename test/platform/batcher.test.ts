import { describe, expect, test } from 'vitest'
import { type AfterFailure, Batcher, type BatcherOptions } from '../../src/platform/batcher.ts'
import { fakeClock } from '../support/clock.ts'
import { drainEventLoop } from '../support/wait.ts'

type Written = { readonly items: number[]; readonly attempt: number }

/** Records its batches; may be set to fail. */
function bench(
  next: (attempt: number, size: number) => AfterFailure = () => 'retry',
  options: Partial<BatcherOptions<number, undefined>> = {},
) {
  const clock = fakeClock()
  const written: Written[] = []
  const failures: number[] = []
  const state = { failing: false, poison: -1 }
  const batcher = new Batcher<number>({
    clock,
    sizeMax: 1_000,
    retryMs: 1_000,
    async run(items, attempt) {
      if (state.failing || items.includes(state.poison)) throw new Error('disk full')
      written.push({ items: [...items], attempt })
    },
    onFailure(_, items, attempt) {
      failures.push(attempt)
      return next(attempt, items.length)
    },
    ...options,
  })
  const sizes = () => written.map(({ items }) => items.length)
  return { clock, batcher, written, failures, sizes, state }
}

describe('a batch', () => {
  test('contains the items of one turn of the event loop, in order', async () => {
    const { clock, batcher, written } = bench()
    const added = [batcher.add(1), batcher.add(2)]
    expect([written.length, batcher.pending]).toEqual([0, 2])
    await Promise.all(added)
    expect(written).toEqual([{ items: [1, 2], attempt: 1 }])
    expect(batcher.pending).toBe(0)
    await batcher.add(3)
    expect(written.at(-1)).toEqual({ items: [3], attempt: 1 })
    expect(clock.pending).toBe(0)
  })

  test('is limited in size; items added while it runs go into the next one', async () => {
    const { clock, batcher, sizes } = bench()
    for (let n = 0; n < 1_950; n++) void batcher.add(n)
    await batcher.flushed()
    expect(sizes()).toEqual([1_000, 950])
    expect(clock.pending).toBe(0)
  })

  test('runs after its maximum wait, which counts from its first item', async () => {
    const { clock, batcher, sizes } = bench(undefined, { waitMs: 50 })
    void batcher.add(1)
    await clock.advance(30)
    void batcher.add(2)
    await clock.advance(19)
    expect(sizes()).toEqual([])
    await clock.advance(1)
    expect(sizes()).toEqual([2])
    void batcher.add(3)
    await clock.advance(49)
    expect(sizes()).toEqual([2])
    await clock.advance(1)
    expect(sizes()).toEqual([2, 1])
    expect(clock.pending).toBe(0)
  })

  test('runs at its minimum size, before its maximum wait', async () => {
    const { clock, batcher, sizes } = bench(undefined, { waitMs: 50, sizeMin: 3, sizeMax: 5 })
    for (let n = 0; n < 9; n++) void batcher.add(n)
    await drainEventLoop()
    expect(sizes()).toEqual([3, 5])
    await clock.advance(50)
    expect(sizes()).toEqual([3, 5, 1])
  })

  test('sums the sizes of its items', async () => {
    const { batcher, sizes } = bench(undefined, { sizeOf: item => item, sizeMax: 10 })
    for (const size of [0, 4, 4, 40, 1]) void batcher.add(size)
    expect(batcher.sizePending).toBe(49)
    await batcher.flushed()
    expect(sizes()).toEqual([4, 1])
    expect(batcher.sizePending).toBe(0)
  })

  test('contains only the last item of a key, whose result all callers get', async () => {
    const { batcher, written } = bench(undefined, { keyOf: item => String(item % 10) })
    const added = [batcher.add(1), batcher.add(2), batcher.add(11)]
    await Promise.all(added)
    expect(written).toEqual([{ items: [11, 2], attempt: 1 }])
    await batcher.add(21)
    expect(written.at(-1)).toEqual({ items: [21], attempt: 1 })
  })

  const BUSY = [
    { adds: 'each turn adds one', quietTurns: 1, turns: [1, 1, 1], expected: [3] },
    { adds: 'a turn adds none', quietTurns: 1, turns: [1, 0, 1], expected: [1, 1] },
    { adds: 'every other turn adds one', quietTurns: 2, turns: [1, 0, 1, 0, 1], expected: [3] },
    { adds: 'two turns in a row add none', quietTurns: 2, turns: [1, 0, 0, 1], expected: [1, 1] },
  ]
  test.each(BUSY)(
    'waits for $quietTurns quiet turns: if $adds, the sizes are $expected',
    async ({ quietTurns, turns, expected }) => {
      const { batcher, sizes } = bench(undefined, { quietTurns })
      const arrive = ([count = 0, ...later]: readonly number[]) =>
        setImmediate(() => {
          if (later.length > 0) arrive(later)
          for (let n = 0; n < count; n++) void batcher.add(n)
        })
      arrive(turns)
      await drainEventLoop()
      expect(sizes()).toEqual(expected)
    },
  )

  test('returns to each caller its own result or error', async () => {
    const batcher = new Batcher<number, string>({
      clock: fakeClock(),
      sizeMax: 10,
      run: async items => items.map(item => (item < 0 ? new Error('negative') : `${item}`)),
    })
    const added = await Promise.allSettled([1, -1, 2].map(item => batcher.add(item)))
    expect(added).toEqual([
      { status: 'fulfilled', value: '1' },
      { status: 'rejected', reason: new Error('negative') },
      { status: 'fulfilled', value: '2' },
    ])
  })
})

describe('a batch that fails', () => {
  test('is retried before the items added meanwhile', async () => {
    const { clock, batcher, written, failures, state } = bench()
    state.failing = true
    void batcher.add(1)
    await clock.advance(0)
    for (let n = 2; n < 100; n++) void batcher.add(n)
    await clock.advance(2_999)
    expect(failures).toEqual([1, 2, 3])
    expect([batcher.pending, batcher.fault]).toEqual([99, new Error('disk full')])
    state.failing = false
    await clock.advance(1)
    expect(written[0]).toEqual({ items: [1], attempt: 4 })
    await batcher.flushed()
    expect(written[1]).toMatchObject({ attempt: 1 })
    expect(written[1]?.items).toHaveLength(98)
    expect([batcher.pending, batcher.fault]).toEqual([0, null])
  })

  test('can be retried after its callers and later ones got the error', async () => {
    const { clock, batcher, state, sizes } = bench(attempt =>
      attempt < 3 ? 'retry' : 'retry-unawaited',
    )
    state.failing = true
    const reported: string[] = []
    const wait = (name: string) =>
      batcher.add(1).catch(({ message }) => void reported.push(`${name}: ${message}`))
    void wait('first')
    await clock.advance(0)
    void wait('meanwhile')
    await clock.advance(1_999)
    expect(reported).toEqual([])
    await clock.advance(1)
    expect(reported).toEqual(['first: disk full', 'meanwhile: disk full'])
    await wait('later')
    expect(reported.at(-1)).toBe('later: disk full')
    state.failing = false
    await clock.advance(1_000)
    await batcher.flushed()
    expect(sizes()).toEqual([1, 2])
  })

  test('can be dropped, and the next one runs', async () => {
    const { batcher, written, failures, state } = bench(attempt =>
      attempt < 2 ? 'split' : 'reject',
    )
    state.failing = true
    await expect(batcher.add(1)).rejects.toThrow('disk full')
    state.failing = false
    await batcher.add(2)
    expect(failures).toEqual([1, 2])
    expect(written).toEqual([{ items: [2], attempt: 1 }])
  })

  test('can be split, so that the bad item fails alone', async () => {
    const { batcher, written, state } = bench((_, size) => (size > 1 ? 'split' : 'reject'))
    state.poison = 2
    const added = await Promise.allSettled([1, 2, 3].map(item => batcher.add(item)))
    expect(added.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(written.map(({ items }) => items)).toEqual([[1], [3]])
  })

  test('can reject the queued items too', async () => {
    let runs = 0
    const { batcher } = bench(() => 'reject-all', {
      sizeMax: 2,
      run: async () => {
        await drainEventLoop()
        if (++runs === 1) throw new Error('server away')
      },
    })
    const added = await Promise.allSettled([1, 2, 3].map(item => batcher.add(item)))
    expect(added.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
    expect([runs, batcher.pending]).toEqual([1, 0])
    await batcher.add(4)
    expect(runs).toBe(2)
  })

  test('is included in flushed()', async () => {
    const { clock, batcher, state } = bench()
    state.failing = true
    void batcher.add(1)
    let isDone = false
    const flushed = batcher.flushed().then(() => {
      isDone = true
    })
    await clock.advance(3_000)
    expect(isDone).toBe(false)
    state.failing = false
    await clock.advance(2_000)
    await flushed
    expect(batcher.pending).toBe(0)
  })
})

describe('closing', () => {
  test('runs queued items and later ones without delay', async () => {
    const { clock, batcher, sizes } = bench(undefined, { waitMs: 50 })
    for (let n = 0; n < 1_650; n++) void batcher.add(n)
    expect(await batcher.close()).toBe(0)
    expect(sizes()).toEqual([1_000, 650])
    await batcher.add(1)
    expect(sizes()).toEqual([1_000, 650, 1])
    expect(clock.pending).toBe(0)
    expect(await batcher.close()).toBe(0)
  })

  test('skips the wait for a retry', async () => {
    const { clock, batcher, state, sizes } = bench()
    state.failing = true
    void batcher.add(1)
    await clock.advance(500)
    state.failing = false
    expect(await batcher.close()).toBe(0)
    expect([sizes(), clock.pending]).toEqual([[1], 0])
  })

  test('drops a batch that fails twice, and returns the number of dropped items', async () => {
    const { clock, batcher, state } = bench()
    state.failing = true
    const added = batcher.add(1)
    expect(await batcher.close()).toBe(1)
    await expect(added).rejects.toThrow('disk full')
    expect(clock.pending).toBe(0)
  })
})
