import { beforeEach, describe, expect, test } from 'vitest'
import { DAY, HOUR, MINUTE, SECOND } from '../../../src/platform/clock.ts'
import { createTestDashboard } from '../../support/dashboard.ts'
import { createForgingProvider, type Forgery } from '../../support/identity-provider.ts'
import { hiddenField, invite, join, PASSWORD, signInAs, submit } from '../../support/people.ts'

type Provider = ReturnType<typeof createForgingProvider>
type Dashboard = Awaited<ReturnType<typeof createTestDashboard>>

const ANN = { email: 'ann@shop.example' }
const START = '/sign-in/oidc?next=%2Flists'

let provider: Provider
let services: Dashboard

beforeEach(async () => {
  provider = createForgingProvider()
  services = await createTestDashboard({ signIn: false, identityProvider: provider.connect })
})

/** Starts the sign-in. Returns the URL of the provider. */
const start = async (path = START): Promise<string | null> =>
  (await services.get(path)).headers.get('Location')

/** Signs in at the provider and comes back. */
async function signInWith(login: Parameters<Provider['login']>[1] = ANN, path = START) {
  const location = await start(path)
  return services.get(provider.login(location, login), CROSS_SITE)
}

const CROSS_SITE = { 'Sec-Fetch-Site': 'cross-site' }

const isSignedIn = async () => (await services.get('/sessions')).status === 200

const personOf = (id: string) =>
  services.database.db
    .selectFrom('person')
    .selectAll()
    .where('id', '=', id)
    .executeTakeFirstOrThrow()

/** The actions of the audit log, with those that belong to no account. */
async function auditActions(): Promise<string[]> {
  const rows = await services.database.db.selectFrom('audit').select('action').execute()
  return rows.map(({ action }) => action)
}

/** A second browser. */
function exchangeCookies(cookies: ReadonlyMap<string, string>): Map<string, string> {
  const before = new Map(services.cookies)
  services.cookies.clear()
  for (const [name, value] of cookies) services.cookies.set(name, value)
  return before
}

describe('an invited person', () => {
  test('joins with the first sign-in at the provider, and is known by issuer and subject then', async () => {
    const { id } = await invite(services, { role: 'viewer' })
    const done = await signInWith()
    expect([done.status, done.headers.get('Location')]).toEqual([303, '/lists'])
    expect(await isSignedIn()).toBe(true)
    expect(await personOf(id)).toMatchObject({
      oidc_issuer: 'https://login.example',
      oidc_subject: 'subject of Ann',
      invitation_hash: null,
      password: null,
    })
    expect(await auditActions()).toEqual(
      expect.arrayContaining(['person.joined', 'person.identity_linked', 'session.started']),
    )
    // From now on the address does not matter, and nor does whether it is verified.
    services.cookies.clear()
    const again = await signInWith({ email: 'ann@new.example', emailVerified: false })
    expect(again.headers.get('Location')).toBe('/lists')
    const { data } = (await services.json('/v1/people')) as { data: { people: object[] } }
    expect(data.people).toEqual([
      expect.objectContaining({ joined: true, identity_provider: true, two_factor: false }),
    ])
  })

  test('joins from the page of the invitation', async () => {
    const { path, id } = await invite(services)
    expect((await services.get(path)).text).toContain(`href="${path}/oidc"`)
    const done = await signInWith(ANN, `${path}/oidc`)
    expect([done.status, done.headers.get('Location')]).toEqual([303, '/overview'])
    expect((await personOf(id)).oidc_subject).toBe('subject of Ann')
    expect((await services.get(path)).status).toBe(404)
  })

  test.each([
    [
      'has another address',
      { email: 'eve@shop.example' },
      'no open invitation for eve@shop.example',
    ],
    ['has no address', {}, 'did not send a verified email address'],
    ['has an unverified address', { ...ANN, emailVerified: false }, 'did not send a verified'],
    [
      'has an address verified as text',
      { ...ANN, emailVerified: 'true' },
      'did not send a verified',
    ],
  ])('is not one who %s', async (_, login, sentence) => {
    const { id } = await invite(services)
    const refused = await signInWith(login)
    expect([refused.status, refused.text.includes(sentence)]).toEqual([401, true])
    expect(await isSignedIn()).toBe(false)
    expect((await personOf(id)).oidc_subject).toBeNull()
    expect(await auditActions()).toContain('session.refused')
  })

  test('needs the invited address, also with the link', async () => {
    const { path, id } = await invite(services)
    const refused = await signInWith({ email: 'eve@shop.example' }, `${path}/oidc`)
    expect([refused.status, refused.text.includes('this person has another one')]).toEqual([
      401,
      true,
    ])
    expect((await personOf(id)).oidc_subject).toBeNull()
  })

  test('needs an open invitation', async () => {
    const { id } = await invite(services)
    await services.clock.advance(7 * DAY)
    const refused = await signInWith()
    expect([refused.status, refused.text.includes('no open invitation')]).toEqual([401, true])
    expect((await personOf(id)).oidc_subject).toBeNull()
  })

  test('may have the address in the user info alone', async () => {
    await invite(services)
    provider.hasUserInfo = true
    expect((await signInWith()).status).toBe(303)
    expect(provider.requests.filter(path => path === '/userinfo')).toHaveLength(1)
    await signInWith()
    expect(provider.requests.filter(path => path === '/userinfo')).toHaveLength(1)
  })

  test('of several accounts chooses one', async () => {
    await services.addAccount('acc_2')
    await invite(services)
    const { id } = await invite(services, { accountId: 'acc_2', role: 'viewer' })
    const shown = await signInWith()
    expect(shown.text).toContain('Choose an account')
    const fields = { pending: hiddenField(shown, 'pending'), next: '/overview', person: id }
    const strange = await submit(services, '/sign-in/oidc/account', { ...fields, person: 'per_x' })
    expect(strange.status).toBe(404)
    expect(
      (await submit(services, '/sign-in/oidc/account', { ...fields, pending: 'x' })).status,
    ).toBe(401)
    expect(await isSignedIn()).toBe(false)
    expect((await submit(services, '/sign-in/oidc/account', fields)).status).toBe(303)
    expect((await services.get('/overview')).text).toContain('Signed in as Ann Lee (viewer)')
    await services.clock.advance(10 * MINUTE)
    services.cookies.clear()
    expect((await submit(services, '/sign-in/oidc/account', fields)).status).toBe(401)
  })
})

