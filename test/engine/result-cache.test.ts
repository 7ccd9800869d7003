import { describe, expect, test } from 'vitest'
import type { ResultCache } from '../../src/engine/result-cache.ts'
import { DAY, HOUR, MINUTE } from '../../src/platform/clock.ts'
import { createTestEngine } from '../support/engine.ts'
import type { MxScript } from '../support/mx.ts'
import { isRandomRecipient, knows, toRecipients } from '../support/recipients.ts'
import { drainEventLoop } from '../support/wait.ts'

/** A server with a changeable reply for `ann`. */
function changeable(first: string | null) {
  let opinion = first
  const script = toRecipients(to => (to.startsWith('ann@') ? opinion : '550 5.1.1 No such user'))
  return {
    script,
    say(next: string | null) {
      opinion = next
    },
  }
}

const YES = '250 2.1.5 Ok'
const NO = '550 5.1.1 No such user'
const LATER = '451 4.3.0 Try again later'
const ann = (recipients: readonly string[]) => recipients.filter(to => to.startsWith('ann@')).length

describe('cached answers and their freshness', () => {
  test.each<[string, string, string, number]>([
    ['an accepted mailbox', YES, 'accepted_email', DAY],
    ['an unknown mailbox', NO, 'rejected_email', 6 * HOUR],
    ['a full mailbox', '552 5.2.2 Mailbox full', 'mailbox_full', 6 * HOUR],
  ])('%s', async (_, reply, reason, freshMs) => {
    const { engine, verify, clock, recipients } = createTestEngine({
      script: changeable(reply).script,
    })
    const first = await verify('ann@a.test')
    expect(first).toMatchObject({ verdict: { reason }, cached: false })
    await clock.advance(freshMs - MINUTE)
    const second = await verify('ann@a.test')
    expect(second).toMatchObject({ verdict: first.verdict, cached: true })
    expect(second.checkedAt).toBe(first.checkedAt)
    await drainEventLoop()
    expect(ann(recipients())).toBe(1)
    await clock.advance(2 * MINUTE)
    await verify('ann@a.test')
    await drainEventLoop()
    expect(ann(recipients())).toBe(2)
    await engine.close()
  })

  test.each<[string, string, MxScript['answer'] | MxScript]>([
    ['greylisting', 'greylisted', changeable('450 4.2.0 Greylisted').script],
    ['a temporary failure', 'unavailable_smtp', changeable(LATER).script],
    ['a block of ev', 'probe_blocked', changeable('550 5.7.1 Your IP is on a block list').script],
    ['garbage', 'invalid_smtp', { greeting: 'hello there' }],
    ['a missing reply', 'timeout', { greeting: null }],
  ])('does not cache %s', async (_, reason, script) => {
    const entries: string[] = []
    const memory: ResultCache = {
      get: async () => new Map(),
      set: async found => void entries.push(...found.keys()),
    }
    const { reason: reasonOf } = createTestEngine({
      script: script ?? {},
      engine: { resultCache: memory },
    })
    expect(await reasonOf('ann@a.test')).toBe(reason)
    expect(entries).toEqual([])
  })

  test('caches nothing when the cache is disabled', async () => {
    const { verify, recipients } = createTestEngine({ engine: { cache: false } })
    await verify('ann@a.test')
    expect((await verify('ann@a.test')).cached).toBe(false)
    expect(ann(recipients())).toBe(2)
  })

  test('the key has the exact local part and the normalized domain', async () => {
    const { verify } = createTestEngine({
      script: toRecipients(to => (isRandomRecipient(to) ? NO : YES)),
    })
    await verify('ann@a.test')
    expect((await verify('ann@A.Test')).cached).toBe(true)
    expect((await verify('Ann@a.test')).cached).toBe(false)
  })
})

