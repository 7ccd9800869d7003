import { describe, expect, test } from 'vitest'
import { recordingLog } from '../support/log.ts'
import { CLIENT, type ProviderAccount, startOidcProvider } from '../support/oidc-provider.ts'
import { createWiredService } from '../support/wired-service.ts'

const REDIRECT_URI = 'https://ev.example.com/sign-in/oidc/callback'
const ANN: ProviderAccount = { sub: 'u-1', email: 'Ann@shop.example', email_verified: true }

type Wired = Awaited<ReturnType<typeof createWiredService>>

const settingsFor = (issuer: string) => ({
  'oidc-issuer': issuer,
  'oidc-client-id': CLIENT.id,
  'oidc-client-secret': CLIENT.secret,
  'oidc-name': 'Example Login',
  'oidc-allow-ranges': ['127.0.0.1'],
})

/** A browser at the dashboard of a service. */
function openBrowser({ fetch }: Wired) {
  const cookies = new Map<string, string>()
  return {
    cookies,
    async get(path: string, site = 'same-origin'): Promise<Response> {
      const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
      const headers = { cookie, 'Sec-Fetch-Site': site }
      const answer = await fetch(new URL(path, 'https://ev.example.com').href, { headers })
      for (const one of answer.headers.getSetCookie()) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(one) ?? []
        if (/max-age=0\b/i.test(one)) cookies.delete(name)
        else cookies.set(name, value)
      }
      return answer
    },
  }
}

/** Sends a request with the key of the account. */
const send = ({ fetch, key }: Wired, method: string, path: string, body?: object) =>
  fetch(`https://ev.example.com${path}`, {
    method,
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })

/** Invites a person, whose ID is returned. */
async function invite(wired: Wired, email = 'ann@shop.example'): Promise<string> {
  const body = { name: 'Ann Lee', email, role: 'viewer' }
  const response = await send(wired, 'POST', '/v1/people', body)
  return ((await response.json()) as { data: { id: string } }).data.id
}

describe('with a provider on this machine', () => {
  async function open(account: ProviderAccount | null = ANN) {
    const provider = await startOidcProvider(REDIRECT_URI)
    provider.account = account
    const wired = await createWiredService({ file: settingsFor(provider.issuer) })
    const browser = openBrowser(wired)
    /** Signs in; returns the answer to the callback and its URL. */
    async function signIn() {
      const started = await browser.get('/sign-in/oidc?next=/lists')
      const back = await provider.browse(started.headers.get('location') ?? '')
      return { back, answer: await browser.get(back, 'cross-site') }
    }
    return { provider, wired, browser, signIn }
  }

  test('an invited person joins, signs in again, and no longer once removed', async () => {
    const { wired, browser, signIn } = await open()
    const id = await invite(wired)
    const { answer, back } = await signIn()
    expect(back).toMatch(/^https:\/\/ev\.example\.com\/sign-in\/oidc\/callback\?code=/)
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/lists'])
    expect(await (await browser.get('/overview')).text()).toContain('Signed in as Ann Lee (viewer)')
    browser.cookies.clear()
    expect((await signIn()).answer.status).toBe(303)
    expect((await send(wired, 'DELETE', `/v1/people/${id}`)).status).toBe(204)
    expect((await browser.get('/overview')).status).toBe(303)
    browser.cookies.clear()
    expect((await signIn()).answer.status).toBe(401)
  })

  test('a code is accepted once', async () => {
    const { provider, wired, browser } = await open()
    await invite(wired)
    const started = await browser.get('/sign-in/oidc')
    const kept = new Map(browser.cookies)
    const back = await provider.browse(started.headers.get('location') ?? '')
    expect((await browser.get(back, 'cross-site')).status).toBe(303)
    browser.cookies.clear()
    for (const [name, value] of kept) browser.cookies.set(name, value)
    const replayed = await browser.get(back, 'cross-site')
    expect([replayed.status, browser.cookies.has('__Host-ev_session')]).toEqual([401, false])
  })

  test('nobody else is signed in', async () => {
    const { provider, wired, browser, signIn } = await open({ ...ANN, email_verified: false })
    await invite(wired)
    expect((await signIn()).answer.status).toBe(401)
    provider.account = { ...ANN, email: 'eve@shop.example' }
    expect((await signIn()).answer.status).toBe(401)
    provider.account = null
    const { answer } = await signIn()
    expect(await answer.text()).toContain('End-User aborted interaction')
    expect([answer.status, browser.cookies.has('__Host-ev_session')]).toEqual([401, false])
  })

  test('that stops, the page says so', async () => {
    const { provider, wired, browser } = await open()
    await invite(wired)
    const started = await browser.get('/sign-in/oidc')
    const back = await provider.browse(started.headers.get('location') ?? '')
    await provider.close()
    const answer = await browser.get(back, 'cross-site')
    expect([
      answer.status,
      (await answer.text()).includes('Example Login does not answer'),
    ]).toEqual([503, true])
  })
})

describe('the settings', () => {
  const all = settingsFor('https://login.example.com')

  test.each<[string, object, RegExp]>([
    [
      'an issuer alone',
      { 'oidc-issuer': all['oidc-issuer'] },
      /Set EV_OIDC_CLIENT_ID and EV_OIDC_CLIENT_SECRET too, or remove EV_OIDC_ISSUER/,
    ],
    ['no secret', { ...all, 'oidc-client-secret': undefined }, /Set EV_OIDC_CLIENT_SECRET too/],
    ['a name alone', { 'oidc-name': 'Example' }, /or remove EV_OIDC_NAME\./],
    [
      'plain HTTP that is not allowed',
      { ...all, 'oidc-issuer': 'http://127.0.0.1:4000', 'oidc-allow-ranges': undefined },
      /must begin with https:/,
    ],
    [
      'a port of another service',
      { ...all, 'oidc-issuer': 'https://login.example.com:5432' },
      /Port 5432 is not allowed/,
    ],
  ])('with %s are refused at start, and the secret is not repeated', async (_, file, message) => {
    const refused = await createWiredService({ file: { ...file } }).then(
      () => null,
      error => error as { code: string; message: string },
    )
    expect(refused).toMatchObject({ code: 'bad_config', message: expect.stringMatching(message) })
    expect(refused?.message).not.toContain(CLIENT.secret)
  })

  test('need HTTPS, without which browsers drop the cookies', async () => {
    const refused = createWiredService({ file: all, baseUrl: 'http://ev.internal:8080' })
    await expect(refused).rejects.toThrow(
      /needs HTTPS, but the URL of the service is http:\/\/ev\.internal:8080/,
    )
  })

  test('for an address of a private network need its range', async () => {
    const { log, lines } = recordingLog()
    const file = { ...all, 'oidc-issuer': 'https://10.0.0.7' }
    const wired = await createWiredService({ file, log })
    const answer = await openBrowser(wired).get('/sign-in/oidc')
    expect([answer.status, (await answer.text()).includes('10.0.0.7')]).toEqual([503, false])
    expect(JSON.stringify(lines)).toContain('The address 10.0.0.7 is not public.')
  })
})
