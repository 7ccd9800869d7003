import { describe, expect, test } from 'vitest'
import type { ResultCache } from '../../src/engine/result-cache.ts'
import { DAY, HOUR, MINUTE } from '../../src/platform/clock.ts'
import { createTestEngine } from '../support/engine.ts'
import type { MxScript } from '../support/mx.ts'
import { isUnguessable, knows, toRecipients } from '../support/recipients.ts'
import { drainEventLoop } from '../support/wait.ts'

/** A server whose opinion of `ann` can be changed. */
function fickle(first: string | null) {
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

describe('what is remembered, and how long it is fresh', () => {
  test.each<[string, string, string, number]>([
    ['an accepted mailbox', YES, 'accepted_email', DAY],
    ['an unknown mailbox', NO, 'rejected_email', 6 * HOUR],
    ['a full mailbox', '552 5.2.2 Mailbox full', 'mailbox_full', 6 * HOUR],
  ])('%s', async (_, reply, reason, freshMs) => {
    const { engine, verify, clock, recipients } = createTestEngine({ script: fickle(reply).script })
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
    ['greylisting', 'greylisted', fickle('450 4.2.0 Greylisted').script],
    ['trouble of theirs', 'unavailable_smtp', fickle(LATER).script],
    ['a refusal of us', 'probe_blocked', fickle('550 5.7.1 Your IP is on a block list').script],
    ['garbage', 'invalid_smtp', { greeting: 'hello there' }],
    ['silence', 'timeout', { greeting: null }],
  ])('not %s', async (_, reason, script) => {
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

  test('nothing with the memory switched off', async () => {
    const { verify, recipients } = createTestEngine({ engine: { cache: false } })
    await verify('ann@a.test')
    expect((await verify('ann@a.test')).cached).toBe(false)
    expect(ann(recipients())).toBe(2)
  })

  test('an answer belongs to one spelling of the local part, and to every one of the domain', async () => {
    const { verify } = createTestEngine({
      script: toRecipients(to => (isUnguessable(to) ? NO : YES)),
    })
    await verify('ann@a.test')
    expect((await verify('ann@A.Test')).cached).toBe(true)
    expect((await verify('Ann@a.test')).cached).toBe(false)
  })
})

describe('an answer that is no longer fresh', () => {
  test('serves at once, and is asked again behind it', async () => {
    const { script, say } = fickle(YES)
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
    // What was asked behind it serves from now on: a definite 5xx takes the place of an older 2xx.
    expect(await verify('ann@a.test')).toMatchObject({
      verdict: { reason: 'rejected_email' },
      cached: true,
    })
    await engine.close()
  })

  test('is not replaced by a temporary failure', async () => {
    const { script, say } = fickle(YES)
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

  test('serves for seven days and no longer', async () => {
    const { script, say } = fickle(YES)
    const { clock, verify, reason } = createTestEngine({ script })
    await verify('ann@a.test')
    say(LATER)
    await clock.advance(7 * DAY - MINUTE)
    expect(await reason('ann@a.test')).toBe('accepted_email')
    await drainEventLoop()
    await clock.advance(2 * MINUTE)
    expect(await reason('ann@a.test')).toBe('unavailable_smtp')
  })

  test('serves too while the DNS is out of order', async () => {
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

  test('does not serve once the domain is gone: that is an answer', async () => {
    const { clock, verify, zone, reason } = createTestEngine()
    await verify('ann@a.test')
    await clock.advance(2 * DAY)
    zone.set('a.test', 'no-name')
    expect(await reason('ann@a.test')).toBe('invalid_domain')
  })

  test('stands in for a list when asking again brings nothing', async () => {
    const { script, say } = fickle(YES)
    const { clock, many, recipients } = createTestEngine({ script })
    await many(['ann@a.test'])
    await clock.advance(2 * DAY)
    say(LATER)
    const [result] = await many(['ann@a.test'])
    expect(result).toMatchObject({ verdict: { reason: 'accepted_email' }, cached: true })
    expect(ann(recipients())).toBe(2)
  })

  test('gives way to what a list hears anew', async () => {
    const { script, say } = fickle(YES)
    const { clock, many } = createTestEngine({ script })
    await many(['ann@a.test'])
    await clock.advance(2 * DAY)
    say(NO)
    const [result] = await many(['ann@a.test'])
    expect(result).toMatchObject({ verdict: { reason: 'rejected_email' }, cached: false })
  })
})

describe('asking anew on demand', () => {
  test('forceRefresh asks though the answer is fresh, and what it brings is remembered', async () => {
    const { script, say } = fickle(YES)
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

  test('forceRefresh tells a temporary failure as it is, and leaves the memory alone', async () => {
    const { script, say } = fickle(YES)
    const { reason } = createTestEngine({ script })
    await reason('ann@a.test')
    say(LATER)
    expect(await reason('ann@a.test', { forceRefresh: true })).toBe('unavailable_smtp')
    expect(await reason('ann@a.test')).toBe('accepted_email')
  })

  test('a dialogue cannot be remembered, so it is asked for anew', async () => {
    const { verify } = createTestEngine()
    await verify('ann@a.test', { include: ['dialogue'] })
    const second = await verify('ann@a.test', { include: ['dialogue'] })
    expect(second.cached).toBe(false)
    expect(second.evidence.dialogue).toContain('C: RCPT TO:<ann@a.test>')
    expect((await verify('ann@a.test', { include: [] })).evidence.dialogue).toBeNull()
  })
})

describe('recall', () => {
  test('gives the remembered answer while it is fresh, and asks nobody', async () => {
    const { engine, verify, clock, recipients } = createTestEngine({ script: fickle(YES).script })
    expect(await engine.getCached('ann@a.test')).toBeNull()
    expect(recipients()).toEqual([])
    const first = await verify('ann@a.test')
    const asked = recipients().length
    const steps: string[] = []
    const onStep = ({ kind }: { kind: string }) => void steps.push(kind)
    expect(await engine.getCached('ann@a.test', { onStep })).toMatchObject({
      ...{ email: 'ann@a.test', verdict: first.verdict, cached: true, checkedAt: first.checkedAt },
    })
    expect(steps).toEqual(['syntax', 'domain', 'cached'])
    await clock.advance(DAY + 1)
    expect(await engine.getCached('ann@a.test')).toBeNull()
    await drainEventLoop()
    expect(recipients()).toHaveLength(asked)
    await engine.close()
  })

  test('gives no answer to what is no address, nor once the DNS says that the domain is gone', async () => {
    const { engine, verify, zone, clock } = createTestEngine({ script: fickle(YES).script })
    await verify('ann@a.test')
    expect(await engine.getCached('nonsense')).toBeNull()
    zone.set('a.test', 'no-name')
    await clock.advance(HOUR)
    expect(await engine.getCached('ann@a.test')).toBeNull()
    await engine.close()
  })
})

test('a server’s opinion of one mailbox is none of another', async () => {
  const { many } = createTestEngine({ script: knows('ann') })
  const results = await many(['ann@a.test', 'bob@a.test'])
  expect(new Map(results.map(({ email, verdict }) => [email, verdict.reason]))).toEqual(
    new Map([
      ['ann@a.test', 'accepted_email'],
      ['bob@a.test', 'rejected_email'],
    ]),
  )
})
