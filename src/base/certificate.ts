import type { Random } from './random.ts'

/** A certificate with its private key, both PEM. */
export type Certified = { readonly key: string; readonly cert: string }

export type AuthorityPlan = {
  /** Its common name. */
  readonly name: string
  /** Epoch ms. */
  readonly now: number
  /** How long it holds. */
  readonly days: number
  readonly random: Random
}

export type CertificatePlan = {
  /** DNS names and IP addresses; the first is the common name as well. */
  readonly names: readonly string[]
  /** From when until when it holds, epoch ms. */
  readonly notBefore: number
  readonly notAfter: number
  readonly random: Random
}

/** An authority whose certificate signs those of others. */
export function makeAuthority(_plan: AuthorityPlan): Certified {
  throw new Error('not yet')
}

/** A certificate of a server, signed by `authority`. */
export function certify(_authority: Certified, _plan: CertificatePlan): Certified {
  throw new Error('not yet')
}

/** A certificate of a server that only it itself vouches for. */
export function certifySelf(_plan: CertificatePlan): Certified {
  throw new Error('not yet')
}
