import { describe, expect, test } from 'vitest'
import { MINUTE } from '../../../src/platform/clock.ts'
import { isUnguessable, mail, toRecipients } from '../../support/engine.ts'
import { createTestJob } from '../../support/job.ts'
import type { MxScript } from '../../support/mx.ts'
import { BLOCKS_US, mxByEgress } from '../../support/mx-by-egress.ts'
import type { ZoneEntry } from '../../support/zone.ts'

// Of two egresses, `a` is the one that should ask the operator a.test.

type Script = MxScript | NonNullable<MxScript['answer']>

async function twoEgresses(
  texts: readonly string[],
  scripts: { a: Script; b: Script },
  flags: Readonly<Record<string, string>> = {},
  zone: Readonly<Record<string, ZoneEntry>> = {},
  operators: object = {},
) {
  const mx = mxByEgress(scripts)
  const { egresses, dial } = mx
  const structures = { egresses, operators }
  const home = await createTestJob({ texts, dial, flags, zone, structures })
  return {
    ...home,
    mx,
    dials: { a: mx.of('a').dialled, b: mx.of('b').dialled },
    /** Which egress each result is from. */
    askers: async () => (await home.results()).map(result => result?.evidence.egress ?? null),
    items: () => home.database.db.selectFrom('item').selectAll().orderBy('position').execute(),
  }
}

const REFUSAL = '554 5.7.1 Service unavailable; Client host blocked using bl.example'
const UNKNOWN = '550 5.1.1 No such user'
const GREYLISTED = '450 4.2.0 Greylisted, try again in 300 seconds'
const YES = '250 2.1.5 Ok'

const users = (count: number, domain = 'a.test') =>
  Array.from({ length: count }, (_, n) => `user${n}@${domain}`)

const friendly = toRecipients(to => (isUnguessable(to) ? UNKNOWN : YES))
const refusesFor = (...refused: readonly string[]) =>
  toRecipients(to => (isUnguessable(to) ? UNKNOWN : refused.includes(to) ? REFUSAL : YES))

describe('a list whose operator refuses one egress', () => {
  test('is finished by the other: every item is answered, and the first is left alone', async () => {
    const home = await twoEgresses(users(130), { a: BLOCKS_US, b: friendly })
    expect(await home.work()).toMatchObject({ state: 'completed', deliverable: 130 })
    expect(new Set(await home.askers())).toEqual(new Set(['b']))
    expect(home.mx.asked('b').toSorted()).toEqual(users(130).toSorted())
    expect(home.dials.a.length).toBeLessThanOrEqual(2)
  })

  test('is finished by the other, be it as small as it may', async () => {
    const home = await twoEgresses(['user1@a.test'], { a: BLOCKS_US, b: friendly })
    expect(await home.work()).toMatchObject({ state: 'completed', deliverable: 1 })
    expect([home.dials.a.length, home.dials.b.length]).toEqual([1, 1])
  })

  test('is finished by the other though nobody waits for what comes later', async () => {
    const home = await twoEgresses(users(50), { a: BLOCKS_US, b: friendly })
    expect(await home.work({ wait: false })).toMatchObject({ deliverable: 50 })
  })

  test('is finished by a third where the second is refused too', async () => {
    const mx = mxByEgress({ a: BLOCKS_US, b: BLOCKS_US, c: friendly })
    const { egresses, dial } = mx
    const operators = { 'a.test': { egresses: ['a', 'b', 'c'] } }
    const { work } = await createTestJob({
      texts: users(70),
      ...{ dial, structures: { egresses, operators } },
    })
    expect(await work()).toMatchObject({ state: 'completed', deliverable: 70 })
    for (const name of ['a', 'b']) expect(mx.of(name).dialled.length).toBeLessThanOrEqual(2)
  })

  test('goes to the other with those alone for whom the first was refused', async () => {
    const refused = ['user3@a.test', 'user7@a.test']
    const home = await twoEgresses(users(12), { a: refusesFor(...refused), b: friendly })
    expect(await home.work()).toMatchObject({ state: 'completed', deliverable: 12 })
    expect(home.mx.asked('b').toSorted()).toEqual(refused)
    expect(home.mx.asked('a')).toHaveLength(12)
  })

  test('keeps to the connections that the operator allows the other', async () => {
    let peak = 0
    const counts = (line: string, session: Parameters<typeof friendly>[1]) => {
      const open = home.mx.of('b').sessions.filter(({ closed }) => !closed).length
      peak = Math.max(peak, open)
      return friendly(line, session)
    }
    const flags = { sessionsPerOperator: '3', recipientsPerSession: '5' }
    const home = await twoEgresses(users(120), { a: BLOCKS_US, b: counts }, flags)
    expect(await home.work()).toMatchObject({ state: 'completed', deliverable: 120 })
    expect(peak).toBe(3)
  })

  test('that was stopped goes on with the other', async () => {
    const stopping = new AbortController()
    const stops = toRecipients(to => {
      if (isUnguessable(to)) return UNKNOWN
      if (to === 'user2@a.test') stopping.abort()
      return YES
    })
    const home = await twoEgresses(
      users(60),
      { a: BLOCKS_US, b: stops },
      { recipientsPerSession: '5' },
    )
    expect(await home.work({ stopping: stopping.signal })).toMatchObject({ state: 'processing' })
    expect(await home.work()).toMatchObject({ state: 'completed', deliverable: 60 })
    expect(new Set(await home.askers())).toEqual(new Set(['b']))
  })
})

