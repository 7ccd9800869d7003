import type { Certificate } from '../../src/api/server/certificate.ts'
import { DAY, systemClock } from '../../src/platform/clock.ts'
import { type Random, systemRandom as random } from '../../src/platform/random.ts'
import {
  type CertificatePlan,
  type Certified,
  issue,
  type KeyPair,
  newPair,
  selfSigned,
} from '../../src/simulator/smtp-host/host.ts'

export type AuthorityPlan = {
  /** Common name. */
  readonly name: string
  /** Current time, epoch ms. */
  readonly now: number
  /** Days until the certificate expires. */
  readonly days: number
  readonly random: Random
}

/** Creates a certificate authority that is valid from a day before `now`. */
export function makeAuthority({ name, now, days, random }: AuthorityPlan): Certified {
  const plan = { names: [name], notBefore: now - DAY, notAfter: now + days * DAY, random }
  return issue(plan, { extensions: AUTHORITY })
}

/** The extensions that allow a certificate to sign others (RFC 5280 §4.2.1.3, §4.2.1.9). */
const AUTHORITY: readonly object[] = [
  { name: 'basicConstraints', cA: true, critical: true },
  { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
]

/** Issues a server certificate signed by `authority`. */
export const certify = (authority: Certified, plan: CertificatePlan): Certified =>
  issue(plan, { authority })

/** Defect of a certificate; `right` has none. */
export type CertificateKind =
  | 'right'
  | 'self-signed'
  | 'expired'
  | 'not-yet-valid'
  | 'other-name'
  | 'unknown-authority'

/** Returns the authority of all tests in a process, because generating keys is slow. */
export function testAuthority(): Certified {
  authority ??= newAuthority('Test authority')
  return authority
}

/** Returns a certificate for HTTP servers whose clients do not verify it, one per process. */
export function serverCertificate(): Certificate {
  serverCert ??= { ...selfSigned('ev.example'), expiresAt: systemClock.now() + DAY }
  return serverCert
}

/** Returns the certificate of a receiver, one per kind, name and address. */
export function certificateOf(kind: CertificateKind, name: string, ip: string): Certified {
  const key = `${kind} ${name} ${ip}`
  const known = receiverCerts.get(key) ?? createReceiverCertificate(kind, name, ip)
  receiverCerts.set(key, known)
  return known
}

let authority: Certified | undefined
let serverCert: Certificate | undefined
const receiverCerts = new Map<string, Certified>()

const newAuthority = (name: string) =>
  makeAuthority({ name, now: systemClock.now(), days: 30, random })

/**
 * Returns one key pair for all of them: generating it takes longer than the rest of a certificate.
 */
function getReceiverKeyPair(): KeyPair {
  pair ??= newPair()
  return pair
}

let pair: KeyPair | undefined

function createReceiverCertificate(kind: CertificateKind, name: string, ip: string): Certified {
  const now = systemClock.now()
  const plan = {
    names: kind === 'other-name' ? ['other.example'] : [name, ip],
    notBefore: kind === 'not-yet-valid' ? now + DAY : now - 30 * DAY,
    notAfter: kind === 'expired' ? now - DAY : now + 30 * DAY,
    random,
    pair: getReceiverKeyPair(),
  }
  if (kind === 'self-signed') return issue(plan)
  return certify(
    kind === 'unknown-authority' ? newAuthority('Unknown authority') : testAuthority(),
    plan,
  )
}
