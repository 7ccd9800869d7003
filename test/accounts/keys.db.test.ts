import { describe, expect, test } from 'vitest'
import { changeAccount } from '../../src/accounts/accounts.ts'
import { hashSecret } from '../../src/accounts/key.ts'
import { PUBLISHABLE_SCOPES } from '../../src/accounts/key-rights.ts'
import { findKeyByHash, listKeys } from '../../src/accounts/key-store.ts'
import {
  createKey,
  getKey,
  PUBLISHABLE_KEY_RATE,
  revokeKey,
  rotateKey,
  updateKey,
} from '../../src/accounts/keys.ts'
import { KEYS_MAX, mergePlans } from '../../src/accounts/plan.ts'
import { COMMAND_LINE } from '../../src/audit.ts'
import { addAccount, addKey } from '../support/account-rows.ts'
import { fakeClock } from '../support/clock.ts'
import { tempDatabase } from '../support/database.ts'
import { countedRandom } from '../support/random.ts'

const OURS = { accountId: 'acc_a', actor: null, name: 'CI', scopes: ['*'] as const }
const OF_ADMIN = { keyId: 'key_a', accountId: null, actor: null }
/** Has fewer rights than a key with all scopes. */
const SMALL = {
  scopes: ['keys:write', 'jobs:read'] as const,
  allowedIps: ['192.0.2.0/24'],
  allowedDomains: ['example.com'],
  rateLimitPerMinute: 60,
  expiresAt: null,
}

async function createServices() {
  const clock = fakeClock()
  const database = await tempDatabase({ clock })
  await addAccount(database)
  return { database, clock, random: countedRandom(), origin: COMMAND_LINE, plans: mergePlans({}) }
}

const refused = (code: string, facts: object) => expect.objectContaining({ code, facts })

describe('creating a key', () => {
  test('returns its secret, by which it is found', async () => {
    const services = await createServices()
    const { key, text } = await createKey(services, OURS)
    expect(await findKeyByHash(services.database, hashSecret(text))).toMatchObject({ key })
    expect(key).toMatchObject({ allowedIps: [], rateLimitPerMinute: null, expiresAt: null })
  })

  test('inherits the restrictions of the actor unless they are set', async () => {
    const services = await createServices()
    const asked = { ...OURS, actor: SMALL, scopes: ['jobs:read'] as const }
    const { key } = await createKey(services, asked)
    expect(key).toMatchObject({ ...SMALL, scopes: ['jobs:read'] })
    await expect(createKey(services, { ...asked, allowedIps: [], scopes: ['*'] })).rejects.toThrow(
      refused('rights_exceeded', { rights: ['scopes', 'allowedIps'], scopes: ['*'] }),
    )
  })

  test.each(['', ' ', 'x'.repeat(101), 'two\nlines', 'red\u001b[31m'])(
    'rejects the name %j',
    async name => {
      const services = await createServices()
      const facts = { name, lengthMax: 100 }
      await expect(createKey(services, { ...OURS, name })).rejects.toThrow(
        refused('name_invalid', facts),
      )
      await addKey(services.database)
      await expect(updateKey(services, { ...OF_ADMIN, patch: { name } })).rejects.toThrow(
        refused('name_invalid', facts),
      )
    },
  )

  test('rejects an expiry in the past', async () => {
    const services = await createServices()
    const expiresAt = services.clock.now()
    const past = refused('expiry_past', { expiresAt })
    await expect(createKey(services, { ...OURS, expiresAt })).rejects.toThrow(past)
    await addKey(services.database)
    await expect(updateKey(services, { ...OF_ADMIN, patch: { expiresAt } })).rejects.toThrow(past)
  })

  test.each([
    ['free', 10],
    ['enterprise', KEYS_MAX],
  ])('rejects keys beyond the limit of the plan %s, also under concurrency', async (plan, max) => {
    const services = await createServices()
    const accountId = 'acc_a'
    await changeAccount(services, { accountId, plan, actor: null })
    for (let n = 1; n < max; n++) await addKey(services.database, { id: `key_${n}` })
    const asked = Array.from({ length: 3 }, () => createKey(services, OURS))
    const results = await Promise.allSettled(asked)
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    await expect(createKey(services, OURS)).rejects.toThrow(
      refused('key_limit_reached', { count: max, max, plan }),
    )
    await revokeKey(services, { ...OF_ADMIN, keyId: 'key_1', isForced: false })
    await createKey(services, OURS)
  })
})

test('a key of another account is not found and not changed', async () => {
  const services = await createServices()
  const { key } = await addKey(services.database)
  const target = { ...OF_ADMIN, accountId: 'acc_b' }
  const tried = [
    () => getKey(services, target),
    () => updateKey(services, { ...target, patch: { name: 'mine' } }),
    () => rotateKey(services, { ...target, graceMs: 0 }),
    () => revokeKey(services, { ...target, isForced: true }),
  ]
  for (const one of tried) {
    await expect(one()).rejects.toThrow(refused('key_not_found', { id: 'key_a' }))
  }
  expect(await listKeys(services.database, 'acc_a')).toEqual([key])
})

