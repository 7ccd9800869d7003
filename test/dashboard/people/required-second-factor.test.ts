import { describe, expect, test } from 'vitest'
import { computeTotp } from '../../../src/accounts/people/totp.ts'
import { SECOND } from '../../../src/platform/clock.ts'
import { createTestDashboard } from '../../support/dashboard.ts'
import { createForgingProvider } from '../../support/identity-provider.ts'
import { hiddenField, invite, join, PASSWORD, signInAs } from '../../support/people.ts'

type Dashboard = Awaited<ReturnType<typeof createTestDashboard>>

const SETUP = '/profile/two-factor'

const setRequired = ({ request }: Dashboard, isRequired: boolean) =>
  request('/v1/account', { method: 'PATCH', body: { two_factor_required: isRequired } })

/** Sets up the second factor of the person who is signed in. */
async function setUp(services: Dashboard) {
  const shown = await services.get(SETUP)
  const secret = /data-copy>([A-Z2-7]{32})</.exec(shown.text)?.[1] ?? ''
  const code = computeTotp(secret, Math.floor(services.clock.now() / (30 * SECOND)))
  const setup = hiddenField(shown, 'setup')
  return services.post(SETUP, { setup, code, current: PASSWORD })
}

/** A dashboard whose account requires a second factor, with an admin who has none. */
async function createRequiring() {
  const services = await createTestDashboard({ signIn: false })
  const { id } = await join(services)
  expect((await setRequired(services, true)).status).toBe(200)
  return { services, id }
}

describe('a person without the second factor that the account requires', () => {
  test('can only set it up and sign out, with a session from before too', async () => {
    const { services } = await createRequiring()
    for (const path of ['/overview', '/people', '/profile', '/keys', '/doctor']) {
      const sent = await services.get(path)
      expect([path, sent.status, sent.headers.get('Location')]).toEqual([path, 303, SETUP])
    }
    const fragment = await services.get('/lists', { 'HX-Request': 'true' })
    expect([fragment.status, fragment.headers.get('HX-Redirect')]).toEqual([403, SETUP])
    const posted = await services.post('/people', {
      name: 'B',
      email: 'b@c.example',
      role: 'admin',
    })
    expect([posted.status, posted.headers.get('Location')]).toEqual([303, SETUP])
    const shown = await services.get(SETUP)
    expect([shown.status, shown.text.includes('Your account requires a second factor')]).toEqual([
      200,
      true,
    ])
    expect((await services.get('/nothing', { Accept: 'text/html' })).status).toBe(404)
    expect((await services.post('/sign-out')).headers.get('Location')).toBe('/sign-in')
  })

  test('has everything once it is set up, and cannot remove it', async () => {
    const { services } = await createRequiring()
    services.cookies.clear()
    await signInAs(services, 'ann@shop.example')
    expect((await setUp(services)).status).toBe(200)
    const profile = await services.get('/profile')
    expect(profile.status).toBe(200)
    expect(profile.text).not.toContain('/profile/two-factor/remove')
    const refused = await services.post(`${SETUP}/remove`, { current: PASSWORD })
    expect([refused.status, refused.text.includes('account requires a second factor')]).toEqual([
      400,
      true,
    ])
    await setRequired(services, false)
    expect((await services.post(`${SETUP}/remove`, { current: PASSWORD })).status).toBe(303)
  })

  test('is refused by the API, whatever a page asks of it', async () => {
    const { services, id } = await createRequiring()
    const session = { keyId: id, sessionId: 'ses_a', secretExpiresAt: null }
    const refused = await services.request('/v1/jobs', { session })
    expect([refused.status, await refused.json()]).toEqual([
      403,
      expect.objectContaining({ code: 'insufficient_scope' }),
    ])
    await setUp(services)
    expect((await services.request('/v1/jobs', { session })).status).toBe(200)
  })

  test('sets it up again after an admin has removed it', async () => {
    const { services, id } = await createRequiring()
    await setUp(services)
    expect((await services.get('/overview')).status).toBe(200)
    await services.request(`/v1/people/${id}/two-factor`, { method: 'DELETE' })
    expect((await services.get('/overview')).headers.get('Location')).toBe(SETUP)
  })
})

test('an API key no longer signs in, and its sessions end, but it still works as a key', async () => {
  const services = await createTestDashboard()
  const key = new Map(services.cookies)
  await join(services)
  await setRequired(services, true)
  services.cookies.clear()
  for (const [name, value] of key) services.cookies.set(name, value)
  expect((await services.get('/overview')).headers.get('Location')).toBe(
    '/sign-in?next=%2Foverview',
  )
  const session = { keyId: 'key_1', sessionId: 'ses_a', secretExpiresAt: null }
  expect((await services.request('/v1/jobs', { session })).status).toBe(401)
  services.cookies.clear()
  const body = new URLSearchParams({ key: services.key })
  const refused = await services.fetch('/sign-in', { method: 'POST', body })
  expect([refused.status, await refused.text()]).toEqual([
    401,
    expect.stringContaining('requires a second factor, so API keys cannot sign in'),
  ])
  expect((await services.request('/v1/jobs')).status).toBe(200)
})

test('a person without a password signs in with the identity provider, which has its own', async () => {
  const provider = createForgingProvider()
  const services = await createTestDashboard({ signIn: false, identityProvider: provider.connect })
  await join(services)
  await invite(services, { name: 'Ben', email: 'ben@shop.example' })
  await setRequired(services, true)
  services.cookies.clear()
  const location = (await services.get('/sign-in/oidc?next=%2Flists')).headers.get('Location')
  const url = provider.login(location, { email: 'ben@shop.example' })
  await services.get(url, { 'Sec-Fetch-Site': 'cross-site' })
  expect((await services.get('/lists')).status).toBe(200)
})

describe('an account', () => {
  test('requires it only if an admin has joined, who can sign in then', async () => {
    const services = await createTestDashboard({ signIn: false })
    await invite(services)
    await join(services, { email: 'ben@shop.example', role: 'member' })
    const refused = await setRequired(services, true)
    expect([refused.status, await refused.json()]).toEqual([
      400,
      expect.objectContaining({
        code: 'invalid_request',
        error: expect.stringContaining('No admin of the account has accepted an invitation yet'),
      }),
    ])
    expect((await setRequired(services, false)).status).toBe(200)
  })

  test('is changed under Account, with an entry of the audit log', async () => {
    const services = await createTestDashboard({ signIn: false })
    await join(services)
    const chosen = async () =>
      /<option value="(optional|required)" selected>/.exec(
        (await services.get('/account')).text,
      )?.[1]
    expect(await chosen()).toBe('optional')
    await setUp(services)
    const fields = { name: 'Shop', email: '' }
    await services.post('/account', { ...fields, two_factor: 'required' })
    expect(await chosen()).toBe('required')
    expect((await services.json('/v1/account')).data).toMatchObject({ two_factor_required: true })
    const { data } = await services.json('/v1/audit?action=account.updated')
    expect(data).toMatchObject({
      items: [{ person_name: 'Ann Lee', changed: ['email', 'name', 'two_factor_required'] }],
    })
    await services.post('/account', { ...fields, two_factor: 'optional' })
    expect(await chosen()).toBe('optional')
  })
})
