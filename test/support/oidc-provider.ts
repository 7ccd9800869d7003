import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import Provider, { type Configuration } from 'oidc-provider'
import { onFileFinished } from './cleanup.ts'

export const CLIENT = { id: 'ev-client', secret: 'a-secret-for-tests-of-ev' }

/** A person at the provider. */
export type ProviderAccount = {
  readonly sub: string
  readonly email: string
  readonly email_verified: boolean
}

/**
 * Starts a certified OpenID provider on loopback, closed at the end of the test file. Whoever signs in
 * there is `account`. With the host `localhost`, it is another site than 127.0.0.1 for a browser.
 */
export async function startOidcProvider(redirectUri: string, host = '127.0.0.1') {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const issuer = `http://${host}:${(server.address() as AddressInfo).port}`
  const state = { account: null as ProviderAccount | null }
  const provider = new Provider(
    issuer,
    configuration(redirectUri, () => state.account),
  )
  const answer = provider.callback()

  /** The sign-in page: the person agrees at once, or declines without an account. */
  async function interact(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { account } = state
    if (account === null) {
      const error = { error: 'access_denied', error_description: 'End-User aborted interaction' }
      return provider.interactionFinished(request, response, error)
    }
    const grant = new provider.Grant({ accountId: account.sub, clientId: CLIENT.id })
    grant.addOIDCScope('openid email')
    const consent = { grantId: await grant.save() }
    const login = { accountId: account.sub }
    return provider.interactionFinished(request, response, { login, consent })
  }

  server.on('request', (request, response) => {
    if (!request.url?.startsWith('/interaction/')) return void answer(request, response)
    interact(request, response).catch(() => response.writeHead(500).end())
  })
  const close = async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  onFileFinished(async () => {
    if (server.listening) await close()
  })

  /** Follows the pages of the provider as a browser does. Returns the URL back to the client. */
  async function browse(start: string): Promise<string> {
    const cookies = new Map<string, string>()
    let url = start
    while (url.startsWith(issuer)) {
      const jar = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
      const page = await fetch(url, { redirect: 'manual', headers: { cookie: jar } })
      for (const cookie of page.headers.getSetCookie()) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? []
        cookies.set(name, value)
      }
      const location = page.headers.get('location')
      if (location === null) throw new Error(`${url}: ${page.status} ${await page.text()}`)
      url = new URL(location, url).href
    }
    return url
  }

  return Object.assign(state, { issuer, browse, close })
}

const configuration = (
  redirectUri: string,
  getAccount: () => ProviderAccount | null,
): Configuration => ({
  clients: [{ client_id: CLIENT.id, client_secret: CLIENT.secret, redirect_uris: [redirectUri] }],
  claims: { openid: ['sub'], email: ['email', 'email_verified'] },
  features: { devInteractions: { enabled: false } },
  pkce: { required: () => true },
  jwks: { keys: [signingKey()] },
  ttl: { Interaction: 600, Grant: 600, Session: 600, AccessToken: 600, IdToken: 600 },
  cookies: { keys: ['a key for tests'] },
  interactions: { url: (_, { uid }) => `/interaction/${uid}` },
  findAccount: (_, sub) => {
    const account = getAccount()
    if (account?.sub !== sub) return undefined
    return { accountId: sub, claims: async () => account }
  },
})

/** RS256, the default of OpenID Connect. */
const signingKey = () => ({
  ...generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey.export({ format: 'jwk' }),
  use: 'sig',
  alg: 'RS256',
})
