import {
  AuthorizationResponseError,
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  Configuration,
  calculatePKCECodeChallenge,
  clockSkew,
  customFetch,
  discovery,
  enableNonRepudiationChecks,
  fetchUserInfo,
  getJwksCache,
  ResponseBodyError,
  type ServerMetadata,
  setJwksCache,
} from 'openid-client'
import type { PolicyFetch } from '../../outbound/policy-fetch.ts'
import { TransportFault } from '../../outbound/transport-error.ts'
import { type Clock, SECOND, systemClock } from '../../platform/clock.ts'
import { EvError } from '../../platform/error.ts'
import { sanitizeText } from '../../platform/text.ts'
import type {
  Challenge,
  FaultReason,
  IdentityProviderSettings,
  ProviderClient,
} from './identity-provider.ts'

type ClientDeps = {
  readonly clock: Clock
  readonly fetch: PolicyFetch
  /** The address at which the provider returns the browser, as registered there. */
  readonly redirectUri: string
}

/** Reads the metadata of the provider (OpenID Connect Discovery 1.0) and returns its client. */
export async function openProviderClient(
  settings: IdentityProviderSettings,
  { clock, fetch, redirectUri }: ClientDeps,
): Promise<ProviderClient> {
  const server = new URL(settings.issuer)
  // Only addresses of loopback may have plain HTTP: `fetch` refuses all others.
  const isPlain = server.protocol === 'http:'
  const send: Fetch = (url, { method, headers, body }) =>
    fetch(url, { method, headers, body: body instanceof URLSearchParams ? body : null })
  const discovered = await discovery(server, settings.clientId, settings.clientSecret, undefined, {
    [customFetch]: send,
    execute: isPlain ? [allowInsecureRequests] : [],
  })
  const metadata: ServerMetadata = discovered.serverMetadata()
  requireUsable(metadata, settings)
  let keys: ReturnType<typeof getJwksCache>

  /** The configuration is new for each sign-in, since the library fixes the time difference in it. */
  function configure(): Configuration {
    const client = {
      client_secret: settings.clientSecret,
      [clockSkew]: Math.round((clock.now() - systemClock.now()) / SECOND),
    }
    const config = new Configuration(metadata, settings.clientId, client, clientAuth())
    config[customFetch] = send
    if (isPlain) allowInsecureRequests(config)
    // Without it, the signature of a token that arrives over TLS is not verified.
    enableNonRepudiationChecks(config)
    if (keys !== undefined) setJwksCache(config, keys)
    return config
  }

  /** OpenID Connect Core 1.0 §9: `client_secret_basic` is the default. */
  function clientAuth(): ClientAuth {
    const methods = metadata.token_endpoint_auth_methods_supported
    const isBasic = methods === undefined || methods.includes('client_secret_basic')
    return (isBasic ? ClientSecretBasic : ClientSecretPost)(settings.clientSecret)
  }

  return {
    async authorizationUrl({ state, nonce, verifier }) {
      return buildAuthorizationUrl(configure(), {
        redirect_uri: redirectUri,
        scope: 'openid email',
        state,
        nonce,
        code_challenge: await calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      })
    },
    async redeem(answer, { state, nonce, verifier }: Challenge) {
      const config = configure()
      const url = new URL(redirectUri)
      url.search = answer.toString()
      const tokens = await authorizationCodeGrant(config, url, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      })
      keys = getJwksCache(config)
      const claims = tokens.claims()
      if (claims === undefined) throw new EvError('internal', 'the ID token has no claims')
      return {
        issuer: claims.iss,
        subject: claims.sub,
        async findEmail() {
          const isComplete = claims.email !== undefined && claims.email_verified !== undefined
          // Many providers have them only in the user info.
          const source =
            !isComplete && metadata.userinfo_endpoint !== undefined
              ? await fetchUserInfo(config, tokens.access_token, claims.sub)
              : claims
          const { email, email_verified: isVerified } = source
          return typeof email === 'string' && isVerified === true ? email : null
        },
      }
    },
    describe,
  }
}

type Fetch = NonNullable<Configuration[typeof customFetch]>

/** Throws EvError('bad_config') if the provider is another one, or cannot do the code flow. */
function requireUsable(metadata: ServerMetadata, { issuer }: IdentityProviderSettings): void {
  // The library accepts templates of providers whose issuer differs from the one that was asked for.
  if (new URL(metadata.issuer).href !== new URL(issuer).href) {
    throw new EvError(
      'bad_config',
      `Its metadata has the issuer ${metadata.issuer}, not ${issuer}.`,
    )
  }
  const missing = REQUIRED.filter(name => metadata[name] === undefined)
  if (missing.length > 0)
    throw new EvError('bad_config', `Its metadata lacks ${missing.join(' and ')}.`)
}

const REQUIRED = ['authorization_endpoint', 'token_endpoint', 'jwks_uri'] as const

/** Codes of the library for an answer that is not an answer of a provider, as during an outage. */
const OUTAGE_CODES: ReadonlySet<unknown> = new Set([
  ...['OAUTH_RESPONSE_IS_NOT_CONFORM', 'OAUTH_RESPONSE_IS_NOT_JSON', 'OAUTH_PARSE_ERROR'],
  ...['OAUTH_TIMEOUT', 'OAUTH_ABORT'],
])

/** Returns the kind of a fault and what the provider says about it, cleaned. */
function describe(error: unknown): FaultReason {
  if (error instanceof AuthorizationResponseError) return declined(error)
  if (error instanceof ResponseBodyError) {
    const reason = sanitizeText(error.error_description ?? error.error, REASON_LENGTH_MAX)
    // Other errors are about the registration of ev, such as a wrong secret.
    return { fault: error.error === 'invalid_grant' ? 'invalid' : 'unavailable', reason }
  }
  const isOutage =
    hasTransportFault(error) ||
    (error instanceof Error && 'code' in error && OUTAGE_CODES.has(error.code))
  return isOutage ? UNAVAILABLE : { fault: 'invalid', reason: null }
}

const UNAVAILABLE: FaultReason = { fault: 'unavailable', reason: null }

/** RFC 6749 §4.1.2.1: the description is for the developer of the client, so for an admin. */
function declined({ error, error_description: text }: AuthorizationResponseError): FaultReason {
  const isOutage = error === 'server_error' || error === 'temporarily_unavailable'
  if (isOutage) return UNAVAILABLE
  return { fault: 'declined', reason: sanitizeText(text ?? error, REASON_LENGTH_MAX) }
}

const REASON_LENGTH_MAX = 200

function hasTransportFault(error: unknown): boolean {
  for (let one = error; one instanceof Error; one = one.cause) {
    if (one instanceof TransportFault) return true
  }
  return false
}
