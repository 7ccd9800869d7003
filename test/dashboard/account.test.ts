import { expect, test } from 'vitest'
import { createTestDashboard } from '../support/dashboard.ts'

const fieldOf = (text: string, name: string) =>
  new RegExp(`<input id="${name}"[^>]* value="([^"]*)"`).exec(text)?.[1]

test('the name and the address of the account are changed, and the sidebar shows the name', async () => {
  const { get, post, json } = await createTestDashboard({ plan: 'starter' })
  const before = (await get('/account')).text
  expect([fieldOf(before, 'name'), fieldOf(before, 'email')]).toEqual(['acc_1', ''])
  expect(before).toContain('<dt>Plan</dt><dd>Starter</dd>')
  const saved = await post('/account', { name: 'Shop & Co', email: 'owner@shop.example' })
  expect([saved.status, saved.headers.get('Location')]).toEqual([303, '/account'])
  const { text } = await get('/account')
  expect([fieldOf(text, 'name'), fieldOf(text, 'email')]).toEqual([
    'Shop &amp; Co',
    'owner@shop.example',
  ])
  expect(text).toContain('Account saved.')
  expect(text).toMatch(/class="account">.*?Shop &amp; Co/s)
  const { data } = await json('/v1/audit?action=account.updated')
  expect(data).toMatchObject({ items: [{ actor: 'session', changed: ['email', 'name'] }] })
  await post('/account', { name: 'Shop', email: '' })
  expect((await json('/v1/account')).data).toMatchObject({ name: 'Shop', email: null })
})

test.each([
  [
    'without @',
    { name: 'Shop', email: 'owner' },
    '&quot;Email address&quot; is &quot;owner&quot;. There is no @',
  ],
  ['without a name', { name: '', email: 'a@b.example' }, '&quot;Name&quot; '],
])('a form %s is shown again with the error, and changes nothing', async (_, fields, error) => {
  const { post, json } = await createTestDashboard()
  const { status, text } = await post('/account', fields)
  expect(status).toBe(400)
  expect(text).toMatch(new RegExp(`role="alert">.*?<p>[^<]*${error}`, 's'))
  expect(fieldOf(text, 'email')).toBe(fields.email)
  expect((await json('/v1/account')).data).toMatchObject({ name: 'acc_1', email: null })
})

test('the action policy is chosen, and left to the service again', async () => {
  const { get, post, json } = await createTestDashboard()
  const chosen = async () =>
    /<option value="(\w+)" selected>/.exec((await get('/account')).text)?.[1]
  expect(await chosen()).toBe('default')
  const fields = { name: 'Shop', email: '' }
  await post('/account', { ...fields, action_policy: 'strict' })
  expect(await chosen()).toBe('strict')
  expect((await json('/v1/account')).data).toMatchObject({ action_policy: 'strict' })
  await post('/account', { ...fields, action_policy: 'default' })
  expect((await json('/v1/account')).data).toMatchObject({ action_policy: null })
})

test('a form without its CSRF token changes nothing', async () => {
  const { post, json } = await createTestDashboard()
  expect((await post('/account', { _csrf: 'x', name: 'Shop', email: '' })).status).toBe(403)
  expect((await json('/v1/account')).data).toMatchObject({ name: 'acc_1' })
})

test('a key without account:write sees the account but no form', async () => {
  const { get, post, cookies, addKey, signIn } = await createTestDashboard()
  cookies.clear()
  await signIn(await addKey({ scopes: ['dashboard', 'account:read'] }))
  const { text } = await get('/account')
  expect(text).toContain('<dt>Email address</dt><dd>None</dd>')
  expect(text).not.toContain('action="/account"')
  expect((await post('/account', { name: 'Shop', email: '' })).status).toBe(403)
})
