import { describe, expect, test } from 'vitest'
import { MINUTE } from '../../../src/platform/clock.ts'
import { isRandomRecipient, mail, toRecipients } from '../../support/engine.ts'
import { createTestJob } from '../../support/job.ts'
import type { MxScript } from '../../support/mx.ts'
import { BLOCKS_US, mxByEgress } from '../../support/mx-by-egress.ts'
import type { ZoneEntry } from '../../support/zone.ts'

// Of two egresses, `a` is the primary one of the operator a.test.

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
  const fixture = await createTestJob({ texts, dial, flags, zone, structures })
  return {
    ...fixture,
    mx,
    dials: { a: mx.of('a').dialled, b: mx.of('b').dialled },
    /** The egress of each result. */
    resultEgresses: async () =>
      (await fixture.results()).map(result => result?.evidence.egress ?? null),
    items: () => fixture.database.db.selectFrom('item').selectAll().orderBy('position').execute(),
  }
}

const REFUSAL = '554 5.7.1 Service unavailable; Client host blocked using bl.example'
const UNKNOWN = '550 5.1.1 No such user'
const GREYLISTED = '450 4.2.0 Greylisted, try again in 300 seconds'
const YES = '250 2.1.5 Ok'

const users = (count: number, domain = 'a.test') =>
  Array.from({ length: count }, (_, n) => `user${n}@${domain}`)

const accepting = toRecipients(to => (isRandomRecipient(to) ? UNKNOWN : YES))
const blocksFor = (...refused: readonly string[]) =>
  toRecipients(to => (isRandomRecipient(to) ? UNKNOWN : refused.includes(to) ? REFUSAL : YES))

describe('a list with an operator that blocks one egress', () => {
  test('is finished by the other egress: every item is answered, and the first is not used', async () => {
    const fixture = await twoEgresses(users(130), { a: BLOCKS_US, b: accepting })
    expect(await fixture.work()).toMatchObject({ state: 'completed', deliverable: 130 })
    expect(new Set(await fixture.resultEgresses())).toEqual(new Set(['b']))
    expect(fixture.mx.asked('b').toSorted()).toEqual(users(130).toSorted())
    expect(fixture.dials.a.length).toBeLessThanOrEqual(2)
  })

  test('is finished by the other egress, even with a single item', async () => {
    const fixture = await twoEgresses(['user1@a.test'], { a: BLOCKS_US, b: accepting })
    expect(await fixture.work()).toMatchObject({ state: 'completed', deliverable: 1 })
    expect([fixture.dials.a.length, fixture.dials.b.length]).toEqual([1, 1])
  })

  test('is finished by the other egress even without waiting for retries', async () => {
    const fixture = await twoEgresses(users(50), { a: BLOCKS_US, b: accepting })
    expect(await fixture.work({ wait: false })).toMatchObject({ deliverable: 50 })
  })

  test('is finished by a third egress if the second is blocked too', async () => {
    const mx = mxByEgress({ a: BLOCKS_US, b: BLOCKS_US, c: accepting })
    const { egresses, dial } = mx
    const operators = { 'a.test': { egresses: ['a', 'b', 'c'] } }
    const { work } = await createTestJob({
      texts: users(70),
      dial,
      structures: { egresses, operators },
    })
    expect(await work()).toMatchObject({ state: 'completed', deliverable: 70 })
    for (const name of ['a', 'b']) expect(mx.of(name).dialled.length).toBeLessThanOrEqual(2)
  })

  test('moves only the items for which the first egress was blocked', async () => {
    const refused = ['user3@a.test', 'user7@a.test']
    const fixture = await twoEgresses(users(12), { a: blocksFor(...refused), b: accepting })
    expect(await fixture.work()).toMatchObject({ state: 'completed', deliverable: 12 })
    expect(fixture.mx.asked('b').toSorted()).toEqual(refused)
    expect(fixture.mx.asked('a')).toHaveLength(12)
  })

  test('respects the connection limit of the other egress', async () => {
    let peak = 0
    const counts = (line: string, session: Parameters<typeof accepting>[1]) => {
      const open = fixture.mx.of('b').sessions.filter(({ closed }) => !closed).length
      peak = Math.max(peak, open)
      return accepting(line, session)
    }
    const flags = { sessionsPerOperator: '3', recipientsPerSession: '5' }
    const fixture = await twoEgresses(users(120), { a: BLOCKS_US, b: counts }, flags)
    expect(await fixture.work()).toMatchObject({ state: 'completed', deliverable: 120 })
    expect(peak).toBe(3)
  })

  test('continues with the other egress after a stop', async () => {
    const stopping = new AbortController()
    const stops = toRecipients(to => {
      if (isRandomRecipient(to)) return UNKNOWN
      if (to === 'user2@a.test') stopping.abort()
      return YES
    })
    const fixture = await twoEgresses(
      users(60),
      { a: BLOCKS_US, b: stops },
      { recipientsPerSession: '5' },
    )
    expect(await fixture.work({ stopping: stopping.signal })).toMatchObject({ state: 'processing' })
    expect(await fixture.work()).toMatchObject({ state: 'completed', deliverable: 60 })
    expect(new Set(await fixture.resultEgresses())).toEqual(new Set(['b']))
  })
})