test('a key cannot give a key that it manages more rights than its own', async () => {
  const services = await createServices()
  await addKey(services.database, { ...SMALL, id: 'key_a', scopes: ['jobs:read'] })
  const change = (patch: Parameters<typeof updateKey>[1]['patch']) =>
    updateKey(services, { ...OF_ADMIN, actor: SMALL, patch })
  await expect(change({ scopes: ['jobs:read', 'webhooks:write'] })).rejects.toThrow(
    refused('rights_exceeded', { rights: ['scopes'], scopes: ['webhooks:write'] }),
  )
  await expect(change({ allowedIps: [] })).rejects.toThrow(
    refused('rights_exceeded', { rights: ['allowedIps'], scopes: [] }),
  )
  expect(await change({ scopes: ['keys:write'] })).toMatchObject({ scopes: ['keys:write'] })
})

test('a key cannot manage a key with more rights than its own', async () => {
  const services = await createServices()
  const { key } = await addKey(services.database)
  const target = { ...OF_ADMIN, accountId: 'acc_a', actor: SMALL }
  const tried = [
    () => updateKey(services, { ...target, patch: { name: 'mine' } }),
    () => rotateKey(services, { ...target, graceMs: 0 }),
    () => revokeKey(services, { ...target, isForced: true }),
  ]
  for (const one of tried) {
    await expect(one()).rejects.toMatchObject({ code: 'rights_exceeded' })
  }
  expect(await listKeys(services.database, 'acc_a')).toEqual([key])
})

test('the admin rotates a key of any account; the previous secret works until the grace period ends', async () => {
  const services = await createServices()
  const { secret } = await addKey(services.database)
  const end = services.clock.now() + 5_000
  const { text, previousExpiresAt } = await rotateKey(services, { ...OF_ADMIN, graceMs: 5_000 })
  expect(previousExpiresAt).toBe(end)
  const graceEnd = async (given: string) =>
    (await findKeyByHash(services.database, hashSecret(given)))?.secretExpiresAt
  expect([await graceEnd(secret.text), await graceEnd(text)]).toEqual([end, null])
})

test('the last key of an account that is in use is revoked only if forced', async () => {
  const services = await createServices()
  const { key } = await addKey(services.database)
  await expect(revokeKey(services, { ...OF_ADMIN, isForced: false })).rejects.toThrow(
    refused('last_key', { id: 'key_a', accountName: 'Name of acc_a' }),
  )
  expect(await revokeKey(services, { ...OF_ADMIN, isForced: true })).toEqual(key)
  await expect(revokeKey(services, { ...OF_ADMIN, isForced: true })).rejects.toMatchObject({
    code: 'key_not_found',
  })
})

describe('a publishable key', () => {
  const FORM = { ...OURS, scopes: PUBLISHABLE_SCOPES, allowedDomains: ['example.com'] }

  test('has its own prefix, also after a rotation, and a rate limit unless one is set', async () => {
    const services = await createServices()
    const { key, text } = await createKey(services, FORM)
    expect(text).toMatch(/^ev_pub_/)
    expect(key).toMatchObject({ scopes: ['verify:form'], rateLimitPerMinute: PUBLISHABLE_KEY_RATE })
    const rotated = await rotateKey(services, { ...OF_ADMIN, keyId: key.id, graceMs: 0 })
    expect([rotated.text, rotated.key.prefix]).toEqual([
      expect.stringMatching(/^ev_pub_/),
      expect.stringMatching(/^ev_pub_/),
    ])
    const unlimited = await createKey(services, { ...FORM, rateLimitPerMinute: null })
    expect(unlimited.key.rateLimitPerMinute).toBeNull()
  })

  test('needs allowed domains, which it can inherit', async () => {
    const services = await createServices()
    const needed = refused('domains_required', {})
    await expect(createKey(services, { ...FORM, allowedDomains: [] })).rejects.toThrow(needed)
    const { key } = await createKey(services, FORM)
    const patch = { ...OF_ADMIN, keyId: key.id, patch: { allowedDomains: [] } }
    await expect(updateKey(services, patch)).rejects.toThrow(needed)
    const actor = { ...SMALL, scopes: ['keys:write', 'verify:single'] as const }
    const { allowedDomains: _, ...asked } = FORM
    const inherited = await createKey(services, { ...asked, actor })
    expect(inherited.key).toMatchObject({ allowedDomains: ['example.com'], rateLimitPerMinute: 60 })
  })

  test('is created only by a key that can verify single addresses', async () => {
    const services = await createServices()
    const rights = { rights: ['scopes'], scopes: ['verify:form'] }
    const asked = { ...FORM, allowedIps: ['192.0.2.7'], rateLimitPerMinute: 60 }
    await expect(createKey(services, { ...asked, actor: SMALL })).rejects.toThrow(
      refused('rights_exceeded', rights),
    )
  })

  test('keeps its scopes; its other fields can be changed', async () => {
    const services = await createServices()
    const target = { ...OF_ADMIN, keyId: (await createKey(services, FORM)).key.id }
    await expect(updateKey(services, { ...target, patch: { scopes: ['*'] } })).rejects.toThrow(
      refused('scopes_fixed', {}),
    )
    const changed = await updateKey(services, { ...target, patch: { allowedDomains: ['b.test'] } })
    expect(changed).toMatchObject({ scopes: ['verify:form'], allowedDomains: ['b.test'] })
  })

  test('does not count as the last key of an account', async () => {
    const services = await createServices()
    const form = await createKey(services, FORM)
    const secret = await createKey(services, OURS)
    const revoke = (keyId: string) =>
      revokeKey(services, { ...OF_ADMIN, keyId, isForced: false }).then(({ id }) => id)
    await expect(revoke(secret.key.id)).rejects.toThrow(
      expect.objectContaining({ code: 'last_key' }),
    )
    expect(await revoke(form.key.id)).toBe(form.key.id)
  })
})