describe('nobody is signed in', () => {
  test('who was never invited', async () => {
    await invite(services, { email: 'bob@shop.example' })
    const refused = await signInWith()
    expect([refused.status, services.cookies.size]).toEqual([401, 0])
    const people = await services.database.db.selectFrom('person').select('id').execute()
    expect(people).toHaveLength(1)
  })

  test('with the address of a person who has a password and did not link it', async () => {
    const { id } = await join(services)
    services.cookies.clear()
    const refused = await signInWith()
    expect([refused.status, refused.text.includes('link Example Login under')]).toEqual([401, true])
    expect((await personOf(id)).oidc_subject).toBeNull()
  })

  test('who was removed, and the sessions end at once', async () => {
    const { id } = await invite(services)
    await signInWith()
    const path = `/v1/people/${id}`
    await services.request(path, { method: 'PATCH', body: { role: 'viewer' } })
    expect((await services.get('/audit')).status).toBe(403)
    await services.request(path, { method: 'DELETE' })
    expect(await isSignedIn()).toBe(false)
    expect((await signInWith()).status).toBe(401)
  })
})

describe('a person with a password', () => {
  /** Asks to link the identity; returns the URL of the provider. */
  async function askToLink(): Promise<string> {
    const shown = await services.post('/profile/identity', { current: PASSWORD })
    expect(shown.text).toContain('Continue to Example Login')
    return (/href="(https:\/\/login\.example[^"]+)"/.exec(shown.text)?.[1] ?? '').replaceAll(
      '&amp;',
      '&',
    )
  }

  test('links the identity while signed in, signs in with both, and removes the link', async () => {
    const { id } = await join(services)
    const done = await services.get(provider.login(await askToLink(), ANN), CROSS_SITE)
    expect(done.headers.get('Location')).toBe('/profile')
    expect((await personOf(id)).oidc_subject).toBe('subject of Ann')
    services.cookies.clear()
    expect((await signInWith()).status).toBe(303)
    services.cookies.clear()
    expect((await signInAs(services, ANN.email)).status).toBe(303)
    expect((await services.post('/profile/identity/remove', { current: 'wrong' })).status).toBe(400)
    expect((await services.post('/profile/identity/remove', { current: PASSWORD })).status).toBe(
      303,
    )
    expect((await personOf(id)).oidc_subject).toBeNull()
    expect(await auditActions()).toContain('person.identity_unlinked')
    services.cookies.clear()
    expect((await signInWith()).status).toBe(401)
  })

  test('needs the password to link, and a verified address', async () => {
    const { id } = await join(services)
    const refused = await services.post('/profile/identity', { current: 'wrong password 1' })
    expect([refused.status, refused.text.includes('login.example/')]).toEqual([400, false])
    for (const login of [{ email: 'eve@shop.example' }, { ...ANN, emailVerified: false }]) {
      const answer = await services.get(provider.login(await askToLink(), login), CROSS_SITE)
      expect(answer.status).toBe(401)
      expect((await personOf(id)).oidc_subject).toBeNull()
    }
  })

  test('links nothing once the session has ended, nor an identity of another person', async () => {
    const { id } = await join(services)
    const location = await askToLink()
    await services.database.db.deleteFrom('session').execute()
    const ended = await services.get(provider.login(location, ANN), CROSS_SITE)
    expect([ended.status, ended.text.includes('has ended in the meantime')]).toEqual([401, true])
    const other = await invite(services, { email: 'bob@shop.example' })
    services.cookies.clear()
    await signInWith({ email: 'bob@shop.example' })
    expect((await personOf(other.id)).oidc_subject).toBe('subject of Ann')
    services.cookies.clear()
    await signInAs(services, ANN.email)
    const taken = await services.get(provider.login(await askToLink(), ANN), CROSS_SITE)
    expect([taken.status, taken.text.includes('Another person')]).toEqual([401, true])
    expect((await personOf(id)).oidc_subject).toBeNull()
  })
})

