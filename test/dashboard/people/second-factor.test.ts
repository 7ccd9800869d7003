import { describe, expect, test } from 'vitest'
import { computeTotp } from '../../../src/accounts/people/totp.ts'
import { MINUTE, SECOND } from '../../../src/platform/clock.ts'
import { type Answer, createTestDashboard } from '../../support/dashboard.ts'
import { hiddenField, join, PASSWORD, signInAs, submit } from '../../support/people.ts'

type TestDashboard = Awaited<ReturnType<typeof createTestDashboard>>

const EMAIL = 'ann@shop.example'

const codeAt = (secret: string, now: number) => computeTotp(secret, Math.floor(now / (30 * SECOND)))

const recoveryCodesOf = ({ text }: Answer) =>
  [...text.matchAll(/<li><code>([A-Z2-7-]{19})<\/code>/g)].map(([, code = '']) => code)

/** A person with a second factor who is signed in. */
async function createOwner() {
  const services = await createTestDashboard({ signIn: false })
  const { id } = await join(services)
  const shown = await services.get('/profile/two-factor')
  const secret = /data-copy>([A-Z2-7]{32})</.exec(shown.text)?.[1] ?? ''
  const setup = hiddenField(shown, 'setup')
  const code = codeAt(secret, services.clock.now())
  const enabled = await services.post('/profile/two-factor', { setup, code, current: PASSWORD })
  return { services, id, secret, setup, shown, enabled, codes: recoveryCodesOf(enabled) }
}

async function signOutAndEnterPassword(services: TestDashboard): Promise<string> {
  services.cookies.clear()
  const asked = await signInAs(services, EMAIL)
  expect([asked.status, services.cookies.size]).toEqual([200, 0])
  return hiddenField(asked, 'pending')
}

const sendCode = (services: TestDashboard, pending: string, code: string) =>
  submit(services, '/sign-in/code', { pending, code, next: '/usage' })

describe('the setup of a second factor', () => {
  test('shows a QR code without script or style, and ten recovery codes once', async () => {
    const { services, shown, enabled, codes, secret } = await createOwner()
    expect(shown.text).toMatch(/<div class="qr"[^>]*><svg viewBox="[\d ]+" [^>]*><path d="[^"]+"/)
    expect(enabled.status).toBe(200)
    expect(new Set(codes).size).toBe(10)
    const { text } = await services.get('/profile')
    expect(text).toContain('Recovery codes left: <b>10</b>')
    const stored = JSON.stringify([
      await services.database.db.selectFrom('person').selectAll().execute(),
      await services.database.db.selectFrom('recovery_code').selectAll().execute(),
      await services.database.db.selectFrom('audit').selectAll().execute(),
      services.lines,
    ])
    for (const one of [secret, PASSWORD, ...codes]) expect(stored).not.toContain(one)
  })

  test('needs the password and a right code, and expires', async () => {
    const services = await createTestDashboard({ signIn: false })
    const other = await join(services, { email: 'bob@shop.example', name: 'Bob' })
    const foreign = hiddenField(await services.get('/profile/two-factor'), 'setup')
    expect(other.id).toMatch(/^per_/)
    await join(services)
    const shown = await services.get('/profile/two-factor')
    const secret = /data-copy>([A-Z2-7]{32})</.exec(shown.text)?.[1] ?? ''
    const setup = hiddenField(shown, 'setup')
    const code = () => codeAt(secret, services.clock.now())
    for (const [fields, sentence] of [
      [{ setup, code: code(), current: 'wrong password 1' }, 'Your current password is wrong'],
      [{ setup, code: '000000', current: PASSWORD }, 'Wrong code'],
      [{ setup: foreign, code: code(), current: PASSWORD }, 'The setup has expired'],
      [{ setup: `${setup}x`, code: code(), current: PASSWORD }, 'The setup has expired'],
    ] as const) {
      const refused = await services.post('/profile/two-factor', fields)
      expect([refused.status, refused.text.includes(sentence)]).toEqual([400, true])
    }
    await services.clock.advance(30 * MINUTE)
    const late = await services.post('/profile/two-factor', {
      setup,
      code: code(),
      current: PASSWORD,
    })
    expect(late.text).toContain('The setup has expired')
    expect((await services.get('/profile')).text).toContain('Set up a second factor')
  })

  test('is not for a key', async () => {
    const services = await createTestDashboard()
    for (const path of ['/profile', '/profile/two-factor']) {
      expect((await services.get(path)).status).toBe(404)
    }
    expect((await services.post('/profile/password')).status).toBe(404)
  })
})