describe('a list whose operator refuses every egress', () => {
  test('ends as blocked, without many visits', async () => {
    const home = await twoEgresses(users(130), { a: BLOCKS_US, b: BLOCKS_US })
    expect(await home.work()).toMatchObject({ state: 'completed', unknown: 130 })
    expect(new Set(await home.reasons())).toEqual(new Set(['probe_blocked']))
    // What nobody asked about is tried again each half hour, for four hours.
    expect(home.dials.a.length + home.dials.b.length).toBeLessThanOrEqual(2 * 9)
  })

  test('and that does not wait ends after a visit by each', async () => {
    const home = await twoEgresses(users(130), { a: BLOCKS_US, b: BLOCKS_US })
    expect(await home.work({ wait: false })).toMatchObject({ state: 'completed', unknown: 130 })
    expect(home.dials.a.length).toBeLessThanOrEqual(2)
    expect(home.dials.b.length).toBeLessThanOrEqual(2)
  })

  test('for one address ends as blocked for that one, which both were asked about once', async () => {
    const texts = users(6)
    const refuses = refusesFor('user3@a.test')
    const home = await twoEgresses(texts, { a: refuses, b: refuses })
    expect(await home.work()).toMatchObject({ deliverable: 5, unknown: 1 })
    expect((await home.reasons())[3]).toBe('probe_blocked')
    expect((await home.askers())[3]).toBe('b')
    expect(home.mx.asked('b')).toEqual(['user3@a.test'])
  })
})

