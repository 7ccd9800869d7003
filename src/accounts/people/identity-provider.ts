import { type Clock, HOUR, SECOND } from '../../platform/clock.ts'
import { errorMessage } from '../../platform/error.ts'
import { type Log, writeLog } from '../../platform/log.ts'
import type { Random } from '../../platform/random.ts'
import { ACCOUNT_LOG } from '../telemetry.ts'

// Sign-in with the identity provider of an organization: OpenID Connect Core 1.0, the authorization
// code flow with PKCE (RFC 7636). The browser is sent to the provider with a state, a nonce and a
// challenge, and comes back with a code. ev redeems the code for an ID token, whose signature, issuer,
// audience, times and nonce are verified.

/** The path of the service to which the provider sends the browser back. */
export const OIDC_CALLBACK = '/sign-in/oidc/callback'

export type IdentityProviderSettings = {
  /** The issuer identifier, from which the metadata is discovered. */
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
  /** Shown to people. */
  readonly name: string
}

/** The values that bind an answer of the provider to a browser. */
export type Challenge = {
  readonly state: string
  readonly nonce: string
  /** The PKCE code verifier. */
  readonly verifier: string
}

/** A person, as the provider knows it. The subject is unique for the issuer and never reassigned. */
export type Identity = {
  readonly issuer: string
  readonly subject: string
}

/** An identity that was verified just now. */
export type VerifiedIdentity = Identity & {
  /** Asks the provider if the ID token has no address. */
  findVerifiedEmail(): Promise<VerifiedEmail | ProviderFault>
}

/** An email address as the provider sends it; null if there is none, or it is not verified. */
type VerifiedEmail = { readonly email: string | null }

/**
 * - `unavailable`: the provider does not answer as it should, and may do so later;
 * - `declined`: the provider did not sign the person in, `sentence` has its reason;
 * - `invalid`: the answer is not one to this request, or is forged.
 */
export type ProviderFault = {
  readonly fault: 'unavailable' | 'declined' | 'invalid'
  /** For the person. */
  readonly sentence: string
}

export interface IdentityProvider {
  readonly name: string
  readonly issuer: string
  /** Returns new values for a sign-in. */
  newChallenge(): Challenge
  /** Returns the URL to send the browser to. */
  authorizationUrl(challenge: Challenge): Promise<URL | ProviderFault>
  /** Verifies the parameters with which the browser came back. */
  redeem(answer: URLSearchParams, challenge: Challenge): Promise<VerifiedIdentity | ProviderFault>
  /** Reads the metadata now. Returns why it is not usable; null if it is. */
  check(): Promise<string | null>
}

/** The kind of a fault, and the reason that the provider gives. */
export type FaultReason = {
  readonly fault: ProviderFault['fault']
  /** Clean text; null if there is none. */
  readonly reason: string | null
}

/** The protocol, with the metadata of the provider. Its methods throw what `describe` takes. */
export interface ProviderClient {
  authorizationUrl(challenge: Challenge): Promise<URL>
  redeem(
    answer: URLSearchParams,
    challenge: Challenge,
  ): Promise<Identity & { findEmail(): Promise<string | null> }>
  describe(error: unknown): FaultReason
}

type Deps = {
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  /** Opens the client of the provider, which reads its metadata. */
  readonly openClient: () => Promise<ProviderClient>
}

/** Time for which the metadata of the provider is used. Endpoints rarely change. */
const METADATA_TTL_MS = HOUR

/**
 * Time for which a failed discovery is not repeated: anyone may open the sign-in, and must not cause a
 * request for each attempt.
 */
const FAILURE_TTL_MS = 10 * SECOND

/** 206 bits of entropy. */
const TOKEN_LENGTH = 40
/** RFC 7636 §4.1 asks for at least 43 characters. */
const VERIFIER_LENGTH = 64

export function createIdentityProvider(
  { name, issuer }: IdentityProviderSettings,
  { clock, random, log, openClient }: Deps,
): IdentityProvider {
  let cached: { readonly client: Promise<ProviderClient>; until: number } | null = null

  /** Requests at the same time share one discovery. */
  function getClient(): Promise<ProviderClient> {
    if (cached !== null && clock.monotonicNow() < cached.until) return cached.client
    const entry = { client: openClient(), until: Number.POSITIVE_INFINITY }
    cached = entry
    entry.client.then(
      () => {
        entry.until = clock.monotonicNow() + METADATA_TTL_MS
      },
      () => {
        entry.until = clock.monotonicNow() + FAILURE_TTL_MS
      },
    )
    return entry.client
  }

  /** Runs a step and turns what it throws into a fault. */
  async function attempt<T>(
    step: string,
    run: (client: ProviderClient) => Promise<T>,
  ): Promise<T | ProviderFault> {
    let client: ProviderClient | null = null
    try {
      client = await getClient()
      return await run(client)
    } catch (error) {
      const { fault, reason } = client?.describe(error) ?? UNDISCOVERED
      // The log has no email addresses, which the provider may mention.
      const shown = reason?.includes('@') ? null : reason
      const fields = { step, fault, reason: shown, why: causeText(error) }
      writeLog(log, ACCOUNT_LOG.providerFailed, fields)
      return { fault, sentence: toSentence(name, fault, reason) }
    }
  }

  return {
    name,
    issuer,
    newChallenge: () => ({
      state: random.token(TOKEN_LENGTH),
      nonce: random.token(TOKEN_LENGTH),
      verifier: random.token(VERIFIER_LENGTH),
    }),
    authorizationUrl: challenge => attempt('start', client => client.authorizationUrl(challenge)),
    redeem: (answer, challenge) =>
      attempt('answer', async client => {
        const { findEmail, ...identity } = await client.redeem(answer, challenge)
        return {
          ...identity,
          findVerifiedEmail: () => attempt('email', async () => ({ email: await findEmail() })),
        }
      }),
    async check() {
      try {
        await openClient()
        return null
      } catch (error) {
        return causeText(error)
      }
    },
  }
}

const UNDISCOVERED = { fault: 'unavailable', reason: null } as const

/** Returns the innermost message, which says most: the library wraps what went wrong. */
const causeText = (error: unknown): string =>
  error instanceof Error && error.cause instanceof Error
    ? causeText(error.cause)
    : errorMessage(error)

function toSentence(name: string, fault: ProviderFault['fault'], reason: string | null): string {
  switch (fault) {
    case 'unavailable':
      return `${name} does not answer as it should. Try again in a moment, or sign in with your password.`
    case 'declined':
      return `${name} did not sign you in${reason === null ? '' : ` and says: "${reason}"`}. Try again, or ask its administrator.`
    case 'invalid':
      return `The answer of ${name} does not belong to this sign-in, or has expired. Nothing was changed. Start the sign-in again.`
    default:
      return fault satisfies never
  }
}
