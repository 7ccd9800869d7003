import { describe, expect, test } from 'vitest'
import { MINUTE } from '../../../src/platform/clock.ts'
import { createTestDashboard } from '../../support/dashboard.ts'
import { createForgingProvider } from '../../support/identity-provider.ts'
import { invite, join, PASSWORD, signInAs } from '../../support/people.ts'

type Dashboard = Awaited<ReturnType<typeof createTestDashboard>>

/** Ids of the sessions, in the order of their start. */
const sessionIds = async ({ database }: Dashboard) =>
  (await database.db.selectFrom('session').select('id').orderBy('id').execute()).map(({ id }) => id)

/** Signs a person in twice; returns the session of the first browser. */
async function signInTwice(services: Dashboard): Promise<string> {
  await join(services)
  const [first = ''] = await sessionIds(services)
  services.cookies.clear()
  await signInAs(services, 'ann@shop.example')
  return first
}

describe('ending another session', () => {
  test('asks a person for the password', async () => {
    const services = await createTestDashboard({ signIn: false })
    const other = await signInTwice(services)
    expect((await services.get('/sessions')).text).toContain(`name="current" type="password"`)
    for (const current of ['', 'wrong password']) {
      const refused = await services.post(`/sessions/${other}/end`, { current })
      expect([refused.status, refused.text.includes('current password is wrong')]).toEqual([
        400,
        true,
      ])
    }
    expect(await sessionIds(services)).toContain(other)
    const ended = await services.post(`/sessions/${other}/end`, { current: PASSWORD })
    expect(ended.status).toBe(303)
    expect(await sessionIds(services)).not.toContain(other)
  })

  test('asks for the API key of the session, and for no other one', async () => {
    const services = await createTestDashboard()
    await services.signIn()
    const [other] = await sessionIds(services)
    const second = await services.addKey({ id: 'key_2' })
    for (const current of ['', 'ev_live_unknown', second, PASSWORD]) {
      const refused = await services.post(`/sessions/${other}/end`, { current })
      expect([refused.status, refused.text.includes('not the API key')]).toEqual([400, true])
    }
    expect((await services.post(`/sessions/${other}/end`, { current: services.key })).status).toBe(
      303,
    )
    expect(await sessionIds(services)).not.toContain(other)
  })

  test('refuses to guess: ten wrong passwords or keys in a row', async () => {
    const services = await createTestDashboard()
    await services.signIn()
    const [other] = await sessionIds(services)
    const asked = async () =>
      (await services.post(`/sessions/${other}/end`, { current: 'guess' })).status
    const statuses = []
    for (let n = 0; n < 11; n++) statuses.push(await asked())
    expect(statuses).toEqual([...Array(10).fill(400), 429])
    const right = await services.post(`/sessions/${other}/end`, { current: services.key })
    expect(right.status).toBe(429)
    await services.clock.advance(MINUTE)
    expect(await asked()).toBe(400)
  })

  test('needs a sign-in in the last ten minutes from a person without a password', async () => {
    const provider = createForgingProvider()
    const services = await createTestDashboard({
      signIn: false,
      identityProvider: provider.connect,
    })
    await invite(services)
    const signIn = async () => {
      const location = (await services.get('/sign-in/oidc?next=%2Fsessions')).headers.get(
        'Location',
      )
      const url = provider.login(location, { email: 'ann@shop.example' })
      await services.get(url, { 'Sec-Fetch-Site': 'cross-site' })
    }
    await signIn()
    const [other] = await sessionIds(services)
    services.cookies.clear()
    await signIn()
    await services.clock.advance(10 * MINUTE + 1)
    expect((await services.get('/sessions')).text).toContain(
      'href="/sign-in/oidc?next=%2Fsessions"',
    )
    const refused = await services.post(`/sessions/${other}/end`)
    expect([refused.status, refused.text.includes('more than 10 minutes ago')]).toEqual([400, true])
    // Back to the page, not to the action.
    expect(refused.text).toContain('href="/sign-in/oidc?next=%2Fsessions"')
    await signIn()
    expect((await services.get('/sessions')).text).not.toContain('href="/sign-in/oidc')
    expect((await services.post(`/sessions/${other}/end`)).status).toBe(303)
    expect(await sessionIds(services)).not.toContain(other)
  })
})

test('a new link and the removal of a second factor ask an admin for the password', async () => {
  const services = await createTestDashboard({ signIn: false })
  const { id } = await join(services)
  const ben = await invite(services, { name: 'Ben', email: 'ben@shop.example', role: 'viewer' })
  await services.database.db
    .updateTable('person')
    .set({ totp_secret: 'sealed' })
    .where('id', '=', ben.id)
    .execute()
  // Also for the own person: a link sets another password.
  for (const path of [
    `/people/${ben.id}/link`,
    `/people/${ben.id}/two-factor`,
    `/people/${id}/link`,
  ]) {
    const refused = await services.post(path, { current: 'wrong password' })
    expect([path, refused.status, refused.text.includes('password is wrong')]).toEqual([
      ...[path, 400, true],
    ])
  }
  const person = () =>
    services.database.db
      .selectFrom('person')
      .select(['totp_secret', 'invitation_hash'])
      .where('id', '=', ben.id)
      .executeTakeFirstOrThrow()
  const before = await person()
  expect(before.totp_secret).toBe('sealed')
  const link = await services.post(`/people/${ben.id}/link`, { current: PASSWORD })
  expect([link.status, link.text.includes('/invitation/')]).toEqual([200, true])
  expect((await services.post(`/people/${ben.id}/two-factor`, { current: PASSWORD })).status).toBe(
    303,
  )
  const after = await person()
  expect(after.totp_secret).toBeNull()
  expect(after.invitation_hash).not.toBe(before.invitation_hash)
})

test('the password does not replace the right', async () => {
  const services = await createTestDashboard({ signIn: false })
  const { id } = await join(services)
  const ben = await invite(services, { name: 'Ben', email: 'ben@shop.example', role: 'admin' })
  await services.request(`/v1/people/${id}`, { method: 'PATCH', body: { role: 'member' } })
  const refused = await services.post(`/people/${ben.id}/link`, { current: PASSWORD })
  expect(refused.status).toBe(403)
})