describe('a list with an operator that blocks every egress', () => {
  test('ends as blocked after few sessions', async () => {
    const fixture = await twoEgresses(users(130), { a: BLOCKS_US, b: BLOCKS_US })
    expect(await fixture.work()).toMatchObject({ state: 'completed', unknown: 130 })
    expect(new Set(await fixture.reasons())).toEqual(new Set(['probe_blocked']))
    // Unprobed items are retried each half hour, for four hours.
    expect(fixture.dials.a.length + fixture.dials.b.length).toBeLessThanOrEqual(2 * 9)
  })

  test('ends after one session by each egress if it does not wait', async () => {
    const fixture = await twoEgresses(users(130), { a: BLOCKS_US, b: BLOCKS_US })
    expect(await fixture.work({ wait: false })).toMatchObject({ state: 'completed', unknown: 130 })
    expect(fixture.dials.a.length).toBeLessThanOrEqual(2)
    expect(fixture.dials.b.length).toBeLessThanOrEqual(2)
  })

  test('ends as blocked for one address after one probe by each egress', async () => {
    const texts = users(6)
    const blocks = blocksFor('user3@a.test')
    const fixture = await twoEgresses(texts, { a: blocks, b: blocks })
    expect(await fixture.work()).toMatchObject({ deliverable: 5, unknown: 1 })
    expect((await fixture.reasons())[3]).toBe('probe_blocked')
    expect((await fixture.resultEgresses())[3]).toBe('b')
    expect(fixture.mx.asked('b')).toEqual(['user3@a.test'])
  })
})

describe('a list that no operator blocks', () => {
  test('is probed by one egress if an operator has few items', async () => {
    const fixture = await twoEgresses([...users(15), ...users(15, 'b.test')], {
      a: accepting,
      b: accepting,
    })
    expect(await fixture.work()).toMatchObject({ deliverable: 30 })
    expect(new Set(fixture.dials.a.map(({ host }) => host))).toEqual(new Set(['mx.a.test']))
    expect(new Set(fixture.dials.b.map(({ host }) => host))).toEqual(new Set(['mx.b.test']))
  })

  test('is probed by one egress if the operator is not known, even with many items', async () => {
    let peak = 0
    const counted = (line: string, session: Parameters<typeof accepting>[1]) => {
      const sessions = [...fixture.mx.of('a').sessions, ...fixture.mx.of('b').sessions]
      peak = Math.max(peak, sessions.filter(({ closed }) => !closed).length)
      return accepting(line, session)
    }
    const flags = { recipientsPerSession: '5' }
    const fixture = await twoEgresses(users(300), { a: counted, b: counted }, flags)
    expect(await fixture.work()).toMatchObject({ state: 'completed', deliverable: 300 })
    expect(peak).toBe(2)
    expect(new Set(await fixture.resultEgresses())).toEqual(new Set(['a']))
  })

  test('is probed by all egresses if a known operator has many items, each within its connection limit', async () => {
    const peak = { a: 0, b: 0 }
    const counted =
      (name: 'a' | 'b') => (line: string, session: Parameters<typeof accepting>[1]) => {
        const open = fixture.mx.of(name).sessions.filter(({ closed }) => !closed).length
        peak[name] = Math.max(peak[name], open)
        return accepting(line, session)
      }
    const scripts = { a: counted('a'), b: counted('b') }
    const operators = { 'a.test': { sessionsPerOperator: 2, recipientsPerSession: 5 } }
    const fixture = await twoEgresses(users(300), scripts, {}, {}, operators)
    expect(await fixture.work()).toMatchObject({ state: 'completed', deliverable: 300 })
    expect(peak).toEqual({ a: 2, b: 2 })
    const egressNames = await fixture.resultEgresses()
    expect(egressNames.filter(name => name === 'b').length).toBeGreaterThan(50)
    expect(fixture.mx.asked('a').length + fixture.mx.asked('b').length).toBe(300)
  })
})

