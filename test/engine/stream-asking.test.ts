import { describe, expect, test } from 'vitest'
import { HOUR, MINUTE } from '../../src/platform/clock.ts'
import { createTestEngine, mail, reasonsOf } from '../support/engine.ts'
import {
  isRandomRecipient,
  knows,
  recipientOf,
  toRecipients,
  users,
} from '../support/recipients.ts'
import { remoteDial } from '../support/remote.ts'

const YES = '250 2.1.5 Ok'
const NO = '550 5.1.1 No such user'
const GREY = '450 4.2.0 Greylisted, try again in 10 minutes'

describe('a greylisted address', () => {
  /** Defers each pair of recipient and sender until `waitMs` after its first attempt. */
  function greylist(waitMs: number, now: () => number) {
    const firstAt = new Map<string, number>()
    const asked: { at: number; sender: string; ip: string }[] = []
    const script = (line: string, session: { lines: string[]; to: { ip: string } }) => {
      const to = recipientOf(line)
      if (to === '') return undefined
      if (isRandomRecipient(to)) return NO
      const sender = session.lines.findLast(said => said.startsWith('MAIL')) ?? ''
      asked.push({ at: now(), sender, ip: session.to.ip })
      const first = firstAt.get(`${sender} ${to}`) ?? now()
      firstAt.set(`${sender} ${to}`, first)
      return now() - first >= waitMs ? YES : GREY
    }
    return { script, asked }
  }

  test('is retried from the same sender after the time that the server names', async () => {
    let now = () => 0
    const { script, asked } = greylist(10 * MINUTE, () => now())
    const { many, clock } = createTestEngine({ script })
    now = clock.monotonicNow
    const results = await many(['ann@a.test', 'nonsense'])
    expect(reasonsOf(results)).toEqual(['ann@a.test accepted_email', 'nonsense invalid_email'])
    expect(asked.map(({ sender }) => sender)).toEqual(['MAIL FROM:<>', 'MAIL FROM:<>'])
    const waitedMs = (asked[1]?.at ?? 0) - (asked[0]?.at ?? 0)
    expect(waitedMs).toBeGreaterThanOrEqual(10 * MINUTE)
    expect(waitedMs).toBeLessThan(11 * MINUTE)
  })

  test('shares a connection with the others that were deferred with it', async () => {
    let now = () => 0
    const { script } = greylist(10 * MINUTE, () => now())
    const { many, mx, clock } = createTestEngine({ script })
    now = clock.monotonicNow
    await many(users(8))
    expect(mx.sessions).toHaveLength(2)
  })

  test('is tried at most three times and then ends as greylisted', async () => {
    const { script, asked } = greylist(24 * HOUR, () => 0)
    const { many } = createTestEngine({ script })
    expect(reasonsOf(await many(['ann@a.test']))).toEqual(['ann@a.test greylisted'])
    expect(asked).toHaveLength(3)
  })

  test('ends at once with wait: false', async () => {
    const { script, asked } = greylist(10 * MINUTE, () => 0)
    const { many, clock } = createTestEngine({ script })
    const startedAt = clock.monotonicNow()
    expect(reasonsOf(await many(['ann@a.test'], { wait: false }))).toEqual([
      'ann@a.test greylisted',
    ])
    expect(asked).toHaveLength(1)
    expect(clock.monotonicNow() - startedAt).toBeLessThan(MINUTE)
  })

  test('waits as configured', async () => {
    let now = () => 0
    const { script, asked } = greylist(30_000, () => now())
    const { many, clock } = createTestEngine({ script, engine: { greylistDelayMs: 30_000 } })
    now = clock.monotonicNow
    expect(reasonsOf(await many(['ann@a.test']))).toEqual(['ann@a.test accepted_email'])
    expect(asked).toHaveLength(2)
    expect((asked[1]?.at ?? 0) - (asked[0]?.at ?? 0)).toBeLessThan(MINUTE)
  })

  test('does not delay others while it waits', async () => {
    const zone = mail('grey.test', '192.0.2.2')
    const script = toRecipients(to => (to.endsWith('@grey.test') ? GREY : YES))
    const { engine, settled, clock } = createTestEngine({
      zone,
      script,
      engine: { concurrency: 1 },
    })
    const startedAt = clock.monotonicNow()
    const iterator = engine.verifyMany(['ann@grey.test', 'ann@a.test'])[Symbol.asyncIterator]()
    expect((await settled(iterator.next())).value).toMatchObject({ email: 'ann@a.test' })
    expect(clock.monotonicNow() - startedAt).toBeLessThan(MINUTE)
    await iterator.return?.()
  })
})

describe('how a list is probed', () => {
  test('the recipients of one domain share a connection', async () => {
    const { many, mx, recipients } = createTestEngine({
      script: knows(...users(15).map(user => user.split('@')[0] ?? '')),
    })
    await many(users(15))
    expect(mx.sessions).toHaveLength(1)
    expect(recipients().filter(to => !isRandomRecipient(to))).toHaveLength(15)
  })

  test('opens no more concurrent connections than configured', async () => {
    const domains = Array.from({ length: 20 }, (_, i) => `d${i}.test`)
    const zone = Object.assign({}, ...domains.map((name, i) => mail(name, `192.0.2.${i + 1}`)))
    let now = 0
    let peak = 0
    const known = knows('user0')
    const { many } = createTestEngine({
      zone,
      dial: (mx, clock) => remoteDial(mx, clock, 200),
      engine: { concurrency: 3 },
      script: {
        greeting: () => {
          peak = Math.max(peak, ++now)
          return undefined
        },
        answer: (line, session) => {
          if (line === 'QUIT') now--
          return known(line, session)
        },
      },
    })
    const results = await many(domains.flatMap(domain => users(2, domain)))
    expect(results).toHaveLength(40)
    expect(peak).toBe(3)
  })

  test('the catch-all probe is sent once per domain, whatever its length', async () => {
    const { many, recipients } = createTestEngine({
      script: toRecipients(to => (isRandomRecipient(to) ? NO : YES)),
    })
    await many(users(60))
    expect(recipients().filter(isRandomRecipient)).toHaveLength(1)
  })

  test('a domain without an accepted recipient gets no catch-all probe', async () => {
    const { many, recipients } = createTestEngine()
    await many(users(5))
    expect(recipients().filter(isRandomRecipient)).toEqual([])
  })

  test('skips SMTP on request', async () => {
    const { many, mx } = createTestEngine()
    const results = await many(['ann@a.test', 'nonsense'], { checkSmtp: false })
    expect(reasonsOf(results)).toEqual(['ann@a.test smtp_skipped', 'nonsense invalid_email'])
    expect(mx.dialled).toEqual([])
  })

  test('serves a cached answer unless a refresh is forced', async () => {
    const { many, recipients } = createTestEngine()
    await many(['ann@a.test'])
    const [second] = await many(['ann@a.test'])
    expect(second?.cached).toBe(true)
    const [third] = await many(['ann@a.test'], { forceRefresh: true })
    expect(third?.cached).toBe(false)
    expect(recipients().filter(to => to === 'ann@a.test')).toHaveLength(2)
  })

  test('a text instead of a list is an error, not a list of its characters', () => {
    const { engine } = createTestEngine()
    expect(() => engine.verifyMany('ann@a.test')).toThrow(/verify\(\)/)
  })
})
