import { describe, expect, test } from 'vitest'
import { SharedKind } from '../../src/queue/shared-kind.ts'
import { type FakeClock, fakeClock } from '../support/clock.ts'
import { fc, runs } from '../support/property.ts'
import { Desk } from './conformance.ts'
import { Shelf } from './shelf.ts'

/** Kinds of several processes over one shelf, with a second of time as the queue gives it to them. */
function makeHouse(count = 1) {
  const clock = fakeClock()
  const shelf = new Shelf(clock)
  const said: string[] = []
  const kinds = Array.from({ length: count }, () => kindOver(clock, shelf, said))
  const pass = async (ms: number) => {
    for (let left = ms; left > 0; left -= 1_000) {
      await clock.advance(Math.min(left, 1_000))
      for (const kind of kinds) kind.beat()
      await clock.advance(0)
    }
  }
  return { clock, shelf, said, kinds, kind: kinds[0] as SharedKind, pass }
}

function kindOver(clock: FakeClock, shelf: Shelf, said: string[]) {
  const complain = (message: string) => void said.push(message)
  const onFailure = () => complain('work failed and is tried again')
  return new SharedKind({ entries: shelf, clock, complain, onFailure })
}

describe('a kind that many processes share', () => {
  test('what is put in one turn is written in one go, and what comes meanwhile in the next', async () => {
    const { kind, shelf, clock } = makeHouse()
    let open: (() => void) | undefined
    shelf.gate = new Promise<void>(resolve => {
      open = resolve
    })
    const puts = [kind.put(['a'], 0), kind.put(['b', 'a'], 0)]
    await clock.advance(0)
    puts.push(kind.put(['c'], 0), kind.put(['d'], 0))
    open?.()
    await Promise.all(puts)
    expect(shelf.calls).toEqual(['put a,b', 'put c,d'])
  })

  test('a put that fails says so to whoever put, and the next one is tried by itself', async () => {
    const { kind, shelf } = makeHouse()
    shelf.fault = new Error('away')
    await expect(Promise.all([kind.put(['a'], 0), kind.put(['b'], 0)])).rejects.toThrow('away')
    shelf.fault = null
    await kind.put(['c'], 0)
    expect(shelf.keys).toEqual(['c'])
  })

  test('what is put while it runs here needs no statement of its own', async () => {
    const { kind, shelf, clock } = makeHouse()
    const desk = new Desk()
    kind.work(desk.handler, { concurrency: 5 })
    await kind.put(['a'], 0)
    await clock.advance(0)
    const asked = shelf.calls.length
    await kind.put(['a'], 0)
    expect(shelf.calls.length).toBe(asked)
    desk.end('a', 'done')
    await clock.advance(0)
    expect(desk.order).toEqual(['a', 'a'])
  })

  test('a claim is kept every three seconds, and is not lost then', async () => {
    const { kind, shelf, pass } = makeHouse()
    const desk = new Desk()
    const lost = loseInto(kind, desk)
    await kind.put(['a'], 0)
    await pass(30_000)
    expect(shelf.calls.filter(call => call === 'touch').length).toBe(10)
    shelf.expire()
    expect({ lost, order: desk.order }).toEqual({ lost: [], order: ['a'] })
  })

  test('a claim that could not be kept for nine seconds is lost before another may have it', async () => {
    const { kind, shelf, clock, pass, said } = makeHouse()
    const desk = new Desk()
    const lost = loseInto(kind, desk)
    await kind.put(['a'], 0)
    await clock.advance(0)
    shelf.fault = new Error('away')
    await pass(8_000)
    expect(lost).toEqual([])
    await pass(1_000)
    expect(lost).toEqual(['a'])
    expect(said).toContain('work that runs cannot be kept now')
  })

  test('a process that stood still loses what it had with its first beat', async () => {
    const { kind, clock } = makeHouse()
    const desk = new Desk()
    const lost = loseInto(kind, desk)
    await kind.put(['a'], 0)
    await clock.advance(60_000)
    kind.beat()
    expect(lost).toEqual(['a'])
  })

  test('a claim that is another’s is lost when that is noticed, and its end changes nothing', async () => {
    const { kinds, shelf, pass } = makeHouse(2)
    const [one, other] = kinds as [SharedKind, SharedKind]
    const [ones, others] = [new Desk(), new Desk()]
    const lost = loseInto(one, ones)
    await one.put(['a'], 0)
    await pass(1_000)
    other.work(others.handler, { concurrency: 1 })
    // The worker of the one goes on; the entry is given to the other behind its back.
    shelf.takeAway('a')
    other.wake()
    await pass(4_000)
    expect({ lost, others: others.running }).toEqual({ lost: ['a'], others: ['a'] })
    ones.end('a', 'done')
    await pass(1_000)
    expect(shelf.keys).toEqual(['a'])
    others.end('a', 'done')
    await pass(1_000)
    expect({ keys: shelf.keys, order: others.order }).toEqual({ keys: [], order: ['a'] })
  })

  test('what was put while the claim was another’s already is put again at its end', async () => {
    const { kind, shelf, clock } = makeHouse()
    const desk = new Desk()
    kind.work(desk.handler, { concurrency: 1 })
    await kind.put(['a'], 0)
    await clock.advance(0)
    // Another had it and is done with it, unnoticed here.
    shelf.takeAway('a')
    const [claim] = await shelf.take(1)
    if (claim !== undefined) await shelf.end([{ claim, waitMs: null }])
    await kind.put(['a'], 0)
    desk.end('a', 'done')
    await clock.advance(0)
    expect(desk.order).toEqual(['a', 'a'])
  })

  test('an entry that comes back to the process that lost it waits for the old run to end', async () => {
    const { kind, shelf, pass } = makeHouse()
    const desk = new Desk()
    const lost = loseInto(kind, desk)
    await kind.put(['a'], 0)
    await pass(1_000)
    shelf.takeAway('a')
    await pass(5_000)
    expect({ lost, order: desk.order, twice: desk.twiceAtOnce }).toEqual({
      ...{ lost: ['a'], order: ['a'], twice: [] },
    })
    desk.end('a', 'done')
    await pass(1_000)
    expect(desk.order).toEqual(['a', 'a'])
    desk.end('a', 'done')
    await pass(1_000)
    expect(shelf.keys).toEqual([])
  })

  test('entries that come in while the worker stops are given back at once', async () => {
    const { kind, shelf, clock } = makeHouse()
    const desk = new Desk()
    await kind.put(['a', 'b'], 0)
    let open: (() => void) | undefined
    shelf.gate = new Promise<void>(resolve => {
      open = resolve
    })
    const worker = kind.work(desk.handler, { concurrency: 2 })
    await clock.advance(0)
    const stopping = worker.stop()
    open?.()
    await stopping
    expect(desk.order).toEqual([])
    expect((await shelf.take(9)).map(({ key }) => key)).toEqual(['a', 'b'])
  })

  test('while entries cannot be had it is tried once a second, and goes on by itself', async () => {
    const { kind, shelf, said, pass } = makeHouse()
    const desk = new Desk()
    await kind.put(['a'], 0)
    shelf.fault = new Error('away')
    kind.work(desk.handler, { concurrency: 1 })
    for (let n = 0; n < 50; n++) kind.wake()
    await pass(5_000)
    expect(shelf.calls.filter(call => call === 'take').length).toBeLessThanOrEqual(6)
    expect(new Set(said)).toEqual(new Set(['work cannot be fetched now; that is tried again']))
    shelf.fault = null
    await pass(2_000)
    expect(desk.order).toEqual(['a'])
  })

  test('an end that cannot be written is tried until it is, and its place is free meanwhile', async () => {
    const { kind, shelf, clock, pass } = makeHouse()
    const desk = new Desk()
    kind.work(desk.handler, { concurrency: 1 })
    await kind.put(['a', 'b'], 0)
    await clock.advance(0)
    shelf.fault = new Error('away')
    desk.end('a', { dueAt: clock.now() + 4_000 })
    await pass(3_000)
    shelf.fault = null
    await pass(2_000)
    expect(desk.order).toEqual(['a', 'b'])
    desk.end('b', 'done')
    await pass(2_000)
    expect(desk.order).toEqual(['a', 'b', 'a'])
  })

  test('a worker that stops while the database is away does not wait for it', async () => {
    const { kind, shelf, clock, said } = makeHouse()
    const desk = new Desk()
    const worker = kind.work(desk.handler, { concurrency: 2 })
    await kind.put(['a'], 0)
    await clock.advance(0)
    shelf.fault = new Error('away')
    const stopping = worker.stop()
    desk.end('a', 'done')
    await stopping
    expect(said).toEqual(['what was done cannot be written now; that is tried again'])
    expect(clock.pending).toBe(0)
  })

  test('what falls due within two seconds is fetched then, not with the next beat', async () => {
    const { kind, clock } = makeHouse()
    const desk = new Desk()
    kind.work(desk.handler, { concurrency: 9 })
    await kind.put(['a'], 300)
    await clock.advance(299)
    expect(desk.order).toEqual([])
    await clock.advance(51)
    expect(desk.order).toEqual(['a'])
  })

  test('whatever is put, ends, fails or is taken away: one run a key, nothing early, nothing lost', async () => {
    await fc.assert(fc.asyncProperty(fc.array(STEP, { maxLength: 60 }), play), {
      numRuns: runs(200),
    })
  })
})