describe('an item that is greylisted', () => {
  /** Greylists each recipient the first time. */
  const greylists = () => {
    const seen = new Set<string>()
    return toRecipients(to => {
      if (isRandomRecipient(to)) return UNKNOWN
      if (seen.has(to)) return YES
      seen.add(to)
      return GREYLISTED
    })
  }

  test('stays with its egress even if the other is idle', async () => {
    const fixture = await twoEgresses(users(15), { a: greylists(), b: accepting })
    expect(await fixture.work()).toMatchObject({ state: 'completed', deliverable: 15 })
    expect(fixture.mx.asked('a')).toHaveLength(30)
    expect(fixture.dials.b).toEqual([])
  })

  test('is due together with items that were postponed with it', async () => {
    const stopping = new AbortController()
    const fixture = await twoEgresses(users(8), { a: greylists(), b: accepting })
    fixture.clock.after(MINUTE, () => stopping.abort())
    await fixture.work({ stopping: stopping.signal })
    const dueAt = new Set((await fixture.items()).map(({ due_at }) => due_at))
    expect([...dueAt].map(at => at % 1_000)).toEqual([0])
  })

  test('stays with its egress after a stop', async () => {
    const stopping = new AbortController()
    const fixture = await twoEgresses(users(15), { a: greylists(), b: accepting })
    fixture.clock.after(MINUTE, () => stopping.abort())
    await fixture.work({ stopping: stopping.signal })
    expect(await fixture.items()).toMatchObject(Array(15).fill({ egress: 'a', tries: 1 }))
    expect(await fixture.work()).toMatchObject({ state: 'completed', deliverable: 15 })
    expect(fixture.mx.asked('a')).toHaveLength(30)
    expect(fixture.dials.b).toEqual([])
  })

  test('stays with an egress that is not primary after a stop', async () => {
    const stopping = new AbortController()
    const fixture = await twoEgresses(['user1@a.test'], {
      a: blocksFor('user1@a.test'),
      b: greylists(),
    })
    fixture.clock.after(MINUTE, () => stopping.abort())
    await fixture.work({ stopping: stopping.signal })
    expect(await fixture.items()).toMatchObject([{ egress: 'b', tries: 1, refused_by: 'a' }])
    expect(await fixture.work()).toMatchObject({ state: 'completed', deliverable: 1 })
    expect([fixture.mx.asked('a').length, fixture.mx.asked('b').length]).toEqual([1, 2])
  })

  test('moves to the other egress without a further wait if its own is blocked meanwhile', async () => {
    const greylisted = users(5)
    const others = ['c.test', 'd.test', 'e.test']
    const defersOrBlocks = toRecipients(to => {
      if (isRandomRecipient(to)) return UNKNOWN
      return greylisted.includes(to) ? GREYLISTED : REFUSAL
    })
    // Items of a hoster gather, so those of all domains share the session.
    const hosted: ZoneEntry = { MX: [[10, 'mx.host.test']] }
    const fixture = await twoEgresses(
      [...greylisted, ...others.flatMap(domain => users(1, domain))],
      { a: defersOrBlocks, b: accepting },
      {},
      {
        ...Object.fromEntries(['a.test', ...others].map(domain => [domain, hosted])),
        'mx.host.test': { A: ['192.0.2.2'] },
      },
    )
    const before = fixture.clock.now()
    expect(await fixture.work()).toMatchObject({ state: 'completed', deliverable: 8 })
    expect(fixture.clock.now() - before).toBeLessThan(MINUTE)
    expect(fixture.mx.asked('a')).toHaveLength(8)
    expect(fixture.mx.asked('b')).toHaveLength(8)
  })

  test('starts over with the other egress, with as many attempts as at the first', async () => {
    let sessions = 0
    const fixture = await twoEgresses(['user1@a.test'], {
      a: {
        greeting: () => (sessions++ < 2 ? '220 mx.a.test ESMTP' : REFUSAL),
        answer: toRecipients(to => (isRandomRecipient(to) ? UNKNOWN : GREYLISTED)),
      },
      b: toRecipients(to => (isRandomRecipient(to) ? UNKNOWN : GREYLISTED)),
    })
    expect(await fixture.work()).toMatchObject({ state: 'completed', unknown: 1 })
    expect(await fixture.reasons()).toEqual(['greylisted'])
    expect([fixture.mx.asked('a').length, fixture.mx.asked('b').length]).toEqual([2, 3])
  })

  test.each<[string, { egresses: readonly object[]; operators?: object }]>([
    ['that is no longer configured', { egresses: [{ name: 'b' }] }],
    [
      'that may no longer probe its operator',
      {
        egresses: [{ name: 'a' }, { name: 'b' }],
        operators: { 'a.test': { egresses: ['b'] } },
      },
    ],
  ])('by an egress %s moves to another egress, due at once', async (_, structures) => {
    const stopping = new AbortController()
    const fixture = await twoEgresses(users(15), { a: greylists(), b: accepting })
    fixture.clock.after(MINUTE, () => stopping.abort())
    await fixture.work({ stopping: stopping.signal })
    const before = fixture.clock.now()
    expect(await fixture.work({ structures })).toMatchObject({ deliverable: 15 })
    expect(fixture.clock.now() - before).toBeLessThan(MINUTE)
    expect(fixture.mx.asked('b')).toHaveLength(15)
    expect(fixture.mx.asked('a')).toHaveLength(15)
  })
})