describe('a forged answer signs nobody in', () => {
  const now = 1_780_315_200
  const forgeries: [string, Forgery][] = [
    ['of another issuer', { claims: { iss: 'https://evil.example' } }],
    ['for another audience', { claims: { aud: 'another-client' } }],
    [
      'for several audiences, authorized for another',
      { claims: { aud: ['ev-client', 'b'], azp: 'b' } },
    ],
    ['that has expired', { claims: { iat: now - 7_200, exp: now - 3_600 } }],
    ['without an expiry', { claims: { exp: undefined } }],
    ['of the future', { claims: { nbf: now + 7_200 } }],
    ['with the nonce of another sign-in', { claims: { nonce: 'another' } }],
    ['without a nonce', { claims: { nonce: undefined } }],
    ['without a subject', { claims: { sub: undefined } }],
    ['that is not signed', { signature: 'none' }],
    ['that another key signed', { signature: 'other' }],
    ['that the client secret signed', { signature: 'secret' }],
  ]
  test.each(forgeries)('with an ID token %s', async (_, forgery) => {
    await invite(services)
    const refused = await signInWith({ ...ANN, forgery })
    expect([refused.status, refused.text.includes('does not belong to this sign-in')]).toEqual([
      401,
      true,
    ])
    expect(await isSignedIn()).toBe(false)
    expect(await auditActions()).toContain('session.refused')
    // The same person signs in with an honest one.
    expect((await signInWith()).status).toBe(303)
  })

  test('with another state, none, or an answer of another issuer', async () => {
    await invite(services)
    for (const change of [
      (url: URLSearchParams) => url.set('state', 'another'),
      (url: URLSearchParams) => url.delete('state'),
      (url: URLSearchParams) => url.append('state', 'a second one'),
      (url: URLSearchParams) => url.set('iss', 'https://evil.example'),
      (url: URLSearchParams) => url.delete('code'),
    ]) {
      const answer = new URL(provider.login(await start(), ANN), 'https://ev.test')
      change(answer.searchParams)
      const refused = await services.get(`${answer.pathname}${answer.search}`, CROSS_SITE)
      expect([answer.search, refused.status]).toEqual([answer.search, 401])
      expect(await isSignedIn()).toBe(false)
    }
    expect(provider.redeemed).toHaveLength(0)
  })

  test('with a code that was used', async () => {
    await invite(services)
    const location = await start()
    const own = new Map(services.cookies)
    const answer = provider.login(location, ANN)
    expect((await services.get(answer, CROSS_SITE)).status).toBe(303)
    services.cookies.clear()
    // Without the cookie, and with a copy of it.
    expect((await services.get(answer, CROSS_SITE)).status).toBe(401)
    exchangeCookies(own)
    const replayed = await services.get(answer, CROSS_SITE)
    expect([replayed.status, await isSignedIn()]).toEqual([401, false])
  })

  test('in another browser, whichever of two callbacks it gets', async () => {
    await invite(services)
    const ofAnn = provider.login(await start(), ANN)
    const ann = exchangeCookies(new Map())
    const ofEve = provider.login(await start(), {
      sub: 'subject of Eve',
      email: 'eve@shop.example',
    })
    // Eve opens the callback of Ann, as if she had read it; Ann that of Eve, as if she was lured.
    expect((await services.get(ofAnn, CROSS_SITE)).status).toBe(401)
    expect(await isSignedIn()).toBe(false)
    exchangeCookies(ann)
    expect((await services.get(ofEve, CROSS_SITE)).status).toBe(401)
    expect(await isSignedIn()).toBe(false)
    expect(provider.redeemed).toHaveLength(0)
  })

  test('with a stolen cookie: it is sealed, and useless without the answer that belongs to it', async () => {
    await invite(services)
    await start()
    const stolen = services.cookies.get('__Host-ev_oidc') ?? ''
    expect(Buffer.from(stolen.slice(2), 'base64url').toString('latin1')).not.toMatch(/state|nonce/)
    // A thief who signs in at the provider gets a code for another state, nonce and challenge.
    services.cookies.clear()
    const answer = provider.login(await start(), ANN)
    services.cookies.set('__Host-ev_oidc', stolen)
    expect((await services.get(answer, CROSS_SITE)).status).toBe(401)
    // An altered cookie is none.
    services.cookies.set(
      '__Host-ev_oidc',
      stolen.replace(/.{9}$/, end => end.replace(/^./, one => (one === 'A' ? 'B' : 'A'))),
    )
    const altered = await services.get('/sign-in/oidc/callback?code=x&state=y', CROSS_SITE)
    expect([altered.status, altered.text.includes('has expired, or was started')]).toEqual([
      401,
      true,
    ])
    expect(provider.redeemed).toHaveLength(0)
  })

  test('after ten minutes', async () => {
    await invite(services)
    const answer = provider.login(await start(), ANN)
    await services.clock.advance(10 * MINUTE)
    expect((await services.get(answer, CROSS_SITE)).status).toBe(401)
    expect(provider.redeemed).toHaveLength(0)
  })

  test('more than ten times in a minute', async () => {
    await invite(services)
    for (let n = 0; n < 10; n++) {
      expect((await services.get('/sign-in/oidc/callback?code=x&state=y')).status).toBe(401)
    }
    const location = await start()
    const refused = await services.get(provider.login(location, ANN), CROSS_SITE)
    expect([refused.status, Number(refused.headers.get('Retry-After'))]).toEqual([
      429,
      expect.any(Number),
    ])
    await services.clock.advance(MINUTE)
    expect((await signInWith()).status).toBe(303)
  })
})