describe('sign-in with a second factor', () => {
  test('asks for a code after the password, and returns to the requested page', async () => {
    const { services, secret } = await createOwner()
    await services.clock.advance(MINUTE)
    const pending = await signOutAndEnterPassword(services)
    const wrong = await sendCode(services, pending, '000000')
    expect([wrong.status, services.cookies.size]).toEqual([401, 0])
    const done = await sendCode(services, pending, codeAt(secret, services.clock.now()))
    expect([done.status, done.headers.get('Location')]).toEqual([303, '/usage'])
    expect((await services.get('/profile')).status).toBe(200)
  })

  test('accepts each code once, and none that is older than an accepted one', async () => {
    const { services, secret } = await createOwner()
    // The code of the setup.
    const first = await signOutAndEnterPassword(services)
    const used = codeAt(secret, services.clock.now())
    expect((await sendCode(services, first, used)).status).toBe(401)
    await services.clock.advance(MINUTE)
    const code = codeAt(secret, services.clock.now())
    const before = codeAt(secret, services.clock.now() - 30 * SECOND)
    expect((await sendCode(services, first, code)).status).toBe(303)
    for (const replayed of [code, before]) {
      const pending = await signOutAndEnterPassword(services)
      const refused = await sendCode(services, pending, replayed)
      expect([refused.status, services.cookies.size]).toEqual([401, 0])
    }
  })

  test('accepts a code once, even if two browsers send it at the same time', async () => {
    const { services, secret } = await createOwner()
    await services.clock.advance(MINUTE)
    const pending = await signOutAndEnterPassword(services)
    const code = codeAt(secret, services.clock.now())
    const answers = await Promise.all([
      sendCode(services, pending, code),
      sendCode(services, pending, code),
    ])
    expect(answers.map(({ status }) => status).toSorted()).toEqual([303, 401])
  })

  test('accepts each recovery code once, however it is typed', async () => {
    const { services, codes } = await createOwner()
    const [first = '', second = ''] = codes
    const pending = await signOutAndEnterPassword(services)
    expect((await sendCode(services, pending, first)).status).toBe(303)
    const next = await signOutAndEnterPassword(services)
    expect((await sendCode(services, next, first)).status).toBe(401)
    const typed = second.toLowerCase().replaceAll('-', ' ')
    expect((await sendCode(services, next, typed)).status).toBe(303)
    expect((await services.get('/profile')).text).toContain('Recovery codes left: <b>8</b>')
    const { data } = (await services.json('/v1/audit?action=person.recovery_code_used')) as {
      data: { items: object[] }
    }
    expect(data.items).toHaveLength(2)
  })

  test('expires after five minutes, and when the password is changed', async () => {
    const { services, secret } = await createOwner()
    const owner = new Map(services.cookies)
    const early = await signOutAndEnterPassword(services)
    await services.clock.advance(5 * MINUTE)
    const code = () => codeAt(secret, services.clock.now())
    expect((await sendCode(services, early, code())).status).toBe(401)
    const pending = await signOutAndEnterPassword(services)
    for (const [name, value] of owner) services.cookies.set(name, value)
    const password = 'a new long password'
    const fields = { current: PASSWORD, password, repeated: password }
    expect((await services.post('/profile/password', fields)).status).toBe(303)
    services.cookies.clear()
    expect((await sendCode(services, pending, code())).status).toBe(401)
    expect((await sendCode(services, 'forged', code())).status).toBe(401)
    expect(services.cookies.size).toBe(0)
  })

  test('allows ten wrong codes in 15 minutes', async () => {
    const { services, secret } = await createOwner()
    await services.clock.advance(MINUTE)
    const pending = await signOutAndEnterPassword(services)
    for (let n = 0; n < 10; n++) {
      expect((await sendCode(services, pending, '000000')).status).toBe(401)
    }
    const code = codeAt(secret, services.clock.now())
    const refused = await sendCode(services, pending, code)
    expect([refused.status, services.cookies.size]).toEqual([429, 0])
  })
})

describe('a person who is signed in', () => {
  test('changes the password, which ends the other sessions', async () => {
    const services = await createTestDashboard({ signIn: false })
    await join(services)
    const other = new Map(services.cookies)
    services.cookies.clear()
    await signInAs(services, EMAIL)
    const password = 'a new long password'
    const wrong = { current: 'wrong password 1', password, repeated: password }
    const refused = await services.post('/profile/password', wrong)
    expect([refused.status, refused.text.includes('Nothing was changed')]).toEqual([400, true])
    const fields = { current: PASSWORD, password, repeated: password }
    expect((await services.post('/profile/password', fields)).status).toBe(303)
    expect((await services.get('/profile')).text).toContain('Your other sessions have ended.')
    services.cookies.clear()
    for (const [name, value] of other) services.cookies.set(name, value)
    expect((await services.get('/profile')).status).toBe(303)
    services.cookies.clear()
    expect((await signInAs(services, EMAIL)).status).toBe(401)
    expect((await signInAs(services, EMAIL, password)).status).toBe(303)
  })

  test('replaces the recovery codes and removes the second factor only with the password', async () => {
    const { services, codes } = await createOwner()
    for (const path of ['/profile/recovery-codes', '/profile/two-factor/remove']) {
      expect((await services.post(path, { current: 'wrong password 1' })).status).toBe(400)
    }
    const renewed = await services.post('/profile/recovery-codes', { current: PASSWORD })
    const [fresh = ''] = recoveryCodesOf(renewed)
    const pending = await signOutAndEnterPassword(services)
    expect((await sendCode(services, pending, codes[0] ?? '')).status).toBe(401)
    expect((await sendCode(services, pending, fresh)).status).toBe(303)
    const removed = await services.post('/profile/two-factor/remove', { current: PASSWORD })
    expect(removed.status).toBe(303)
    services.cookies.clear()
    expect((await signInAs(services, EMAIL)).status).toBe(303)
  })
})