describe('an egress that reaches no server', () => {
  const unreachable: MxScript = {
    connect: ({ ip }) => {
      throw Object.assign(new Error(`connect ENETUNREACH ${ip}`), { code: 'ENETUNREACH' })
    },
  }

  test('leaves the list to the other egress, for one operator or many', async () => {
    const domains = Array.from({ length: 30 }, (_, n) => `d${n}.test`)
    const zone = Object.assign({}, ...domains.map((name, n) => mail(name, `192.0.2.${n + 3}`)))
    const texts = [...users(150), ...domains.flatMap(name => users(2, name))]
    const fixture = await twoEgresses(texts, { a: unreachable, b: accepting }, {}, zone)
    expect(await fixture.work()).toMatchObject({ state: 'completed', deliverable: 210 })
    expect(new Set(await fixture.resultEgresses())).toEqual(new Set(['b']))
    expect(fixture.dials.a.length).toBeLessThan(50)
  })

  test('is one of two egresses that try a host that is down; a third does not', async () => {
    const mx = mxByEgress({ a: unreachable, b: unreachable, c: unreachable })
    const { egresses, dial } = mx
    const fixture = await createTestJob({ texts: ['ann@a.test'], dial, structures: { egresses } })
    expect(await fixture.work()).toMatchObject({ state: 'completed', unknown: 1 })
    expect(await fixture.reasons()).toEqual(['no_connect'])
    const tried = ['a', 'b', 'c'].filter(name => mx.of(name).dialled.length > 0)
    expect(tried).toHaveLength(2)
  })
})