describe('a stale answer', () => {
  test('is served at once and refreshed in the background', async () => {
    const { script, say } = changeable(YES)
    const { engine, clock, verify } = createTestEngine({ script })
    await verify('ann@a.test')
    await clock.advance(3 * DAY)
    say(NO)
    expect(await verify('ann@a.test')).toMatchObject({
      verdict: { reason: 'accepted_email' },
      cached: true,
      tookMs: 0,
    })
    await drainEventLoop()
    // The refreshed answer is served from now on: a definite 5xx replaces an older 2xx.
    expect(await verify('ann@a.test')).toMatchObject({
      verdict: { reason: 'rejected_email' },
      cached: true,
    })
    await engine.close()
  })

  test('is not replaced by a temporary failure', async () => {
    const { script, say } = changeable(YES)
    const { engine, clock, verify } = createTestEngine({ script })
    await verify('ann@a.test')
    await clock.advance(3 * DAY)
    say(LATER)
    for (let times = 0; times < 3; times++) {
      expect((await verify('ann@a.test')).verdict.reason).toBe('accepted_email')
      await drainEventLoop()
    }
    await engine.close()
  })

  test('is served for seven days and no longer', async () => {
    const { script, say } = changeable(YES)
    const { clock, verify, reason } = createTestEngine({ script })
    await verify('ann@a.test')
    say(LATER)
    await clock.advance(7 * DAY - MINUTE)
    expect(await reason('ann@a.test')).toBe('accepted_email')
    await drainEventLoop()
    await clock.advance(2 * MINUTE)
    expect(await reason('ann@a.test')).toBe('unavailable_smtp')
  })

  test('is served while the DNS fails', async () => {
    const { clock, verify, zone } = createTestEngine()
    const first = await verify('ann@a.test')
    await clock.advance(2 * DAY)
    zone.set('a.test', 'server')
    const second = await verify('ann@a.test')
    expect(second).toMatchObject({ verdict: first.verdict, cached: true })
    expect(second.checkedAt).toBe(first.checkedAt)
    expect((await verify('ann@a.test', { checkSmtp: false })).verdict.reason).toBe('dns_error')
    expect((await verify('ann@a.test', { forceRefresh: true })).verdict.reason).toBe('dns_error')
  })

  test('is not served once the domain does not exist, which is a definite answer', async () => {
    const { clock, verify, zone, reason } = createTestEngine()
    await verify('ann@a.test')
    await clock.advance(2 * DAY)
    zone.set('a.test', 'no-name')
    expect(await reason('ann@a.test')).toBe('invalid_domain')
  })

  test('is the fallback of a list when the refresh has no result', async () => {
    const { script, say } = changeable(YES)
    const { clock, many, recipients } = createTestEngine({ script })
    await many(['ann@a.test'])
    await clock.advance(2 * DAY)
    say(LATER)
    const [result] = await many(['ann@a.test'])
    expect(result).toMatchObject({ verdict: { reason: 'accepted_email' }, cached: true })
    expect(ann(recipients())).toBe(2)
  })

  test('is replaced by the new answer in a list', async () => {
    const { script, say } = changeable(YES)
    const { clock, many } = createTestEngine({ script })
    await many(['ann@a.test'])
    await clock.advance(2 * DAY)
    say(NO)
    const [result] = await many(['ann@a.test'])
    expect(result).toMatchObject({ verdict: { reason: 'rejected_email' }, cached: false })
  })
})

describe('a refresh on demand', () => {
  test('forceRefresh probes despite a fresh answer and caches the new one', async () => {
    const { script, say } = changeable(YES)
    const { verify, recipients } = createTestEngine({ script })
    await verify('ann@a.test')
    say(NO)
    expect(await verify('ann@a.test', { forceRefresh: true })).toMatchObject({
      verdict: { reason: 'rejected_email' },
      cached: false,
    })
    expect(await verify('ann@a.test')).toMatchObject({
      verdict: { reason: 'rejected_email' },
      cached: true,
    })
    expect(ann(recipients())).toBe(2)
  })

  test('forceRefresh returns a temporary failure and keeps the cached answer', async () => {
    const { script, say } = changeable(YES)
    const { reason } = createTestEngine({ script })
    await reason('ann@a.test')
    say(LATER)
    expect(await reason('ann@a.test', { forceRefresh: true })).toBe('unavailable_smtp')
    expect(await reason('ann@a.test')).toBe('accepted_email')
  })

  test('a dialogue is not cached, so a request for it always probes', async () => {
    const { verify } = createTestEngine()
    await verify('ann@a.test', { include: ['dialogue'] })
    const second = await verify('ann@a.test', { include: ['dialogue'] })
    expect(second.cached).toBe(false)
    expect(second.evidence.dialogue).toContain('C: RCPT TO:<ann@a.test>')
    expect((await verify('ann@a.test', { include: [] })).evidence.dialogue).toBeNull()
  })
})