/** Works, and gives the keys whose lease was lost. */
function loseInto(kind: SharedKind, desk: Desk): string[] {
  const keys: string[] = []
  kind.work(
    (key, lease) => {
      lease.lost.addEventListener('abort', () => void keys.push(key))
      return desk.handler(key, lease)
    },
    { concurrency: 5 },
  )
  return keys
}

type Step =
  | { readonly put: number; readonly by: number; readonly inMs: number }
  | { readonly end: number; readonly againInMs: number | null }
  | { readonly away: boolean }
  | { readonly passMs: number }

const KEYS = 3
const KINDS = 2
const STEP: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    put: fc.nat(KEYS - 1),
    by: fc.nat(KINDS - 1),
    inMs: fc.constantFrom(0, 0, 10, 3_000),
  }),
  fc.record({ end: fc.nat(KEYS - 1), againInMs: fc.constantFrom(null, null, 0, 30) }),
  fc.record({ away: fc.boolean() }),
  fc.record({ passMs: fc.constantFrom(1, 10, 1_000, 1_000) }),
)

/** Walks the steps beside a ledger of what each key is owed: the earliest time somebody asked for. */
async function play(steps: readonly Step[]): Promise<void> {
  const { kinds, shelf, clock, pass } = makeHouse(KINDS)
  const desk = new Desk()
  const owed = new Map<string, number>()
  const owe = (key: string, at: number) => owed.set(key, Math.min(owed.get(key) ?? at, at))
  const early: string[] = []
  for (const kind of kinds) {
    kind.work(
      (key, lease) => {
        if (clock.now() < (owed.get(key) ?? Number.POSITIVE_INFINITY)) early.push(key)
        owed.delete(key)
        return desk.handler(key, lease)
      },
      { concurrency: 2 },
    )
  }
  for (const step of steps) {
    if ('passMs' in step) await (step.passMs < 1_000 ? clock.advance(step.passMs) : pass(1_000))
    else if ('away' in step) shelf.fault = step.away ? new Error('away') : null
    else if ('put' in step) {
      const at = clock.now() + step.inMs
      await kinds[step.by]?.put([`${step.put}`], step.inMs).then(
        () => owe(`${step.put}`, at),
        () => {},
      )
    } else if (desk.running.includes(`${step.end}`)) {
      const { againInMs } = step
      if (againInMs !== null) owe(`${step.end}`, clock.now() + againInMs)
      desk.end(`${step.end}`, againInMs === null ? 'done' : { dueAt: clock.now() + againInMs })
      await clock.advance(0)
    }
  }
  shelf.fault = null
  for (let round = 0; round < 4 * KEYS; round++) {
    for (const key of desk.running) desk.end(key, 'done')
    await pass(1_000)
  }
  expect({ owed: [...owed], running: desk.running }).toEqual({ owed: [], running: [] })
  expect({ early, twiceAtOnce: desk.twiceAtOnce }).toEqual({ early: [], twiceAtOnce: [] })
  expect(shelf.keys).toEqual([])
}
