import { orOnAbort } from '../platform/abort.ts'
import { type Finding, fail, ok, warn } from './finding.ts'

/** The identity provider of the service. */
export type ProviderTarget = {
  /** Name, issuer and client ID. */
  readonly title: string
  /** Why its settings cannot work, with the remedy; null if they can. */
  readonly fault: string | null
  /** Reads the metadata. Returns why it is not usable; null if it is. */
  check(): Promise<string | null>
}

/** Checks whether the identity provider is set up and can be reached. */
export async function identityProviderFinding(
  { title, fault, check }: ProviderTarget,
  signal: AbortSignal,
): Promise<Finding> {
  if (fault !== null) return fail('the settings of the identity provider cannot work', fault)
  const why = await orOnAbort(check(), signal, 'it does not respond')
  return why === null
    ? ok(`people can sign in with ${title}`)
    : warn(
        `people cannot sign in with ${title} now: ${why}`,
        'Compare --oidc-issuer with "issuer" in the metadata of the provider, and check the network. Passwords still work.',
      )
}