describe('a cache scope', () => {
  const OWN = { cacheScope: 'acc_1' }
  const OTHERS = [{ cacheScope: 'acc_2' }, { cacheScope: null }, {}]

  test('sees its own answers, and neither those of other scopes nor those without one', async () => {
    const { engine, verify, many, recipients } = createTestEngine()
    await verify('ann@a.test', OWN)
    for (const [at, other] of OTHERS.slice(0, 2).entries()) {
      expect(await engine.getCached('ann@a.test', other)).toBeNull()
      const { cached } = await verify('ann@a.test', other)
      expect(cached).toBe(false)
      expect(ann(recipients())).toBe(2 + at)
    }
    for (const scope of [OWN, ...OTHERS]) {
      expect((await engine.getCached('ann@a.test', scope))?.cached).toBe(true)
      expect((await many(['ann@a.test'], scope))[0]?.cached).toBe(true)
      expect((await verify('ann@a.test', scope)).cached).toBe(true)
    }
    expect(ann(recipients())).toBe(3)
  })

  test('is kept for the addresses of a list and for restored tasks', async () => {
    const { engine, verify, many, settled } = createTestEngine()
    await many(['ann@a.test'], OWN)
    expect((await verify('ann@a.test', OWN)).cached).toBe(true)
    expect((await verify('ann@a.test', OTHERS[0])).cached).toBe(false)
    const [prepared] = await settled(engine.route(['bob@a.test'], OWN))
    if (prepared === undefined || 'result' in prepared) throw new Error('not routed')
    const { operator, route } = prepared.task
    const task = engine.resume('bob@a.test', route, OWN)
    const sink = { probed: () => {}, later: () => {} }
    const { signal } = new AbortController()
    await settled(engine.probe(operator, task === null ? [] : [task], sink, { signal }))
    expect((await verify('bob@a.test', OWN)).cached).toBe(true)
    expect(await engine.getCached('bob@a.test')).toBeNull()
  })

  test('shares verifications in flight only within itself', async () => {
    const { engine, settled, recipients } = createTestEngine()
    const all = [OWN, OWN, ...OTHERS].map(scope => engine.verify('ann@a.test', scope))
    const cached = (await settled(Promise.all(all))).map(result => result.cached)
    expect(cached).toEqual([false, true, false, false, true])
    expect(ann(recipients())).toBe(3)
  })

  test('has its own fallback while the DNS fails, and its own background refresh', async () => {
    const { engine, verify, clock, zone, recipients } = createTestEngine()
    await verify('ann@a.test', OWN)
    await clock.advance(2 * DAY)
    zone.set('a.test', 'server')
    expect((await verify('ann@a.test', OWN)).verdict.reason).toBe('accepted_email')
    expect((await verify('ann@a.test', OTHERS[0])).verdict.reason).toBe('dns_error')
    zone.set('a.test', { MX: [[10, 'mx.a.test']] })
    await clock.advance(HOUR)
    expect((await verify('ann@a.test', OWN)).cached).toBe(true)
    await drainEventLoop()
    expect(ann(recipients())).toBe(2)
    expect(await engine.getCached('ann@a.test', OTHERS[0])).toBeNull()
    expect((await engine.getCached('ann@a.test', OWN))?.cached).toBe(true)
    await engine.close()
  })
})

test('an address of a list is cached at its answer, while its session goes on', async () => {
  const { engine, settled } = createTestEngine({
    script: toRecipients(to => (to === 'zoe@a.test' ? NO : null)),
  })
  const results = engine.verifyMany(['zoe@a.test', 'ann@a.test'])[Symbol.asyncIterator]()
  const { value } = await settled(results.next())
  expect(value).toMatchObject({ email: 'zoe@a.test', cached: false })
  expect(await engine.getCached('zoe@a.test')).toMatchObject({ cached: true })
  await engine.close()
})

describe('getCached', () => {
  test('returns the cached answer while it is fresh, without a probe', async () => {
    const { engine, verify, clock, recipients } = createTestEngine({
      script: changeable(YES).script,
    })
    expect(await engine.getCached('ann@a.test')).toBeNull()
    expect(recipients()).toEqual([])
    const first = await verify('ann@a.test')
    const asked = recipients().length
    const steps: string[] = []
    const onStep = ({ kind }: { kind: string }) => void steps.push(kind)
    expect(await engine.getCached('ann@a.test', { onStep })).toMatchObject({
      email: 'ann@a.test',
      verdict: first.verdict,
      cached: true,
      checkedAt: first.checkedAt,
    })
    expect(steps).toEqual(['syntax', 'domain', 'cached'])
    await clock.advance(DAY + 1)
    expect(await engine.getCached('ann@a.test')).toBeNull()
    await drainEventLoop()
    expect(recipients()).toHaveLength(asked)
    await engine.close()
  })

  test('returns null for an invalid address, and after the domain ceased to exist', async () => {
    const { engine, verify, zone, clock } = createTestEngine({ script: changeable(YES).script })
    await verify('ann@a.test')
    expect(await engine.getCached('nonsense')).toBeNull()
    zone.set('a.test', 'no-name')
    await clock.advance(HOUR)
    expect(await engine.getCached('ann@a.test')).toBeNull()
    await engine.close()
  })
})

test('the answer for one mailbox does not apply to another', async () => {
  const { many } = createTestEngine({ script: knows('ann') })
  const results = await many(['ann@a.test', 'bob@a.test'])
  expect(new Map(results.map(({ email, verdict }) => [email, verdict.reason]))).toEqual(
    new Map([
      ['ann@a.test', 'accepted_email'],
      ['bob@a.test', 'rejected_email'],
    ]),
  )
})
