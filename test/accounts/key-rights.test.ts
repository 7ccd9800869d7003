import { describe, expect, test } from 'vitest'
import {
  domainAllowed,
  exceedingRights,
  ipAllowed,
  isForTestKeys,
  isPublishable,
  isSecretScope,
  type KeyRights,
  permits,
  SCOPES,
  type Scope,
} from '../../src/accounts/key-rights.ts'
import { fc, runs } from '../support/property.ts'

const ALL: KeyRights = {
  scopes: ['*'],
  allowedIps: [],
  allowedDomains: [],
  rateLimitPerMinute: null,
  expiresAt: null,
}

describe('a scope', () => {
  test.each<[Scope[], Scope, boolean]>([
    [['jobs:read'], 'jobs:read', true],
    [['jobs:read'], 'jobs:write', false],
    [['jobs:write'], 'jobs:read', false],
    [[], 'jobs:read', false],
    [['jobs:read', 'verify:bulk'], 'verify:bulk', true],
    [['*'], 'accounts:write', true],
    [['*'], '*', true],
    [['jobs:read'], '*', false],
    // A secret key may do what the publishable key of a form does, and not the other way round.
    [['verify:single'], 'verify:form', true],
    [['verify:single'], 'jobs:read', false],
    [['verify:bulk'], 'verify:form', false],
    [['verify:form'], 'verify:form', true],
    [['verify:form'], 'verify:single', false],
  ])('%j permits %s: %s', (held, needed, permitted) => {
    expect(permits(held, needed)).toBe(permitted)
  })

  test('is one of secret keys, or that of publishable keys', () => {
    expect(SCOPES.every(isSecretScope)).toBe(true)
    for (const text of ['verify:form', 'jobs', '']) expect(isSecretScope(text)).toBe(false)
    expect(isPublishable({ scopes: ['verify:form'] })).toBe(true)
    expect(isPublishable({ scopes: [...SCOPES] })).toBe(false)
  })

  test('of operations beyond the sandbox is not for test keys', () => {
    expect(SCOPES.filter(scope => !isForTestKeys(scope))).toEqual([
      'feedback:write',
      'account:write',
      'audit:read',
      'people:write',
      'accounts:write',
    ])
  })
})

describe('a key exceeds a limit', () => {
  test.each<[string, Partial<KeyRights>, Partial<KeyRights>, string[]]>([
    ['never if they are equal', {}, {}, []],
    ['in no restriction that it adds', { allowedIps: ['192.0.2.1'], expiresAt: 1 }, {}, []],
    ['in scopes', {}, { scopes: ['jobs:read'] }, ['scopes']],
    ['in addresses, if it has no list', {}, { allowedIps: ['192.0.2.1'] }, ['allowedIps']],
    ['in domains', {}, { allowedDomains: ['a.example'] }, ['allowedDomains']],
    [
      'in its rate limit',
      { rateLimitPerMinute: 61 },
      { rateLimitPerMinute: 60 },
      ['rateLimitPerMinute'],
    ],
    ['in its expiry', { expiresAt: 2 }, { expiresAt: 1 }, ['expiresAt']],
    [
      'in all rights',
      {},
      {
        scopes: ['jobs:read'],
        allowedIps: ['::1'],
        allowedDomains: ['a.example'],
        rateLimitPerMinute: 1,
        expiresAt: 1,
      },
      ['scopes', 'allowedIps', 'allowedDomains', 'rateLimitPerMinute', 'expiresAt'],
    ],
  ])('%s', (_, key, limit, beyond) => {
    expect(exceedingRights({ ...ALL, ...key }, { ...ALL, ...limit })).toEqual(beyond)
  })

  test.each([
    ['192.0.2.0/24', '192.0.2.0/25', true],
    ['192.0.2.0/24', '192.0.2.9/24', true],
    ['192.0.2.0/24', '192.0.2.0/23', false],
    ['192.0.2.0/24', '198.51.100.1', false],
    ['0.0.0.0/0', '::/0', false],
    ['2001:db8::/32', '2001:db8:1::/48', true],
    ['2001:db8::1', '2001:db8::1', true],
  ])('a key limited to %s may manage one limited to %s: %s', (outer, inner, may) => {
    const beyond = exceedingRights({ ...ALL, allowedIps: [inner] }, { ...ALL, allowedIps: [outer] })
    expect(beyond).toEqual(may ? [] : ['allowedIps'])
  })

  test('exactly if some request is allowed to it and not to the limit', () => {
    const range = fc.constantFrom('10.0.0.0/8', '10.1.0.0/16', '10.1.2.3', '::/0', '2001:db8::/32')
    const domain = fc.constantFrom('example', 'a.example', 'b.a.example', 'ba.example')
    const rights: fc.Arbitrary<KeyRights> = fc.record({
      scopes: fc.uniqueArray(fc.constantFrom(...SCOPES), { minLength: 1, maxLength: 4 }),
      allowedIps: fc.uniqueArray(range, { maxLength: 3 }),
      allowedDomains: fc.uniqueArray(domain, { maxLength: 3 }),
      rateLimitPerMinute: fc.constantFrom(null, 1, 2, 3),
      expiresAt: fc.constantFrom(null, 1, 2, 3),
      isTest: fc.boolean(),
    })
    // One request for each possible decision about the values above.
    const ips = ['192.0.2.1', '10.9.9.9', '10.1.9.9', '10.1.2.3', '2001:db8::1', 'fe80::1']
    const sites = ['x.test', 'example', 'a.example', 'b.a.example', 'ba.example', 'c.b.a.example']
    const opened = (key: KeyRights) => ({
      scopes: SCOPES.filter(scope => permits(key.scopes, scope)),
      allowedIps: ips.filter(ip => ipAllowed(key, ip)),
      allowedDomains: [null, ...sites.map(site => `https://${site}`)].filter(origin =>
        domainAllowed(key, origin),
      ),
      rateLimitPerMinute: [1, 2, 3, 4].filter(rate => rate <= (key.rateLimitPerMinute ?? 4)),
      expiresAt: [0, 1, 2, 3].filter(now => now < (key.expiresAt ?? 4)),
      isTest: key.isTest ? ['sandbox'] : ['sandbox', 'live'],
    })
    fc.assert(
      fc.property(rights, rights, (key, limit) => {
        const [own, allowed] = [opened(key), opened(limit)]
        const beyond = (Object.keys(own) as (keyof KeyRights)[]).filter(right =>
          (own[right] as unknown[]).some(one => !(allowed[right] as unknown[]).includes(one)),
        )
        expect(exceedingRights(key, limit)).toEqual(beyond)
      }),
      { numRuns: runs(5_000) },
    )
  })
})
