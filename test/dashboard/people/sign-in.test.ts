import { describe, expect, test } from 'vitest'
import { DAY, MINUTE } from '../../../src/platform/clock.ts'
import { createTestDashboard } from '../../support/dashboard.ts'
import { invite, join, PASSWORD, signInAs, submit } from '../../support/people.ts'

const WRONG = 'Wrong email address or password.'

const isSignedIn = async (services: Awaited<ReturnType<typeof createTestDashboard>>) =>
  (await services.get('/sessions')).status === 200

describe('an invitation', () => {
  test('sets a password, signs in, and works once', async () => {
    const services = await createTestDashboard({ signIn: false })
    const { path } = await invite(services, { role: 'viewer' })
    const shown = await services.get(path)
    expect(shown.text).toContain('Welcome, Ann Lee')
    expect(shown.text).toMatch(/invited to the account <b>[^<]+<\/b> as viewer/)
    const done = await submit(services, path, { password: PASSWORD, repeated: PASSWORD })
    expect([done.status, done.headers.get('Location')]).toEqual([303, '/overview'])
    expect((await services.get('/overview')).text).toContain('Signed in as Ann Lee (viewer)')
    for (const again of [
      await services.get(path),
      await submit(services, path, { password: 'another password', repeated: 'another password' }),
    ]) {
      expect([again.status, again.text.includes('This link has expired')]).toEqual([404, true])
    }
    services.cookies.clear()
    expect((await signInAs(services, 'ann@shop.example', 'another password')).status).toBe(401)
    expect((await signInAs(services, ' Ann@Shop.Example ')).status).toBe(303)
    expect(await isSignedIn(services)).toBe(true)
  })

  test('expires after seven days', async () => {
    const services = await createTestDashboard({ signIn: false })
    const { path } = await invite(services)
    await services.clock.advance(7 * DAY - 1)
    expect((await services.get(path)).status).toBe(200)
    await services.clock.advance(1)
    const refused = await submit(services, path, { password: PASSWORD, repeated: PASSWORD })
    expect([refused.status, services.cookies.size]).toEqual([404, 0])
  })

  test('refuses a weak password and two that differ, and stays valid', async () => {
    const services = await createTestDashboard({ signIn: false })
    const { path } = await invite(services)
    for (const [password, repeated, sentence] of [
      ['short', 'short', 'Use 12 to 200'],
      ['abababababab', 'abababababab', 'repeats a few characters'],
      ['qwerty123456', 'qwerty123456', 'a list of passwords that many people use'],
      ['Ann@Shop.Example 1', 'Ann@Shop.Example 1', 'contains your email address'],
      [PASSWORD, `${PASSWORD}x`, 'The two passwords differ'],
    ] as const) {
      const refused = await submit(services, path, { password, repeated })
      expect([refused.status, refused.text.includes(sentence)]).toEqual([400, true])
      expect(refused.text).not.toContain(`value="${password}"`)
    }
    expect((await submit(services, path, { password: PASSWORD, repeated: PASSWORD })).status).toBe(
      303,
    )
  })

  test('does not take a form from another site', async () => {
    const services = await createTestDashboard({ signIn: false })
    const { path } = await invite(services)
    const body = new URLSearchParams({ password: PASSWORD, repeated: PASSWORD })
    const headers = { 'Sec-Fetch-Site': 'cross-site' }
    expect((await services.fetch(path, { method: 'POST', body, headers })).status).toBe(403)
  })

  test('that replaces a password ends all sessions and names the change in the audit log', async () => {
    const services = await createTestDashboard({ signIn: false })
    const { id } = await join(services)
    const old = new Map(services.cookies)
    const renewed = await services.json(`/v1/people/${id}/link`, { method: 'POST' })
    const { pathname } = new URL((renewed.data as { url: string }).url)
    // Until the link is used, the old password works.
    expect(await isSignedIn(services)).toBe(true)
    const fields = { password: 'a new long password', repeated: 'a new long password' }
    services.cookies.clear()
    await submit(services, pathname, fields)
    services.cookies.clear()
    for (const [name, value] of old) services.cookies.set(name, value)
    expect(await isSignedIn(services)).toBe(false)
    expect((await signInAs(services, 'ann@shop.example')).status).toBe(401)
    expect((await signInAs(services, 'ann@shop.example', 'a new long password')).status).toBe(303)
    const { data } = (await services.json('/v1/audit')) as { data: { items: object[] } }
    expect(data.items).toContainEqual(
      expect.objectContaining({
        action: 'person.password_changed',
        actor: 'session',
        key_id: null,
        person_id: id,
        person_name: 'Ann Lee',
        target_id: id,
      }),
    )
  })
})

