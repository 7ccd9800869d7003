import {
  createHash,
  createHmac,
  generateKeyPairSync,
  type KeyObject,
  sign as signBytes,
} from 'node:crypto'
import {
  createIdentityProvider,
  type IdentityProvider,
} from '../../src/accounts/people/identity-provider.ts'
import { openProviderClient } from '../../src/accounts/people/openid.ts'
import type { PolicyFetch } from '../../src/outbound/policy-fetch.ts'
import { TransportFault } from '../../src/outbound/transport-error.ts'
import { type Clock, SECOND } from '../../src/platform/clock.ts'
import type { Log } from '../../src/platform/log.ts'
import type { Random } from '../../src/platform/random.ts'

const ISSUER = 'https://login.example'
const CLIENT_ID = 'ev-client'
const CLIENT_SECRET = 'a secret for tests of ev'
const REDIRECT_URI = 'https://ev.test/sign-in/oidc/callback'

/** What a test changes about an ID token. */
export type Forgery = {
  /** Replace the claims; undefined removes one. */
  readonly claims?: Readonly<Record<string, unknown>>
  /** `other`: a key that is not in the key set. `secret`: HMAC with the client secret. */
  readonly signature?: 'own' | 'other' | 'none' | 'secret'
}

type Login = {
  readonly sub?: string
  readonly email?: string
  readonly emailVerified?: unknown
  readonly forgery?: Forgery
}

type Grant = Login & { readonly nonce: string; readonly challenge: string }

const keyPair = () => generateKeyPairSync('ec', { namedCurve: 'P-256' })

/**
 * Creates an identity provider in this process, whose answers a test can forge. `outage` is what
 * requests meet instead of an answer.
 */
export function createForgingProvider() {
  const [own, other] = [keyPair(), keyPair()]
  const grants = new Map<string, Grant>()
  const requests: string[] = []
  const state = {
    outage: null as 'refused' | 'timeout' | 'error_page' | 'other_issuer' | null,
    /** Whether the address is only in the user info. */
    hasUserInfo: false,
    redeemed: [] as Grant[],
  }
  let clock: Clock | null = null

  const fetch: PolicyFetch = async (url, { headers, body }) => {
    const { pathname } = new URL(url)
    requests.push(pathname)
    switch (state.outage) {
      case 'refused':
        throw new TransportFault('connection_failed', '10.0.0.7 port 443 refused the connection.')
      case 'timeout':
        throw new TransportFault('timeout', 'No response within 10 s.')
      case 'error_page':
        return new Response('<h1>Bad gateway</h1>', {
          status: 502,
          headers: { 'content-type': 'text/html' },
        })
      case 'other_issuer':
        return Response.json({ ...metadata(), issuer: 'https://evil.example' })
      case null:
        break
      default:
        return state.outage satisfies never
    }
    switch (pathname) {
      case '/.well-known/openid-configuration':
        return Response.json(metadata())
      case '/jwks':
        return Response.json({ keys: [own.publicKey.export({ format: 'jwk' })] })
      case '/token':
        return redeem(headers.authorization ?? '', body ?? new URLSearchParams())
      case '/userinfo': {
        const [grant] = state.redeemed.slice(-1)
        return Response.json({ sub: subOf(grant), email: grant?.email, email_verified: true })
      }
      default:
        return new Response(null, { status: 404 })
    }
  }

  const metadata = () => ({
    issuer: ISSUER,
    authorization_endpoint: `${ISSUER}/authorize`,
    token_endpoint: `${ISSUER}/token`,
    jwks_uri: `${ISSUER}/jwks`,
    userinfo_endpoint: `${ISSUER}/userinfo`,
    id_token_signing_alg_values_supported: ['ES256', 'HS256', 'none'],
    response_types_supported: ['code'],
  })

  function redeem(authorization: string, form: URLSearchParams): Response {
    const code = form.get('code') ?? ''
    const grant = grants.get(code)
    grants.delete(code)
    const isRight =
      grant !== undefined &&
      isClient(authorization) &&
      form.get('redirect_uri') === REDIRECT_URI &&
      sha256(form.get('code_verifier') ?? '') === grant.challenge
    if (!isRight) return Response.json({ error: 'invalid_grant' }, { status: 400 })
    state.redeemed.push(grant)
    return Response.json({
      access_token: 'an access token',
      token_type: 'Bearer',
      id_token: idToken(grant),
    })
  }

  function idToken({ nonce, forgery = {}, ...login }: Grant): string {
    const now = Math.floor((clock as Clock).now() / SECOND)
    const email = { email: login.email, email_verified: login.emailVerified ?? true }
    const claims = {
      iss: ISSUER,
      aud: CLIENT_ID,
      sub: subOf(login),
      iat: now,
      exp: now + 300,
      nonce,
      ...(state.hasUserInfo ? {} : email),
      ...forgery.claims,
    }
    return signToken(claims, forgery.signature ?? 'own')
  }

  function signToken(claims: object, signature: NonNullable<Forgery['signature']>): string {
    const alg = { own: 'ES256', other: 'ES256', none: 'none', secret: 'HS256' }[signature]
    const text = `${encode({ alg, typ: 'JWT' })}.${encode(claims)}`
    const key = signature === 'other' ? other.privateKey : own.privateKey
    switch (signature) {
      case 'none':
        return `${text}.`
      case 'secret':
        return `${text}.${createHmac('sha256', CLIENT_SECRET).update(text).digest('base64url')}`
      default:
        return `${text}.${signEs256(text, key)}`
    }
  }

  return Object.assign(state, {
    /** The paths of the requests of ev. */
    requests,
    /** Connects a dashboard with the provider. */
    connect(deps: { clock: Clock; random: Random; log: Log }): IdentityProvider {
      clock = deps.clock
      const settings = {
        issuer: ISSUER,
        clientId: CLIENT_ID,
        clientSecret: CLIENT_SECRET,
        name: 'Example Login',
      }
      return createIdentityProvider(settings, {
        ...deps,
        openClient: () =>
          openProviderClient(settings, { clock: deps.clock, fetch, redirectUri: REDIRECT_URI }),
      })
    },
    /** Signs a person in at the provider. Returns the path to which the browser is sent back. */
    login(location: string | null, login: Login = {}): string {
      const { searchParams } = new URL(location ?? '')
      const code = `code ${grants.size + state.redeemed.length}`
      const challenge = searchParams.get('code_challenge') ?? ''
      grants.set(code, { nonce: searchParams.get('nonce') ?? '', challenge, ...login })
      const answer = new URLSearchParams({ code, state: searchParams.get('state') ?? '' })
      return `/sign-in/oidc/callback?${answer}`
    },
  })
}

/** RFC 6749 §2.3.1: both parts are form-encoded. */
function isClient(authorization: string): boolean {
  const text = Buffer.from(authorization.replace(/^Basic /, ''), 'base64').toString()
  const [id, secret] = text.split(':').map(part => new URLSearchParams(`v=${part}`).get('v'))
  return id === CLIENT_ID && secret === CLIENT_SECRET
}

const subOf = (login: Pick<Login, 'sub'> | undefined) => login?.sub ?? 'subject of Ann'
const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
const sha256 = (text: string) => createHash('sha256').update(text).digest('base64url')
const signEs256 = (text: string, key: KeyObject) =>
  signBytes('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')