describe('the start', () => {
  test('is bound to the browser by a cookie that scripts cannot read', async () => {
    await invite(services)
    const answer = await services.get(START)
    const location = new URL(answer.headers.get('Location') ?? '')
    expect(location.origin + location.pathname).toBe('https://login.example/authorize')
    expect(Object.fromEntries(location.searchParams)).toEqual({
      response_type: 'code',
      client_id: 'ev-client',
      redirect_uri: 'https://ev.test/sign-in/oidc/callback',
      scope: 'openid email',
      state: expect.any(String),
      nonce: expect.any(String),
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: 'S256',
    })
    const [cookie = ''] = answer.headers.getSetCookie()
    expect(cookie).toMatch(
      /^__Host-ev_oidc=[^;]+; Max-Age=600; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
    )
  })

  test('by another site shows the sign-in page, so that nobody is signed in unasked', async () => {
    await invite(services)
    for (const headers of [
      { 'Sec-Fetch-Site': 'cross-site' },
      { 'Sec-Fetch-Site': 'same-site' },
      { 'Sec-Fetch-Site': 'none' },
    ]) {
      const answer = await services.get(START, headers)
      expect(answer.headers.get('Location')).toBe('/sign-in?next=%2Flists')
    }
    expect(services.cookies.size).toBe(0)
    expect(provider.requests).toEqual([])
  })

  test.each([
    ['https://ev.test/sign-in', 'https://login.example/authorize'],
    ['https://evil.example/', '/sign-in'],
    ['', '/sign-in'],
  ])('of a browser without Sec-Fetch-Site goes by its Referer: %s', async (Referer, target) => {
    await invite(services)
    const headers = Referer === '' ? {} : { Referer }
    const request = new Request('https://ev.test/sign-in/oidc', { headers })
    const bindings = { incoming: { socket: { remoteAddress: '192.0.2.1' }, httpVersionMajor: 1 } }
    const answer = await services.settled(
      Promise.resolve(services.app.fetch(request, bindings as never)),
    )
    expect(answer.headers.get('Location')?.split('?')[0]).toBe(target)
  })

  test('of an invitation that is not open shows its page', async () => {
    for (const token of ['strange', 'a%0Ab', '..%2Fkeys']) {
      const answer = await services.get(`/invitation/${token}/oidc`)
      expect([answer.status, answer.headers.get('Location')]).toEqual([303, `/invitation/${token}`])
    }
  })

  test('opens only pages of this service afterwards', async () => {
    await invite(services)
    const done = await signInWith(ANN, '/sign-in/oidc?next=https%3A%2F%2Fevil.example')
    expect(done.headers.get('Location')).toBe('/overview')
  })

  test('is offered once people are invited, and not without a provider', async () => {
    expect((await services.get('/sign-in')).text).not.toContain('Example Login')
    await invite(services)
    expect((await services.get('/sign-in')).text).toContain('Sign in with Example Login')
    const plain = await createTestDashboard({ signIn: false })
    await invite(plain)
    expect((await plain.get('/sign-in')).text).not.toContain('/sign-in/oidc')
    expect((await plain.get(START)).status).toBe(404)
    expect((await plain.get('/sign-in/oidc/callback?code=x&state=y')).status).toBe(404)
  })
})

