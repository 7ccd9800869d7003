import { expect, test } from 'vitest'
import { HOUR, MINUTE } from '../../src/platform/clock.ts'
import { createTestEngine } from '../support/engine.ts'
import { isRandomRecipient, toRecipients, users } from '../support/recipients.ts'
import type { ZoneEntry } from '../support/zone.ts'

// Tenants of one operator, each with its own exchanger name, as at Microsoft 365.

const POLICY = '550 5.7.1 Denied by a policy of this organization'
const UNKNOWN = '550 5.1.1 No such user'

const TENANTS = Array.from({ length: 40 }, (_, n) => `tenant${n}.test`)
const [REFUSING = '', ...OTHERS] = TENANTS

function tenants(refuses: (to: string, atMs: number) => boolean, reply = POLICY) {
  const zone = TENANTS.flatMap((name, n): [string, ZoneEntry][] => [
    [name, { MX: [[10, `t${n}.mail.protection.outlook.com`]] }],
    [`t${n}.mail.protection.outlook.com`, { A: ['192.0.2.9'] }],
  ])
  const home = createTestEngine({
    zone: Object.fromEntries(zone),
    // A successful connection elsewhere does not revoke a block.
    engine: { sessionsPerOperator: 1 },
    script: toRecipients(to => {
      if (isRandomRecipient(to)) return UNKNOWN
      return refuses(to, home.clock.monotonicNow()) ? reply : undefined
    }),
  })
  return home
}

const isOf = (domain: string) => (to: string) => to.endsWith(`@${domain}`)
const count = (results: readonly { verdict: { reason: string } }[], reason: string) =>
  results.filter(({ verdict }) => verdict.reason === reason).length

test('a block by one tenant affects only that tenant: all addresses of the 39 others are right', async () => {
  const home = tenants(isOf(REFUSING))
  const texts = [...users(6, REFUSING), ...OTHERS.flatMap(name => users(2, name))]
  const results = await home.many(texts, { wait: false })
  const [ofRefusing, ofOthers] = [
    results.filter(({ email }) => email.endsWith(`@${REFUSING}`)),
    results.filter(({ email }) => !email.endsWith(`@${REFUSING}`)),
  ]
  expect(count(ofRefusing, 'probe_blocked')).toBe(6)
  expect(count(ofOthers, 'accepted_email')).toBe(78)
  expect(home.engine.rateController('microsoft-365').isRefused).toBe(false)
  // Three consecutive blocks are enough.
  expect(home.recipients().filter(isOf(REFUSING))).toHaveLength(3)
})

test('skipped addresses are probed before the list ends', async () => {
  const home = tenants((to, atMs) => isOf(REFUSING)(to) && atMs < 20 * MINUTE)
  const results = await home.many([...users(10, REFUSING), ...users(1, OTHERS[0])])
  expect(count(results, 'probe_blocked')).toBe(3)
  expect(count(results, 'accepted_email')).toBe(8)
  expect(home.clock.monotonicNow()).toBeLessThan(HOUR)
})

test('blocks of the sender by several tenants pause the operator, and the rest is probed later', async () => {
  const listed = '550 5.7.1 Service unavailable, client host blocked using bl.example'
  const home = tenants((_, atMs) => atMs < 20 * MINUTE, listed)
  const results = await home.many(TENANTS.flatMap(name => users(1, name)))
  expect(count(results, 'probe_blocked')).toBe(3)
  expect(count(results, 'accepted_email')).toBe(37)
})

test('a list that does not wait ends at once with the reply of the tenant', async () => {
  const home = tenants(isOf(REFUSING))
  const results = await home.many(users(10, REFUSING), { wait: false })
  expect(count(results, 'probe_blocked')).toBe(10)
  expect(home.clock.monotonicNow()).toBeLessThan(MINUTE)
  expect(results.map(({ evidence }) => evidence.answer?.kind)).toEqual(Array(10).fill('blocked'))
})

test('addresses that wait for a block to expire leave capacity for the rest of a long list', async () => {
  const home = tenants(isOf(REFUSING))
  const texts = [...users(50, REFUSING), ...OTHERS.flatMap(name => users(1, name))]
  const startedAt = home.clock.monotonicNow()
  let othersAt = 0
  const run = (async () => {
    for await (const { email } of home.engine.verifyMany(texts, { windowMax: 20 })) {
      if (!email.endsWith(`@${REFUSING}`)) othersAt = home.clock.monotonicNow() - startedAt
    }
  })()
  await home.settled(run)
  expect(othersAt).toBeLessThan(10 * MINUTE)
})
