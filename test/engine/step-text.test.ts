import { describe, expect, test } from 'vitest'
import type { Domain } from '../../src/engine/address/domain.ts'
import type { MxOperator } from '../../src/engine/dns/operators.ts'
import type { Route } from '../../src/engine/dns/route.ts'
import type { ServerCall } from '../../src/engine/probe/probe-listener.ts'
import { noResponse } from '../../src/engine/probe/probe-outcome.ts'
import { cachedText, callText, routeText } from '../../src/engine/step-observer.ts'
import { DAY, HOUR, MINUTE, SECOND } from '../../src/platform/clock.ts'

const domain: Domain = { ascii: 'a.test', unicode: 'a.test', kind: 'name' }
const google: MxOperator = { name: 'google', title: 'Google', truth: 'tells' }
const own: MxOperator = { name: 'a.test', title: 'a.test', truth: 'tells' }
const hosts = ['mx1.a.test', 'mx2.a.test'].map((host, at) => ({ preference: at, host }))

test.each<[Route, MxOperator | null, string]>([
  [{ kind: 'mx', hosts }, google, 'a.test has 2 mail servers; Google runs them.'],
  [
    { kind: 'mx', hosts: hosts.slice(0, 1) },
    google,
    'a.test has one mail server, mx1.a.test; Google runs it.',
  ],
  [{ kind: 'mx', hosts }, own, 'a.test has 2 mail servers.'],
  [
    { kind: 'implicit', host: 'a.test' },
    own,
    'a.test has no MX record, so mail goes to a.test itself.',
  ],
  [{ kind: 'no-domain' }, null, 'a.test accepts no mail: the domain does not exist.'],
  [
    { kind: 'no-mail' },
    null,
    'a.test accepts no mail: the domain has neither MX nor address records.',
  ],
  [{ kind: 'null-mx' }, null, 'a.test accepts no mail: the domain publishes a null MX (RFC 7505).'],
  [
    { kind: 'unknown', fault: 'timeout' },
    null,
    'Nothing is known about a.test: the DNS servers did not answer.',
  ],
  [
    { kind: 'unknown', fault: 'server' },
    null,
    'Nothing is known about a.test: the DNS servers failed.',
  ],
])('a route is a sentence: %j', (route, operator, text) => {
  expect(routeText(domain, route, operator)).toBe(text)
})

describe('a connection is a sentence', () => {
  const call = { host: 'mx.a.test', ip: '192.0.2.1', port: 25, dialled: true, answer: null }
  const reply = { code: 554, enhanced: '5.7.1', text: 'listed by Spamhaus' }

  test.each<[Partial<ServerCall>, string]>([
    [{}, 'mx.a.test answers on port 25, at 192.0.2.1.'],
    [
      { answer: noResponse('connect', 'connect', 'no answer within 10 s') },
      'mx.a.test does not answer on port 25: no answer within 10 s.',
    ],
    [{ answer: noResponse('no-address', 'connect', '') }, 'mx.a.test has no IP address.'],
    [
      { answer: noResponse('dns', 'connect', '') },
      'The address of mx.a.test could not be looked up.',
    ],
    [
      { ip: '10.0.0.1', answer: noResponse('not-public', 'connect', '') },
      'mx.a.test is at 10.0.0.1, which is not on the public internet, so it was not contacted.',
    ],
    [
      { answer: noResponse('garbage', 'greeting', '') },
      'The SMTP session with mx.a.test failed. The mail server sent an invalid reply. The mailbox was not checked.',
    ],
    [
      { answer: { kind: 'blocked', why: 'blocklist', stage: 'greeting', reply } },
      'mx.a.test refused the session. The server blocked the IP address of ev, which is on a blocklist of Spamhaus or has a poor reputation. Request its removal or verify from another IP address.',
    ],
    [
      { dialled: false, answer: noResponse('connect', 'connect', 'not asked') },
      'mx.a.test was not contacted. No mail server could be reached. Try again later, and check that outbound port 25 is open.',
    ],
    [
      { host: null, ip: null, dialled: false, answer: noResponse('timeout', 'connect', '') },
      'The mail server was not contacted. The mail server did not answer in time. Try again later.',
    ],
  ])('%j', (more, text) => {
    expect(callText({ ...call, ...more })).toBe(text)
  })
})

test.each([
  [-HOUR, 'just now'],
  [59 * SECOND, 'just now'],
  [MINUTE, '1 minute ago'],
  [59 * MINUTE, '59 minutes ago'],
  [HOUR, '1 hour ago'],
  [47 * HOUR, '47 hours ago'],
  [48 * HOUR, '2 days ago'],
  [6 * DAY, '6 days ago'],
])('a cached answer of %i ms is shown with its age', (ageMs, ago) => {
  expect(cachedText(ageMs)).toBe(`The mail server was asked ${ago}; the cached answer is used.`)
})