describe('sign-in with a password', () => {
  test('shows the form of a key alone until people are invited', async () => {
    const services = await createTestDashboard({ signIn: false })
    expect((await services.get('/sign-in')).text).not.toContain('name="password"')
    await invite(services)
    const { text } = await services.get('/sign-in')
    expect(text).toContain('name="password"')
    expect(text).toContain('name="key"')
  })

  test('answers the same to a wrong password, an unknown address and one that has not joined', async () => {
    const services = await createTestDashboard({ signIn: false })
    await join(services)
    await invite(services, { email: 'bob@shop.example' })
    services.cookies.clear()
    for (const [email, password] of [
      ['ann@shop.example', 'wrong password 1'],
      ['eve@shop.example', PASSWORD],
      ['bob@shop.example', ''],
      ['nonsense', PASSWORD],
      ['', ''],
    ] as const) {
      const refused = await signInAs(services, email, password)
      expect([email, refused.status, refused.text.includes(WRONG)]).toEqual([email, 401, true])
      expect(services.cookies.size).toBe(0)
    }
  })

  test('is recorded with the person, also if it is refused', async () => {
    const services = await createTestDashboard({ signIn: false })
    const { id } = await join(services)
    await signInAs(services, 'ann@shop.example', 'wrong password 1')
    const { data } = (await services.json('/v1/audit')) as { data: { items: object[] } }
    const person = { person_id: id, person_name: 'Ann Lee', key_id: null, ip: '192.0.2.1' }
    expect(data.items).toContainEqual(
      expect.objectContaining({ action: 'session.started', ...person }),
    )
    expect(data.items).toContainEqual(
      expect.objectContaining({ action: 'session.refused', ...person }),
    )
    expect((await services.get('/sessions')).text).toContain('Ann Lee')
  })

  test('needs the account only for an address that several have invited', async () => {
    const services = await createTestDashboard({ signIn: false })
    await services.addAccount('acc_2')
    await join(services)
    const other = await invite(services, { accountId: 'acc_2' })
    services.cookies.clear()
    const theirs = 'the password of acc_2'
    await submit(services, other.path, { password: theirs, repeated: theirs })
    services.cookies.clear()
    expect((await signInAs(services, 'ann@shop.example')).status).toBe(401)
    const wrong = await signInAs(services, 'ann@shop.example', PASSWORD, { account: 'acc_2' })
    expect(wrong.status).toBe(401)
    const right = await signInAs(services, 'ann@shop.example', PASSWORD, { account: 'acc_1' })
    expect(right.status).toBe(303)
  })

  test('allows a person ten failures in 15 minutes, from all addresses together', async () => {
    const services = await createTestDashboard({ signIn: false })
    await join(services)
    services.cookies.clear()
    for (let n = 0; n < 10; n++) {
      const fields = { email: 'ann@shop.example', password: 'a guess of a stranger' }
      const { status } = await submit(services, '/sign-in', fields, { ip: `198.51.100.${n}` })
      expect(status).toBe(401)
    }
    const fields = { email: 'ann@shop.example', password: PASSWORD }
    const refused = await submit(services, '/sign-in', fields, { ip: '203.0.113.1' })
    expect(refused.status).toBe(429)
    expect(refused.headers.get('Retry-After')).toBe('900')
    expect(services.cookies.size).toBe(0)
    // An unknown address has the same limit, so that the limit does not tell who has an account.
    const unknown = { email: 'eve@shop.example', password: PASSWORD }
    for (let n = 0; n < 10; n++) {
      await submit(services, '/sign-in', unknown, { ip: `198.51.101.${n}` })
    }
    expect((await submit(services, '/sign-in', unknown, { ip: '203.0.113.2' })).status).toBe(429)
    await services.clock.advance(15 * MINUTE)
    expect((await submit(services, '/sign-in', fields, { ip: '203.0.113.1' })).status).toBe(303)
  })

  test('works in a browser that has signed in before, whatever strangers do', async () => {
    const services = await createTestDashboard({ signIn: false })
    await join(services)
    services.cookies.delete('__Host-ev_session')
    const own = new Map(services.cookies)
    services.cookies.clear()
    for (let n = 0; n < 11; n++) {
      const fields = { email: 'ann@shop.example', password: 'a guess of a stranger' }
      await submit(services, '/sign-in', fields, { ip: `198.51.100.${n}` })
    }
    for (const [name, value] of own) services.cookies.set(name, value)
    expect((await signInAs(services, 'ann@shop.example')).status).toBe(303)
    // A forged mark does not give a limit of its own.
    services.cookies.clear()
    const [[name = '', mark = ''] = []] = own
    services.cookies.set(
      name,
      mark.replace(/.$/, last => (last === '0' ? '1' : '0')),
    )
    expect((await signInAs(services, 'ann@shop.example')).status).toBe(429)
  })
})

describe('a session of a person', () => {
  test('ends at once when the person is removed, also for requests of the API', async () => {
    const services = await createTestDashboard({ signIn: false })
    const { id } = await join(services)
    const session = await services.database.db
      .selectFrom('session')
      .selectAll()
      .executeTakeFirstOrThrow()
    const asSession = { keyId: id, sessionId: session.id, secretExpiresAt: null }
    const ask = () => services.request('/v1/account', { key: null, session: asSession })
    expect((await ask()).status).toBe(200)
    await services.request(`/v1/people/${id}`, { method: 'DELETE' })
    expect(await isSignedIn(services)).toBe(false)
    expect((await ask()).status).toBe(401)
    expect((await signInAs(services, 'ann@shop.example')).status).toBe(401)
  })

  test('has the role of the person at the time of the request', async () => {
    const services = await createTestDashboard({ signIn: false })
    const { id } = await join(services, { role: 'admin' })
    expect((await services.get('/audit')).status).toBe(200)
    await services.database.db
      .updateTable('person')
      .set({ role: 'viewer' })
      .where('id', '=', id)
      .execute()
    const refused = await services.get('/audit')
    expect(refused.status).toBe(403)
    expect(refused.text).toContain('An admin of the account can change your role.')
  })

  test('stolen without its secret is useless: neither IDs nor hashes of the database sign in', async () => {
    const services = await createTestDashboard({ signIn: false })
    const { id, token } = await join(services)
    const { id: sessionId, hash } = await services.database.db
      .selectFrom('session')
      .select(['id', 'hash'])
      .executeTakeFirstOrThrow()
    for (const stolen of [sessionId, hash, id, token]) {
      services.cookies.clear()
      services.cookies.set('__Host-ev_session', stolen)
      expect([stolen, await isSignedIn(services)]).toEqual([stolen, false])
      const headers = { Authorization: `Bearer ${stolen}` }
      expect((await services.request('/v1/account', { key: null, headers })).status).toBe(401)
    }
  })
})