describe('a list that no operator refuses', () => {
  test('is asked by one identity where few items are an operator’s', async () => {
    const home = await twoEgresses([...users(15), ...users(15, 'b.test')], {
      ...{ a: friendly, b: friendly },
    })
    expect(await home.work()).toMatchObject({ deliverable: 30 })
    expect(new Set(home.dials.a.map(({ host }) => host))).toEqual(new Set(['mx.a.test']))
    expect(new Set(home.dials.b.map(({ host }) => host))).toEqual(new Set(['mx.b.test']))
  })

  test('is asked by one where nobody knows the operator, however many items there are', async () => {
    let peak = 0
    const counted = (line: string, session: Parameters<typeof friendly>[1]) => {
      const sessions = [...home.mx.of('a').sessions, ...home.mx.of('b').sessions]
      peak = Math.max(peak, sessions.filter(({ closed }) => !closed).length)
      return friendly(line, session)
    }
    const home = await twoEgresses(users(300), { a: counted, b: counted })
    expect(await home.work()).toMatchObject({ state: 'completed', deliverable: 300 })
    expect(peak).toBe(2)
    expect(new Set(await home.askers())).toEqual(new Set(['a']))
  })

  test('is asked by all where many are and the operator is known, each within its own connections', async () => {
    const peak = { a: 0, b: 0 }
    const counted =
      (name: 'a' | 'b') => (line: string, session: Parameters<typeof friendly>[1]) => {
        const open = home.mx.of(name).sessions.filter(({ closed }) => !closed).length
        peak[name] = Math.max(peak[name], open)
        return friendly(line, session)
      }
    const scripts = { a: counted('a'), b: counted('b') }
    const operators = { 'a.test': { sessionsPerOperator: 2 } }
    const home = await twoEgresses(users(300), scripts, {}, {}, operators)
    expect(await home.work()).toMatchObject({ state: 'completed', deliverable: 300 })
    expect(peak).toEqual({ a: 2, b: 2 })
    const askedBy = await home.askers()
    expect(askedBy.filter(name => name === 'b').length).toBeGreaterThan(50)
    expect(home.mx.asked('a').length + home.mx.asked('b').length).toBe(300)
  })
})

describe('an item that is greylisted', () => {
  /** Greylists each recipient the first time. */
  const greylists = () => {
    const seen = new Set<string>()
    return toRecipients(to => {
      if (isUnguessable(to)) return UNKNOWN
      if (seen.has(to)) return YES
      seen.add(to)
      return GREYLISTED
    })
  }

  test('stays with its egress, though the other has nothing to do', async () => {
    const home = await twoEgresses(users(15), { a: greylists(), b: friendly })
    expect(await home.work()).toMatchObject({ state: 'completed', deliverable: 15 })
    expect(home.mx.asked('a')).toHaveLength(30)
    expect(home.dials.b).toEqual([])
  })

  test('comes due together with those that were put off with it', async () => {
    const stopping = new AbortController()
    const home = await twoEgresses(users(8), { a: greylists(), b: friendly })
    home.clock.after(MINUTE, () => stopping.abort())
    await home.work({ stopping: stopping.signal })
    const dueAt = new Set((await home.items()).map(({ due_at }) => due_at))
    expect([...dueAt].map(at => at % 1_000)).toEqual([0])
  })

  test('stays with its egress over a stop', async () => {
    const stopping = new AbortController()
    const home = await twoEgresses(users(15), { a: greylists(), b: friendly })
    home.clock.after(MINUTE, () => stopping.abort())
    await home.work({ stopping: stopping.signal })
    expect(await home.items()).toMatchObject(Array(15).fill({ egress: 'a', tries: 1 }))
    expect(await home.work()).toMatchObject({ state: 'completed', deliverable: 15 })
    expect(home.mx.asked('a')).toHaveLength(30)
    expect(home.dials.b).toEqual([])
  })

  test('stays over a stop with an egress that is not the first of its operator', async () => {
    const stopping = new AbortController()
    const home = await twoEgresses(['user1@a.test'], {
      a: refusesFor('user1@a.test'),
      b: greylists(),
    })
    home.clock.after(MINUTE, () => stopping.abort())
    await home.work({ stopping: stopping.signal })
    expect(await home.items()).toMatchObject([{ egress: 'b', tries: 1, refused_by: 'a' }])
    expect(await home.work()).toMatchObject({ state: 'completed', deliverable: 1 })
    expect([home.mx.asked('a').length, home.mx.asked('b').length]).toEqual([1, 2])
  })

  test('goes to the other, without a further wait, when its own is refused meanwhile', async () => {
    const greylisted = users(5)
    const others = ['c.test', 'd.test', 'e.test']
    const turnsAway = toRecipients(to => {
      if (isUnguessable(to)) return UNKNOWN
      return greylisted.includes(to) ? GREYLISTED : REFUSAL
    })
    const hosted: ZoneEntry = { MX: [[10, 'mx.a.test']] }
    const home = await twoEgresses(
      [...greylisted, ...others.flatMap(domain => users(1, domain))],
      { a: turnsAway, b: friendly },
      {},
      Object.fromEntries(others.map(domain => [domain, hosted])),
    )
    const before = home.clock.now()
    expect(await home.work()).toMatchObject({ state: 'completed', deliverable: 8 })
    expect(home.clock.now() - before).toBeLessThan(MINUTE)
    expect(home.mx.asked('a')).toHaveLength(8)
    expect(home.mx.asked('b')).toHaveLength(8)
  })

  test('begins anew with the other: it is asked as often there as if it had been the first', async () => {
    let visits = 0
    const home = await twoEgresses(['user1@a.test'], {
      a: {
        greeting: () => (visits++ < 2 ? '220 mx.a.test ESMTP' : REFUSAL),
        answer: toRecipients(to => (isUnguessable(to) ? UNKNOWN : GREYLISTED)),
      },
      b: toRecipients(to => (isUnguessable(to) ? UNKNOWN : GREYLISTED)),
    })
    expect(await home.work()).toMatchObject({ state: 'completed', unknown: 1 })
    expect(await home.reasons()).toEqual(['greylisted'])
    expect([home.mx.asked('a').length, home.mx.asked('b').length]).toEqual([2, 3])
  })

  test.each<[string, { egresses: readonly object[]; operators?: object }]>([
    ['that the settings no longer have', { egresses: [{ name: 'b' }] }],
    [
      'that may no longer ask its operator',
      {
        egresses: [{ name: 'a' }, { name: 'b' }],
        operators: { 'a.test': { egresses: ['b'] } },
      },
    ],
  ])('by an egress %s goes to another, due at once', async (_, structures) => {
    const stopping = new AbortController()
    const home = await twoEgresses(users(15), { a: greylists(), b: friendly })
    home.clock.after(MINUTE, () => stopping.abort())
    await home.work({ stopping: stopping.signal })
    const before = home.clock.now()
    expect(await home.work({ structures })).toMatchObject({ deliverable: 15 })
    expect(home.clock.now() - before).toBeLessThan(MINUTE)
    expect(home.mx.asked('b')).toHaveLength(15)
    expect(home.mx.asked('a')).toHaveLength(15)
  })
})

