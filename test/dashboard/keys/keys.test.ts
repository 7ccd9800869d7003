import { describe, expect, test } from 'vitest'
import { DAY, MINUTE } from '../../../src/platform/clock.ts'
import { createTestDashboard } from '../../support/dashboard.ts'

const EVIL = '<img src=x onerror=alert(1)>'
const MARKED = '&lt;img src=x onerror=alert(1)&gt;'

/** Returns the secret on a page. */
const shownKey = (page: string) => /data-copy>(ev_live_\w+)</.exec(page)?.[1] ?? ''

const numberOf = (page: string) => /name="_once" value="([^"]+)"/.exec(page)?.[1] ?? ''

/** A dashboard with a key besides the one of the session. */
async function dashboardWithKey(
  o: Parameters<Awaited<ReturnType<typeof createTestDashboard>>['addKey']>[0],
) {
  const services = await createTestDashboard()
  const text = await services.addKey(o)
  return { services, text }
}

describe('a test key', () => {
  test('is created in the form of a key, and shown as such', async () => {
    const services = await createTestDashboard()
    const form = (await services.get('/keys/new')).text
    expect(form).toMatch(/<input type="checkbox" name="test" value="on"\s+\/>/)
    const typed = { name: 'CI', scopes: 'dashboard', test: 'on', _once: numberOf(form) }
    const { text } = await services.post('/keys', typed)
    const key = /data-copy>(ev_test_\w+)</.exec(text)?.[1] ?? ''
    expect((await services.get('/keys')).text).toMatch(/CI<\/a>.*?<small>test<\/small>/s)
    await services.signIn(key)
    const page = (await services.get('/overview')).text
    expect(page).toContain('Signed in with the test key &quot;CI&quot;')
    expect(page).toMatch(/\w+ plan, sandbox/)
  })
})

describe('a publishable key', () => {
  const FORM = { publishable: 'true', name: 'Sign-up', allowed_domains: 'shop.example' }

  test('is created in a form of its own, and shown with the script of its page', async () => {
    const services = await createTestDashboard()
    expect((await services.get('/keys/new')).text).toContain('href="/keys/new-publishable"')
    const form = (await services.get('/keys/new-publishable')).text
    expect(form).toMatch(/name="rate_limit_per_minute"[^>]*value="120"/)
    expect(form).not.toMatch(/name="(scopes|allowed_ips)"/)
    const { text } = await services.post('/keys', { ...FORM, _once: numberOf(form) })
    const key = /data-copy>(ev_pub_\w+)</.exec(text)?.[1]
    expect(text).toContain(
      `&lt;script src=&quot;https://ev.test/form.js&quot; data-key=&quot;${key}&quot; defer&gt;`,
    )
    const list = (await services.get('/keys')).text
    expect(list).toMatch(/Sign-up<\/a>.*?<small>publishable<\/small>/s)
    expect(list).toMatch(/>ev_pub_\w{4}…\w{4}<\/code>/)
    expect(list).toContain('verify:form')
  })

  test('without websites is rejected at the form, which keeps the values', async () => {
    const services = await createTestDashboard()
    const { status, text } = await services.post('/keys', { ...FORM, allowed_domains: '' })
    expect([status, text]).toEqual([
      400,
      expect.stringContaining('&quot;Allowed websites&quot; is empty'),
    ])
    expect(text).toContain('value="Sign-up"')
    expect(text).toContain('name="publishable" value="true"')
  })

  test('is changed without scopes, and is not the last key of the account', async () => {
    const services = await createTestDashboard()
    await services.post('/keys', FORM)
    const { data } = (await services.json('/v1/keys')) as {
      data: { keys: { id: string; publishable: boolean }[] }
    }
    const path = `/keys/${data.keys.find(one => one.publishable)?.id}`
    const page = (await services.get(path)).text
    expect(page).toContain('· publishable')
    expect(page).not.toMatch(/name="(scopes|allowed_ips)"|This is the last key/)
    expect((await services.get('/keys/key_1')).text).toContain('This is the last key')
    expect((await services.post(path, { ...FORM, name: 'Shop' })).status).toBe(303)
    expect((await services.get('/keys')).text).toContain('Shop</a>')
  })
})

