import { describe, expect, test } from 'vitest'
import { DAY, MINUTE } from '../../../src/base/clock.ts'
import { createTestDashboard } from '../../support/dashboard.ts'

const EVIL = '<img src=x onerror=alert(1)>'
const MARKED = '&lt;img src=x onerror=alert(1)&gt;'

/** The text of a key that a page shows. */
const shownKey = (page: string) => /data-copy>(ev_live_\w+)</.exec(page)?.[1] ?? ''

const numberOf = (page: string) => /name="_once" value="([^"]+)"/.exec(page)?.[1] ?? ''

/** A house with a key beside the one of the session. */
async function houseWithKey(
  o: Parameters<Awaited<ReturnType<typeof createTestDashboard>>['addKey']>[0],
) {
  const house = await createTestDashboard()
  const text = await house.addKey(o)
  return { house, text }
}

describe('the list of keys', () => {
  test('tells of each what it may, from where, how often, and when it was made, used and ends', async () => {
    const { house } = await houseWithKey({
      ...{ name: 'CI', scopes: ['verify:single', 'jobs:read'], allowedIps: ['203.0.113.0/24'] },
      ...{ allowedDomains: ['app.example'], rateLimitPerMinute: 600 },
    })
    const { text } = await house.get('/keys')
    const row = /<a href="\/keys\/key_2">.*?<\/tr>/s.exec(text)?.[0] ?? ''
    for (const part of [
      ...['CI', 'verify:single, jobs:read', '203.0.113.0/24, app.example', '600', 'never'],
    ]) {
      expect(row).toContain(part)
    }
    expect(row).toMatch(/<code>ev_live_\w{4}…\w{4}<\/code>/)
    expect(text).toMatch(/key_1">test<\/a>\s*<small>this session’s<\/small>/)
  })

  test('of one key says what others would be for', async () => {
    const { text } = await (await createTestDashboard()).get('/keys')
    expect(text).toContain('A key for each thing that asks')
  })

  test('says which have expired', async () => {
    const house = await createTestDashboard()
    await house.addKey({ name: 'old', expiresAt: house.clock.now() - MINUTE })
    expect((await house.get('/keys')).text).toContain('>expired<')
  })

  test('is closed to a key that lacks the scope, in a sentence', async () => {
    const { house, text } = await houseWithKey({ name: 'narrow', scopes: ['dashboard'] })
    await house.signIn(text)
    for (const path of ['/keys', '/keys/new', '/keys/key_1']) {
      const closed = await house.get(path)
      expect(closed.status).toBe(403)
      expect(closed.text).toContain('The key “narrow”, with which you are signed in, lacks')
    }
    expect((await house.post('/keys', { name: 'x', scopes: '*' })).status).toBe(403)
  })
})

describe('making a key', () => {
  test('shows its text once: in no address, no cookie, no log and no later page', async () => {
    const house = await createTestDashboard()
    const form = await house.get('/keys/new')
    const made = await house.post('/keys', {
      ...{ _once: numberOf(form.text), name: 'CI', scopes: ['verify:single', 'jobs:read'] },
      ...{ allowed_ips: '203.0.113.0/24, 2001:DB8::1', allowed_domains: 'app.example b.example' },
      ...{ rate_limit_per_minute: '60', expires_at: '2999-03-21T10:30' },
    })
    const text = shownKey(made.text)
    expect([made.status, text.length]).toEqual([200, 46])
    expect(made.headers.get('Location')).toBeNull()
    expect(made.headers.getSetCookie().join()).not.toContain(text)
    expect(JSON.stringify(house.lines)).not.toContain(text)
    expect((await house.get('/keys')).text).not.toContain(text)
    const { data } = (await house.json('/v1/keys')) as { data: { keys: object[] } }
    expect(data.keys).toContainEqual(
      expect.objectContaining({
        ...{ name: 'CI', scopes: ['verify:single', 'jobs:read'], rate_limit_per_minute: 60 },
        ...{ allowed_ips: ['203.0.113.0/24', '2001:db8::1'] },
        ...{ allowed_domains: ['app.example', 'b.example'] },
        expires_at: '2999-03-21T10:30:00.000Z',
      }),
    )
  })

  test('by a double click makes one', async () => {
    const house = await createTestDashboard()
    const once = numberOf((await house.get('/keys/new')).text)
    expect(once).not.toBe('')
    const fields = { _once: once, name: 'CI', scopes: 'jobs:read' }
    const [one, other] = [await house.post('/keys', fields), await house.post('/keys', fields)]
    expect(shownKey(one.text)).toMatch(/^ev_live_/)
    expect(shownKey(other.text)).toBe(shownKey(one.text))
    const changed = await house.post('/keys', { ...fields, name: 'Another' })
    expect(changed.text).toContain('This form made something already')
    expect(numberOf(changed.text)).not.toBe(once)
    expect((await house.json('/v1/keys')).data).toMatchObject({ total: 2 })
  })

  test.each([
    ['allowed_ips', 'a.b.c.d', '“From which IP addresses” is "a.b.c.d"; it must be an IP address'],
    ['allowed_domains', 'site!', '“From which web sites” is "site!"; it must be a domain'],
    ['expires_at', '2001-01-01T00:00', '“Expires (UTC)” is "2001-01-01T00:00'],
    ['expires_at', 'tomorrow', '“Expires (UTC)” is "tomorrow"; it must be a time such as'],
    ['rate_limit_per_minute', 'many', '“Requests a minute” is "many"; it must be'],
    ['rate_limit_per_minute', '0', '“Requests a minute” is 0; it must be at least 1'],
  ])('%s with %s is refused at the form, with what was typed', async (name, typed, sentence) => {
    const house = await createTestDashboard()
    const fields = { name: 'My key', scopes: ['jobs:write'], [name]: typed }
    const { status, text } = await house.post('/keys', fields)
    expect(status).toBe(400)
    expect(text.replaceAll('&quot;', '"')).toContain(sentence)
    expect(text).toContain('value="My key"')
    expect(text).toMatch(new RegExp(`name="${name}"[^>]*value="${typed}"`))
    expect(text).toMatch(/value="jobs:write" checked/)
    expect(text).not.toMatch(/value="verify:single" checked/)
    expect((await house.json('/v1/keys')).data).toMatchObject({ total: 1 })
  })

  test('without a scope or a name is refused at the form', async () => {
    const house = await createTestDashboard()
    expect((await house.post('/keys', { name: 'x' })).text).toContain('“What it may do” is []')
    expect((await house.post('/keys', { scopes: '*' })).text).toContain('“Name” is')
  })

  test('starts with the restrictions of the key that is signed in', async () => {
    const restrictions = { allowedIps: ['0.0.0.0/0', '::/0'], rateLimitPerMinute: 60 }
    const { house, text } = await houseWithKey({ scopes: ['*'], ...restrictions })
    await house.signIn(text)
    const form = (await house.get('/keys/new')).text
    expect(form).toMatch(/name="allowed_ips"[^>]*value="0.0.0.0\/0, ::\/0"/)
    expect(form).toMatch(/name="rate_limit_per_minute"[^>]*value="60"/)
    expect(form).toMatch(/name="name"[^>]*value=""/)
  })

  test('a key offers only what it may itself, and gives no more', async () => {
    const { house, text } = await houseWithKey({ scopes: ['dashboard', 'keys:write', 'jobs:read'] })
    await house.signIn(text)
    const form = (await house.get('/keys/new')).text
    const offered = [...form.matchAll(/name="scopes" value="([^"]+)"/g)].map(([, scope]) => scope)
    expect(
      offered.filter(scope => !['verify:single', 'verify:bulk'].includes(scope ?? '')),
    ).toEqual(['jobs:read', 'keys:write', 'dashboard'])
    const wider = await house.post('/keys', { name: 'x', scopes: '*' })
    expect(wider.status).toBe(403)
    expect(wider.text).toContain('more rights than itself: scopes (*)')
  })
})

describe('a key', () => {
  test('that is changed keeps what was not touched', async () => {
    const expiresAt = Date.parse('2999-03-21T10:30:15.123Z')
    const { house } = await houseWithKey({ name: 'CI', scopes: ['jobs:read'], expiresAt })
    const { text } = await house.get('/keys/key_2')
    expect(text).toContain('value="2999-03-21T10:30"')
    const changed = await house.post('/keys/key_2', {
      ...{ name: 'CI of the shop', scopes: ['jobs:read'], expires_at: '2999-03-21T10:30' },
      ...{ allowed_ips: '203.0.113.7' },
    })
    expect([changed.status, changed.headers.get('Location')]).toEqual([303, '/keys'])
    const list = await house.get('/keys')
    expect(list.text).toContain('The key “CI of the shop” is changed')
    const { data } = (await house.json('/v1/keys')) as { data: { keys: object[] } }
    expect(data.keys).toContainEqual(
      expect.objectContaining({
        ...{ name: 'CI of the shop', allowed_ips: ['203.0.113.7'] },
        expires_at: '2999-03-21T10:30:15.123Z',
      }),
    )
  })

  test('whose change is refused is shown as it was typed', async () => {
    const { house } = await houseWithKey({ name: 'CI' })
    const refused = await house.post('/keys/key_2', { name: 'CI', scopes: '*', allowed_ips: 'no' })
    expect(refused.status).toBe(400)
    expect(refused.text).toMatch(/name="allowed_ips"[^>]*value="no"/)
  })

  test('that expires no more is changed to that', async () => {
    const { house } = await houseWithKey({ name: 'CI', expiresAt: 4_000 * DAY * 365 })
    await house.post('/keys/key_2', { name: 'CI', scopes: '*', expires_at: '' })
    const { data } = (await house.json('/v1/keys')) as { data: { keys: object[] } }
    expect(data.keys).toContainEqual(expect.objectContaining({ name: 'CI', expires_at: null }))
  })

  test('that is rotated has another text, shown once; the one before lasts as long as was chosen', async () => {
    const { house, text: before } = await houseWithKey({ name: 'CI' })
    const rotated = await house.post('/keys/key_2/rotate', { grace: '3600' })
    const text = shownKey(rotated.text)
    expect(text).not.toBe(before)
    expect(rotated.text).toContain('goes on until')
    expect((await house.request('/v1/keys', { key: text })).status).toBe(200)
    expect((await house.request('/v1/keys', { key: before })).status).toBe(200)
    await house.clock.advance(61 * MINUTE)
    expect((await house.request('/v1/keys', { key: before })).status).toBe(401)
    expect((await house.request('/v1/keys', { key: text })).status).toBe(200)
  })

  test('that is rotated at once opens nothing by the text before, and a double click rotates once', async () => {
    const { house, text: before } = await houseWithKey({ name: 'CI' })
    const once = numberOf((await house.get('/keys/key_2')).text)
    const rotated = await house.post('/keys/key_2/rotate', { grace: '0', _once: once })
    expect(rotated.text).toContain('opens nothing any more')
    expect((await house.request('/v1/keys', { key: before })).status).toBe(401)
    const again = await house.post('/keys/key_2/rotate', { grace: '0', _once: once })
    expect(shownKey(again.text)).toBe(shownKey(rotated.text))
  })

  test('of this session goes on with the session when it is rotated', async () => {
    const house = await createTestDashboard()
    await house.post('/keys/key_1/rotate', { grace: '0' })
    expect((await house.get('/keys')).status).toBe(200)
  })

  test('that is revoked opens nothing, and is in the list no more', async () => {
    const { house, text } = await houseWithKey({ name: 'CI' })
    const revoked = await house.post('/keys/key_2/revoke')
    expect(revoked.headers.get('Location')).toBe('/keys')
    const list = (await house.get('/keys')).text
    expect(list).toContain('The key “CI” is revoked')
    expect(list).not.toContain('/keys/key_2')
    expect((await house.request('/v1/keys', { key: text })).status).toBe(401)
    expect((await house.get('/keys/key_2')).status).toBe(404)
  })

  test('of this session warns that it signs out, and does', async () => {
    const house = await createTestDashboard()
    expect((await house.get('/keys/key_1')).text).toContain('you will be signed out')
    const revoked = await house.post('/keys/key_1/revoke?force=true')
    expect(revoked.headers.get('Location')).toBe('/sign-in')
    expect(house.cookies.size).toBe(0)
  })

  test('that is the last one of the account is said to be, and is revoked by the form that says so', async () => {
    const { house } = await houseWithKey({ name: 'CI' })
    expect((await house.get('/keys/key_1')).text).not.toContain('It is the last key of the account')
    await house.post('/keys/key_2/revoke')
    const refused = await house.post('/keys/key_1/revoke')
    expect(refused.status).toBe(409)
    expect(refused.text).toContain('This is the last key of the account.')
    for (const { text } of [refused, await house.get('/keys/key_1')]) {
      expect(text).toContain('It is the last key of the account')
      expect(text).toContain('action="/keys/key_1/revoke?force=true"')
    }
    expect((await house.get('/keys')).status).toBe(200)
    const revoked = await house.post('/keys/key_1/revoke?force=true')
    expect(revoked.headers.get('Location')).toBe('/sign-in')
  })

  test('of another account is there for nobody', async () => {
    const house = await createTestDashboard()
    await house.addAccount('acc_2')
    const text = await house.addKey({ accountId: 'acc_2', name: 'theirs' })
    expect((await house.get('/keys')).text).not.toContain('theirs')
    for (const path of ['/keys/key_2', '/keys/key_2/rotate', '/keys/key_2/revoke']) {
      expect((await house.post(path, { name: 'x', scopes: '*', grace: '0' })).status).toBe(404)
    }
    expect((await house.request('/v1/keys', { key: text })).status).toBe(200)
  })

  test('with markup in its name is shown as text', async () => {
    const { house } = await houseWithKey({ name: EVIL })
    const pages = [
      await house.get('/keys'),
      await house.get('/keys/key_2'),
      await house.post('/keys/key_2/rotate', { grace: '0' }),
      await house.post('/keys', { name: EVIL, scopes: [], allowed_ips: EVIL }),
    ]
    for (const { text } of pages) {
      expect(text).toContain(MARKED)
      expect(text).not.toContain('<img')
    }
    await house.post('/keys/key_2/revoke')
    expect((await house.get('/keys')).text).toContain(`The key “${MARKED}” is revoked`)
  })
})