describe('an egress that reaches nobody', () => {
  const cutOff: MxScript = {
    connect: ({ ip }) => {
      throw Object.assign(new Error(`connect ENETUNREACH ${ip}`), { code: 'ENETUNREACH' })
    },
  }

  test('leaves the list to the other, for one operator or for many', async () => {
    const domains = Array.from({ length: 30 }, (_, n) => `d${n}.test`)
    const zone = Object.assign({}, ...domains.map((name, n) => mail(name, `192.0.2.${n + 3}`)))
    const texts = [...users(150), ...domains.flatMap(name => users(2, name))]
    const home = await twoEgresses(texts, { a: cutOff, b: friendly }, {}, zone)
    expect(await home.work()).toMatchObject({ state: 'completed', deliverable: 210 })
    expect(new Set(await home.askers())).toEqual(new Set(['b']))
    expect(home.dials.a.length).toBeLessThan(50)
  })

  test('is one of two that try a host that is down; a third does not', async () => {
    const mx = mxByEgress({ a: cutOff, b: cutOff, c: cutOff })
    const { egresses, dial } = mx
    const home = await createTestJob({ texts: ['ann@a.test'], dial, structures: { egresses } })
    expect(await home.work()).toMatchObject({ state: 'completed', unknown: 1 })
    expect(await home.reasons()).toEqual(['no_connect'])
    const tried = ['a', 'b', 'c'].filter(name => mx.of(name).dialled.length > 0)
    expect(tried).toHaveLength(2)
  })
})