describe('a provider that does not work', () => {
  test.each(['refused', 'timeout', 'error_page', 'other_issuer'] as const)(
    'at the start (%s) is named, and passwords still work',
    async outage => {
      await join(services)
      services.cookies.clear()
      provider.outage = outage
      const answer = await services.get(START)
      expect([answer.status, answer.text.includes('Example Login does not answer')]).toEqual([
        503,
        true,
      ])
      // Addresses of the network are in the log only.
      expect(answer.text).not.toContain('10.0.0.7')
      expect((await signInAs(services, ANN.email)).status).toBe(303)
    },
  )

  test('after the start costs no attempt', async () => {
    await invite(services)
    for (let n = 0; n < 11; n++) {
      provider.outage = null
      const location = await start()
      provider.outage = 'timeout'
      const answer = await services.get(provider.login(location, ANN), CROSS_SITE)
      expect([answer.status, await isSignedIn()]).toEqual([503, false])
    }
    provider.outage = null
    expect((await signInWith()).status).toBe(303)
  })

  test('is asked at most once in ten seconds, and its metadata once an hour', async () => {
    await invite(services)
    provider.outage = 'refused'
    await services.get(START)
    await services.get(START)
    expect(provider.requests).toHaveLength(1)
    await services.clock.advance(10 * SECOND)
    provider.outage = null
    await services.get(START)
    await services.get(START)
    expect(provider.requests).toHaveLength(2)
    await services.clock.advance(HOUR)
    await services.get(START)
    expect(provider.requests).toHaveLength(3)
  })

  test('that declines is quoted, cleaned, and only in answer to this sign-in', async () => {
    await invite(services)
    const state = new URL((await start()) ?? '').searchParams.get('state') ?? ''
    const text = `<b>No\u0000 access</b>${'x'.repeat(500)}`
    const answer = new URLSearchParams({ error: 'access_denied', error_description: text, state })
    const declined = await services.get(`/sign-in/oidc/callback?${answer}`, CROSS_SITE)
    expect(declined.status).toBe(401)
    expect(declined.text).toContain('&lt;b&gt;No\uFFFD access')
    expect(declined.text).not.toContain('x'.repeat(200))
    // A link of a stranger cannot put text into the page.
    const forged = new URLSearchParams({ error: 'e', error_description: 'call 555', state: 'x' })
    await start()
    const refused = await services.get(`/sign-in/oidc/callback?${forged}`, CROSS_SITE)
    expect([refused.status, refused.text.includes('call 555')]).toEqual([401, false])
  })
})
