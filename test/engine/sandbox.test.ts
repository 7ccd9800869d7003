import { describe, expect, test } from 'vitest'
import { type Reason, VERDICT_BY_REASON } from '../../src/engine/verdict/reason.ts'
import { toClass } from '../../src/engine/verdict/verdict.ts'
import { createEngine, presentResult, type Result } from '../../src/index.ts'
import { fakeClock } from '../support/clock.ts'
import { fc } from '../support/property.ts'

/** An engine whose dependencies throw on network access. */
function sandbox() {
  const wall = () => {
    throw new Error('a door was opened')
  }
  return createEngine({
    sandbox: true,
    clock: fakeClock(),
    resolver: { resolve: wall },
    dial: { connect: wall, secure: wall },
    random: { below: wall, token: wall },
    resultCache: { get: wall, set: wall },
  })
}

const engine = sandbox()
const of = (text: string) => engine.verify(text)

describe('the prefix of the local part decides', () => {
  test.each<[string, Reason, string]>([
    ['valid@example.com', 'accepted_email', 'deliverable'],
    ['valid-user@example.com', 'accepted_email', 'deliverable'],
    ['VALID@example.com', 'accepted_email', 'deliverable'],
    ['valid', 'invalid_email', 'undeliverable'],
    ['invalid@example.com', 'rejected_email', 'undeliverable'],
    ['invalid-valid@example.com', 'rejected_email', 'undeliverable'],
    ['risky-one@example.com', 'low_deliverability', 'risky'],
    ['catchall@example.com', 'catch_all', 'risky'],
    ['disposable-test@example.com', 'disposable_email', 'risky'],
    ['role@example.com', 'role_account', 'risky'],
    ['timeout@example.com', 'timeout', 'unknown'],
    ['greylisted@example.com', 'greylisted', 'unknown'],
    ['mailbox-full@example.com', 'mailbox_full', 'risky'],
    ['no-mx@example.com', 'no_mx_record', 'undeliverable'],
    ['typo@example.com', 'possible_typo', 'risky'],
    ['error-timeout@example.com', 'timeout', 'unknown'],
    ['error-ratelimit@example.com', 'unavailable_smtp', 'unknown'],
    ['error-auth@example.com', 'probe_blocked', 'unknown'],
    ['error-server@example.com', 'unexpected_error', 'unknown'],
    ['not an address', 'invalid_email', 'undeliverable'],
  ])('%s: %s', async (text, reason, klass) => {
    const { verdict, evidence } = await of(text)
    const { details, ...opinion } = VERDICT_BY_REASON[reason]
    expect(verdict).toEqual({
      ...opinion,
      reason,
      details: { ...details, smtpValid: details.smtpValid ?? true },
    })
    expect(toClass(verdict)).toBe(klass)
    expect(evidence.skipped).toBe('sandbox')
  })

  test('not the domain, nor the middle of the name', async () => {
    const reasons = await Promise.all(
      Array.from({ length: 40 }, (_, i) => of(`x${i}-catchall@catchall.com`)),
    )
    expect(new Set(reasons.map(({ verdict }) => verdict.reason)).size).toBeGreaterThan(3)
  })

  test.each<[string, keyof ReturnType<typeof flagsOf>]>([
    ['disposable@example.com', 'is_disposable'],
    ['role@example.com', 'is_role'],
    ['catchall@example.com', 'is_catch_all'],
  ])('%s has its flag and no other', async (text, flag) => {
    const flags = flagsOf(await of(text))
    expect(Object.keys(flags).filter(name => flags[name as keyof typeof flags])).toEqual([flag])
  })
})

describe('any other address', () => {
  const address = fc
    .tuple(fc.stringMatching(/^[a-z][a-z0-9]{0,15}$/), fc.domain())
    .map(([local, domain]) => `${local}@${domain}`)

  test('gets the same result every time, from every engine, in any case', async () => {
    const other = sandbox()
    await fc.assert(
      fc.asyncProperty(address, async text => {
        const [first, second] = [await of(text), await other.verify(text.toUpperCase())]
        const shown = (result: Result) => ({
          ...presentResult(result, ['flags']),
          email: '',
          canonical: '',
        })
        expect(shown(second)).toEqual(shown(first))
      }),
    )
  })

  test('gets a realistic one: mostly good, with all four classes', async () => {
    const results = await Promise.all(
      Array.from({ length: 1_000 }, (_, i) => of(`person${i}@example.com`)),
    )
    const counts = Map.groupBy(results, ({ verdict }) => toClass(verdict))
    const shares = ['deliverable', 'risky', 'undeliverable', 'unknown'].map(
      klass => counts.get(klass as 'risky')?.length ?? 0,
    )
    expect(shares[0]).toBeGreaterThan(300)
    for (const share of shares) expect(share).toBeGreaterThan(20)
  })
})

describe('the sandbox', () => {
  test('serves streams, with one result per input', async () => {
    const emails: string[] = []
    const texts = ['valid@a.test', 'invalid@a.test', 'valid@a.test', 'nonsense']
    for await (const { email } of engine.verifyMany(texts)) emails.push(email)
    expect(emails.toSorted()).toEqual(texts.toSorted())
  })

  test('serves the two steps of a job, with nothing left for the second', async () => {
    const prepared = await engine.route(['valid@a.test', 'nonsense'])
    expect(prepared.map(one => 'result' in one)).toEqual([true, true])
  })

  test('reports a plausible duration, the same each time', async () => {
    const { tookMs } = await of('valid@example.com')
    expect(tookMs).toBeGreaterThanOrEqual(0)
    expect(tookMs).toBeLessThan(50)
    expect((await sandbox().verify('valid@example.com')).tookMs).toBe(tookMs)
  })
})

function flagsOf(result: Result) {
  const { is_disposable, is_role, is_catch_all, is_free, is_relay } =
    presentResult(result, ['flags']).flags ?? fail()
  return { is_disposable, is_role, is_catch_all, is_free, is_relay }
}

function fail(): never {
  throw new Error('no flags')
}
