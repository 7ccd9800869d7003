import { describe, expect, test } from 'vitest'
import { sandboxResult } from '../../../src/engine/sandbox.ts'
import { type Reason, VERDICT_BY_REASON } from '../../../src/engine/verdict/reason.ts'
import { decodeResult, encodeResult } from '../../../src/engine/verdict/stored-result.ts'
import type { Evidence, Result } from '../../../src/engine/verdict/verdict.ts'
import { fakeClock } from '../../support/clock.ts'
import { resultOf } from '../../support/result.ts'

const REPLY = { code: 550, enhanced: '5.1.1', text: 'no such user' }

const ROUTE = {
  kind: 'mx',
  hosts: [
    { preference: 0, host: 'mx1.good.test' },
    { preference: 10, host: 'mx2.good.test' },
  ],
} as const

/** Evidence that differs from what is left out, each on its own. */
const FACTS: readonly Partial<Evidence>[] = [
  { suggestion: 'ann@gmail.com', typo: 'likely' },
  { disposableHost: true, tls: true },
  { route: { kind: 'mx', hosts: [{ preference: 10, host: 'mx.good.test' }] } },
  { route: ROUTE, host: 'mx1.good.test', ip: '192.0.2.1' },
  { route: ROUTE, host: 'mx2.good.test', ip: '192.0.2.1' },
  { route: ROUTE, host: 'mx1.good.test', ip: null },
  { route: ROUTE, host: null, ip: '192.0.2.1' },
  { route: { kind: 'mx', hosts: [] }, host: null, ip: '192.0.2.1' },
  { route: { kind: 'implicit', host: 'good.test' }, host: 'good.test', ip: '192.0.2.1' },
  { route: { kind: 'no-domain' } },
  { route: { kind: 'unknown', fault: 'server', detail: 'SERVFAIL' } },
  { operator: { name: 'google', title: 'Google', truth: 'tells' } },
  { operator: { name: 'good.test', title: 'good.test', truth: 'parked' } },
  { operator: { name: 'good.test', title: 'good.test', truth: 'tells' } },
  { answer: { kind: 'rejected', why: 'no-mailbox', stage: 'rcpt', reply: REPLY } },
  { catchAll: true },
  { catchAll: false },
  { egress: 'default', host: 'mx.good.test', ip: '192.0.2.1' },
  { timings: { dnsMs: 0, connectMs: null } },
  { timings: { dnsMs: null, connectMs: 12 } },
  { timings: { dnsMs: 3, connectMs: 0 } },
  { skipped: 'literal', failure: 'broken', dialogue: ['C: QUIT'] },
  { signals: [{ name: 'parking', shift: 5, detail: 'The domain is for sale.' }] },
]

describe('a stored result is read as it was', () => {
  test.each(Object.keys(VERDICT_BY_REASON) as Reason[])('for the reason %s', reason => {
    expectKept(resultOf(reason))
  })

  test.each(FACTS)('with the evidence %o', facts => {
    const result = resultOf('accepted_email')
    expectKept({ ...result, evidence: { ...result.evidence, ...facts } })
  })

  test.each([
    'ann@a.example',
    'Ann.B+c@Example.COM',
    'ann@[192.0.2.1]',
    'ann@bücher.example',
    '"a@b c"@a.example',
    'm.a.x+news@googlemail.com',
    'ann＠a.example',
    'ann at example.com',
    'ann@localhost',
    'ann@list.example',
    'n/a',
    '',
    'role@a.example',
    'disposable@a.example',
    'catchall@a.example',
  ])('for the address "%s"', text => {
    expectKept(sandboxResult(fakeClock(), text))
  })

  test('with a provider that is not the domain, and from the cache', () => {
    expectKept(resultOf('accepted_email', { provider: null, cached: true }))
    expectKept(resultOf('accepted_email', { provider: 'other.test' }))
    // A duplicate has another spelling of the domain.
    expectKept(resultOf('accepted_email', { email: 'ann@GOOD.test' }))
  })

  test('if an earlier version stored whole routes, operators, hosts and timings', () => {
    const { evidence, ...result } = resultOf('rejected_email')
    const full = {
      route: ROUTE,
      operator: { name: 'good.test', title: 'good.test', truth: 'tells' },
      host: 'mx1.good.test',
      ip: '192.0.2.1',
      timings: { dnsMs: 3, connectMs: 4 },
    } as const
    const complete = { ...result, evidence: { ...evidence, ...full } }
    const stored = JSON.parse(encodeResult(complete))
    const earlier = { ...stored, evidence: { ...stored.evidence, ...full } }
    expect(decodeResult(JSON.stringify(earlier))).toEqual(complete)
  })

  test('if an earlier version stored all of its fields', () => {
    const result = resultOf('catch_all')
    expect(decodeResult(JSON.stringify(result))).toEqual(result)
  })
})

test('an erased result is read as null', () => {
  expect(decodeResult('null')).toBe(null)
})

test('a stored result has what SQL reads at the same place', () => {
  const { evidence, ...result } = resultOf('rejected_email', { checkedAt: 5 })
  const operator = { name: 'google', title: 'Google', truth: 'tells' } as const
  const stored = encodeResult({ ...result, evidence: { ...evidence, operator } })
  expect(JSON.parse(stored)).toMatchObject({
    verdict: { reason: 'rejected_email' },
    evidence: { operator: { name: 'google' } },
    checkedAt: 5,
  })
})

function expectKept(result: Result) {
  expect(decodeResult(encodeResult(result))).toEqual(result)
}