describe('the list of keys', () => {
  test('shows scopes, restrictions, rate limit and times of each', async () => {
    const { services } = await dashboardWithKey({
      name: 'CI',
      scopes: ['verify:single', 'jobs:read'],
      allowedIps: ['203.0.113.0/24'],
      allowedDomains: ['app.example'],
      rateLimitPerMinute: 600,
    })
    const { text } = await services.get('/keys')
    const row = /<a href="\/keys\/key_2">.*?<\/tr>/s.exec(text)?.[0] ?? ''
    for (const part of [
      ...['CI', 'verify:single, jobs:read', '203.0.113.0/24, app.example', '600', 'Never'],
    ]) {
      expect(row).toContain(part)
    }
    expect(row).toMatch(/<code class="nowrap">ev_live_\w{4}…\w{4}<\/code>/)
    expect(text).toMatch(/key_1">test<\/a>\s*<small>this session<\/small>/)
  })

  test('with one key explains what others are for', async () => {
    const { text } = await (await createTestDashboard()).get('/keys')
    expect(text).toContain('Use one key per application')
  })

  test('marks expired keys', async () => {
    const services = await createTestDashboard()
    await services.addKey({ name: 'old', expiresAt: services.clock.now() - MINUTE })
    expect((await services.get('/keys')).text).toContain('>Expired<')
  })

  test('is closed to a key without the scope', async () => {
    const { services, text } = await dashboardWithKey({ name: 'narrow', scopes: ['dashboard'] })
    await services.signIn(text)
    for (const path of ['/keys', '/keys/new', '/keys/key_1']) {
      const closed = await services.get(path)
      expect(closed.status).toBe(403)
      expect(closed.text).toContain(
        'You are signed in with the key &quot;narrow&quot;, which lacks',
      )
    }
    expect((await services.post('/keys', { name: 'x', scopes: '*' })).status).toBe(403)
  })
})

describe('creating a key', () => {
  test('shows its secret once: in no URL, cookie, log line or later page', async () => {
    const services = await createTestDashboard()
    const form = await services.get('/keys/new')
    const made = await services.post('/keys', {
      _once: numberOf(form.text),
      name: 'CI',
      scopes: ['verify:single', 'jobs:read'],
      allowed_ips: '203.0.113.0/24, 2001:DB8::1',
      allowed_domains: 'app.example b.example',
      rate_limit_per_minute: '60',
      expires_at: '2999-03-21T10:30',
    })
    const text = shownKey(made.text)
    expect([made.status, text.length]).toEqual([200, 46])
    expect(made.headers.get('Location')).toBeNull()
    expect(made.headers.getSetCookie().join()).not.toContain(text)
    expect(JSON.stringify(services.lines)).not.toContain(text)
    expect((await services.get('/keys')).text).not.toContain(text)
    const { data } = (await services.json('/v1/keys')) as { data: { keys: object[] } }
    expect(data.keys).toContainEqual(
      expect.objectContaining({
        name: 'CI',
        scopes: ['verify:single', 'jobs:read'],
        rate_limit_per_minute: 60,
        allowed_ips: ['203.0.113.0/24', '2001:db8::1'],
        allowed_domains: ['app.example', 'b.example'],
        expires_at: '2999-03-21T10:30:00.000Z',
      }),
    )
  })

  test('with a double click creates one', async () => {
    const services = await createTestDashboard()
    const once = numberOf((await services.get('/keys/new')).text)
    expect(once).not.toBe('')
    const fields = { _once: once, name: 'CI', scopes: 'jobs:read' }
    const [one, other] = [
      await services.post('/keys', fields),
      await services.post('/keys', fields),
    ]
    expect(shownKey(one.text)).toMatch(/^ev_live_/)
    expect(shownKey(other.text)).toBe(shownKey(one.text))
    const changed = await services.post('/keys', { ...fields, name: 'Another' })
    expect(changed.text).toContain('This form was already sent with different content')
    expect(numberOf(changed.text)).not.toBe(once)
    expect((await services.json('/v1/keys')).data).toMatchObject({ total: 2 })
  })

  test.each([
    ['allowed_ips', 'a.b.c.d', '"Allowed IP addresses" is "a.b.c.d"; it must be an IP address'],
    ['allowed_domains', 'site!', '"Allowed websites" is "site!"; it must be a domain'],
    ['expires_at', '2001-01-01T00:00', '"Expires (UTC)" is "2001-01-01T00:00'],
    ['expires_at', 'tomorrow', '"Expires (UTC)" is "tomorrow"; it must be a time such as'],
    ['rate_limit_per_minute', 'many', '"Requests per minute" is "many"; it must be'],
    ['rate_limit_per_minute', '0', '"Requests per minute" is 0; it must be at least 1'],
  ])(
    '%s with %s is rejected at the form, which keeps the values',
    async (name, typed, sentence) => {
      const services = await createTestDashboard()
      const fields = { name: 'My key', scopes: ['jobs:write'], [name]: typed }
      const { status, text } = await services.post('/keys', fields)
      expect(status).toBe(400)
      expect(text.replaceAll('&quot;', '"')).toContain(sentence)
      expect(text).toContain('value="My key"')
      expect(text).toMatch(new RegExp(`name="${name}"[^>]*value="${typed}"`))
      expect(text).toMatch(/value="jobs:write" checked/)
      expect(text).not.toMatch(/value="verify:single" checked/)
      expect((await services.json('/v1/keys')).data).toMatchObject({ total: 1 })
    },
  )

  test('without a scope or a name is rejected at the form', async () => {
    const services = await createTestDashboard()
    expect((await services.post('/keys', { name: 'x' })).text).toContain('&quot;Scopes&quot; is []')
    expect((await services.post('/keys', { scopes: '*' })).text).toContain('&quot;Name&quot; is')
  })

  test('starts with the restrictions of the current key', async () => {
    const restrictions = { allowedIps: ['0.0.0.0/0', '::/0'], rateLimitPerMinute: 60 }
    const { services, text } = await dashboardWithKey({ scopes: ['*'], ...restrictions })
    await services.signIn(text)
    const form = (await services.get('/keys/new')).text
    expect(form).toMatch(/name="allowed_ips"[^>]*value="0.0.0.0\/0, ::\/0"/)
    expect(form).toMatch(/name="rate_limit_per_minute"[^>]*value="60"/)
    expect(form).toMatch(/name="name"[^>]*value=""/)
  })

  test('grants only scopes that the current key has', async () => {
    const { services, text } = await dashboardWithKey({
      scopes: ['dashboard', 'keys:write', 'jobs:read'],
    })
    await services.signIn(text)
    const form = (await services.get('/keys/new')).text
    const offered = [...form.matchAll(/name="scopes" value="([^"]+)"/g)].map(([, scope]) => scope)
    expect(
      offered.filter(scope => !['verify:single', 'verify:bulk'].includes(scope ?? '')),
    ).toEqual(['jobs:read', 'keys:write', 'dashboard'])
    const wider = await services.post('/keys', { name: 'x', scopes: '*' })
    expect(wider.status).toBe(403)
    expect(wider.text).toContain('more rights than itself: scopes (*)')
  })
})

describe('a key', () => {
  test('that is updated keeps unchanged fields', async () => {
    const expiresAt = Date.parse('2999-03-21T10:30:15.123Z')
    const { services } = await dashboardWithKey({ name: 'CI', scopes: ['jobs:read'], expiresAt })
    const { text } = await services.get('/keys/key_2')
    expect(text).toContain('value="2999-03-21T10:30"')
    const changed = await services.post('/keys/key_2', {
      name: 'CI of the shop',
      scopes: ['jobs:read'],
      expires_at: '2999-03-21T10:30',
      allowed_ips: '203.0.113.7',
    })
    expect([changed.status, changed.headers.get('Location')]).toEqual([303, '/keys'])
    const list = await services.get('/keys')
    expect(list.text).toContain('Key &quot;CI of the shop&quot; updated')
    const { data } = (await services.json('/v1/keys')) as { data: { keys: object[] } }
    expect(data.keys).toContainEqual(
      expect.objectContaining({
        name: 'CI of the shop',
        allowed_ips: ['203.0.113.7'],
        expires_at: '2999-03-21T10:30:15.123Z',
      }),
    )
  })

  test('whose update is rejected is shown as typed', async () => {
    const { services } = await dashboardWithKey({ name: 'CI' })
    const refused = await services.post('/keys/key_2', {
      name: 'CI',
      scopes: '*',
      allowed_ips: 'no',
    })
    expect(refused.status).toBe(400)
    expect(refused.text).toMatch(/name="allowed_ips"[^>]*value="no"/)
  })

  test('can be changed to never expire', async () => {
    const { services } = await dashboardWithKey({ name: 'CI', expiresAt: 4_000 * DAY * 365 })
    await services.post('/keys/key_2', { name: 'CI', scopes: '*', expires_at: '' })
    const { data } = (await services.json('/v1/keys')) as { data: { keys: object[] } }
    expect(data.keys).toContainEqual(expect.objectContaining({ name: 'CI', expires_at: null }))
  })

  test('that is rotated has a new secret, shown once; the old one stays valid during the grace period', async () => {
    const { services, text: before } = await dashboardWithKey({ name: 'CI' })
    const rotated = await services.post('/keys/key_2/rotate', { grace: '3600' })
    const text = shownKey(rotated.text)
    expect(text).not.toBe(before)
    expect(rotated.text).toContain('stays valid until')
    expect((await services.request('/v1/keys', { key: text })).status).toBe(200)
    expect((await services.request('/v1/keys', { key: before })).status).toBe(200)
    await services.clock.advance(61 * MINUTE)
    expect((await services.request('/v1/keys', { key: before })).status).toBe(401)
    expect((await services.request('/v1/keys', { key: text })).status).toBe(200)
  })

  test('that is rotated without a grace period invalidates the old secret, and rotates once after a double click', async () => {
    const { services, text: before } = await dashboardWithKey({ name: 'CI' })
    const once = numberOf((await services.get('/keys/key_2')).text)
    const rotated = await services.post('/keys/key_2/rotate', { grace: '0', _once: once })
    expect(rotated.text).toContain('no longer works')
    expect((await services.request('/v1/keys', { key: before })).status).toBe(401)
    const again = await services.post('/keys/key_2/rotate', { grace: '0', _once: once })
    expect(shownKey(again.text)).toBe(shownKey(rotated.text))
  })

  test('of this session keeps the session when it is rotated', async () => {
    const services = await createTestDashboard()
    await services.post('/keys/key_1/rotate', { grace: '0' })
    expect((await services.get('/keys')).status).toBe(200)
  })

  test('that is revoked stops working and leaves the list', async () => {
    const { services, text } = await dashboardWithKey({ name: 'CI' })
    const revoked = await services.post('/keys/key_2/revoke')
    expect(revoked.headers.get('Location')).toBe('/keys')
    const list = (await services.get('/keys')).text
    expect(list).toContain('Key &quot;CI&quot; revoked')
    expect(list).not.toContain('/keys/key_2')
    expect((await services.request('/v1/keys', { key: text })).status).toBe(401)
    expect((await services.get('/keys/key_2')).status).toBe(404)
  })

  test('of this session warns before it signs out', async () => {
    const services = await createTestDashboard()
    expect((await services.get('/keys/key_1')).text).toContain('you will be signed out')
    const revoked = await services.post('/keys/key_1/revoke?force=true')
    expect(revoked.headers.get('Location')).toBe('/sign-in')
    expect(services.cookies.size).toBe(0)
  })

  test('that is the last one of the account is revoked only after a warning', async () => {
    const { services } = await dashboardWithKey({ name: 'CI' })
    expect((await services.get('/keys/key_1')).text).not.toContain(
      'This is the last key of the account. Without it',
    )
    await services.post('/keys/key_2/revoke')
    const refused = await services.post('/keys/key_1/revoke')
    expect(refused.status).toBe(409)
    expect(refused.text).toContain('This is the last key of the account.')
    for (const { text } of [refused, await services.get('/keys/key_1')]) {
      expect(text).toContain('This is the last key of the account. Without it')
      expect(text).toContain('action="/keys/key_1/revoke?force=true"')
    }
    expect((await services.get('/keys')).status).toBe(200)
    const revoked = await services.post('/keys/key_1/revoke?force=true')
    expect(revoked.headers.get('Location')).toBe('/sign-in')
  })

  test('of another account returns 404', async () => {
    const services = await createTestDashboard()
    await services.addAccount('acc_2')
    const text = await services.addKey({ accountId: 'acc_2', name: 'theirs' })
    expect((await services.get('/keys')).text).not.toContain('theirs')
    for (const path of ['/keys/key_2', '/keys/key_2/rotate', '/keys/key_2/revoke']) {
      expect((await services.post(path, { name: 'x', scopes: '*', grace: '0' })).status).toBe(404)
    }
    expect((await services.request('/v1/keys', { key: text })).status).toBe(200)
  })

  test('with markup in its name is rendered as text', async () => {
    const { services } = await dashboardWithKey({ name: EVIL })
    const pages = [
      await services.get('/keys'),
      await services.get('/keys/key_2'),
      await services.post('/keys/key_2/rotate', { grace: '0' }),
      await services.post('/keys', { name: EVIL, scopes: [], allowed_ips: EVIL }),
    ]
    for (const { text } of pages) {
      expect(text).toContain(MARKED)
      expect(text).not.toContain('<img')
    }
    await services.post('/keys/key_2/revoke')
    expect((await services.get('/keys')).text).toContain(`Key &quot;${MARKED}&quot; revoked`)
  })
})
