import {
  createIdentityProvider,
  type IdentityProvider,
  OIDC_CALLBACK,
} from '../accounts/people/identity-provider.ts'
import { type Config, SETTINGS, type Setting, type Settings } from '../config/settings.ts'
import type { Resolver } from '../engine/dns/resolver.ts'
import { createIpPolicy } from '../engine/smtp/dial-policy.ts'
import { createPolicyFetch } from '../outbound/policy-fetch.ts'
import { parseDestination } from '../outbound/url-policy.ts'
import type { Clock } from '../platform/clock.ts'
import { EvError } from '../platform/error.ts'
import { joinWords } from '../platform/format.ts'
import { isLoopbackHost } from '../platform/ip.ts'
import type { Log } from '../platform/log.ts'
import type { Random } from '../platform/random.ts'

type ProviderDeps = {
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly resolver: Resolver
  /** CA certificate from `readWebhookCa`. */
  readonly ca: string | null
  /** The public URL of the service, to which the provider sends people back. */
  readonly baseUrl: string
}

/**
 * Builds the sign-in with the identity provider; null if none is set. Sends nothing until someone signs
 * in. Throws EvError('bad_config') if the settings cannot work.
 */
export function composeIdentityProvider(
  config: Config,
  { clock, random, log, resolver, ca, baseUrl }: ProviderDeps,
): IdentityProvider | null {
  const { oidcIssuer: issuer, oidcClientId: clientId, oidcClientSecret: clientSecret } = config
  if (issuer === null || clientId === null || clientSecret === null) {
    requireNone(config)
    return null
  }
  const mayDial = createIpPolicy(config.oidcAllowRanges)
  requireDestination(issuer, mayDial)
  requireSecureBaseUrl(baseUrl)
  const settings = { issuer, clientId, clientSecret, name: config.oidcName ?? new URL(issuer).host }
  const fetch = createPolicyFetch({ clock, resolver, mayDial, ...(ca !== null && { ca }) })
  const redirectUri = new URL(`${baseUrl}${OIDC_CALLBACK}`).href
  return createIdentityProvider(settings, {
    clock,
    random,
    log,
    // The library is loaded with the first sign-in.
    openClient: async () => {
      const { openProviderClient } = await import('../accounts/people/openid.ts')
      return openProviderClient(settings, { clock, fetch, redirectUri })
    },
  })
}

/** The three settings belong together, and the others need them. */
function requireNone(config: Config): void {
  const settings = SETTINGS.filter(({ key }) => key.startsWith('oidc'))
  const [set, unset] = [true, false].map(isWanted =>
    settings.filter(({ key }) => isSet(config[key]) === isWanted),
  ) as [Setting[], Setting[]]
  if (set.length === 0) return
  const missing = unset.filter(({ key }) => REQUIRED.has(key))
  const names = (all: readonly Setting[]) =>
    joinWords(
      all.map(one => one.environment),
      'and',
    )
  throw new EvError(
    'bad_config',
    `Sign-in with an identity provider needs an issuer, a client ID and a client secret. Set ${names(missing)} too, or remove ${names(set)}.`,
  )
}

const REQUIRED: ReadonlySet<keyof Settings> = new Set([
  ...(['oidcIssuer', 'oidcClientId', 'oidcClientSecret'] as const),
])

const isSet = (value: unknown) => value !== null && !(Array.isArray(value) && value.length === 0)

function requireDestination(issuer: string, mayDial: (ip: string) => boolean): void {
  const parsed = parseDestination(issuer, mayDial)
  if (typeof parsed !== 'string') return
  throw new EvError(
    'bad_config',
    `--oidc-issuer ${issuer} cannot be used. ${parsed} Plain HTTP is possible on loopback only, with --oidc-allow-ranges 127.0.0.1.`,
  )
}

/** Browsers keep the cookies of the sign-in only over TLS or from this machine. */
function requireSecureBaseUrl(baseUrl: string): void {
  const { protocol, hostname } = new URL(baseUrl)
  if (protocol === 'https:' || isLoopbackHost(hostname)) return
  throw new EvError(
    'bad_config',
    `Sign-in with an identity provider needs HTTPS, but the URL of the service is ${baseUrl}. Set --base-url to its public https:// URL, or remove --oidc-issuer.`,
  )
}
