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
  /** Its common name. */
  readonly name: string
  /** Epoch ms. */
  readonly now: number
  /** How long it holds. */
  readonly days: number
  readonly random: Random
}

/** An authority whose certificate signs those of others. It holds from a day before `now`. */
export function makeAuthority({ name, now, days, random }: AuthorityPlan): Certified {
  const plan = { names: [name], notBefore: now - DAY, notAfter: now + days * DAY, random }
  return issue(plan, { extensions: AUTHORITY })
}

/** RFC 5280 §4.2.1.3, §4.2.1.9: what lets a certificate sign others. */
const AUTHORITY: readonly object[] = [
  { name: 'basicConstraints', cA: true, critical: true },
  { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
]

/** A certificate of a server, signed by `authority`. */
export const certify = (authority: Certified, plan: CertificatePlan): Certified =>
  issue(plan, { authority })

/** What is wrong with a certificate, if anything. */
export type CertificateKind =
  | 'right'
  | 'self-signed'
  | 'expired'
  | 'not-yet-valid'
  | 'other-name'
  | 'unknown-authority'

/** The authority of all tests in a process: making keys takes a while. */
export function testAuthority(): Certified {
  authority ??= newAuthority('Authority of the tests')
  return authority
}

/** The certificate of an HTTP server that no client of it checks: one for all tests in a process. */
export function serverCertificate(): Certificate {
  ofServers ??= { ...selfSigned('ev.example'), expiresAt: systemClock.now() + DAY }
  return ofServers
}

/** The certificate of a receiver, one for each kind, name and address. */
export function certificateOf(kind: CertificateKind, name: string, ip: string): Certified {
  const key = `${kind} ${name} ${ip}`
  const known = made.get(key) ?? makeOne(kind, name, ip)
  made.set(key, known)
  return known
}

let authority: Certified | undefined
let ofServers: Certificate | undefined
const made = new Map<string, Certified>()

const newAuthority = (name: string) =>
  makeAuthority({ name, now: systemClock.now(), days: 30, random })

/** One for all of them: making a key takes longer than all the rest of a certificate. */
function pairOfReceivers(): KeyPair {
  pair ??= newPair()
  return pair
}

let pair: KeyPair | undefined

function makeOne(kind: CertificateKind, name: string, ip: string): Certified {
  const now = systemClock.now()
  const plan = {
    names: kind === 'other-name' ? ['other.example'] : [name, ip],
    notBefore: kind === 'not-yet-valid' ? now + DAY : now - 30 * DAY,
    notAfter: kind === 'expired' ? now - DAY : now + 30 * DAY,
    random,
    pair: pairOfReceivers(),
  }
  if (kind === 'self-signed') return issue(plan)
  return certify(kind === 'unknown-authority' ? newAuthority('Nobody') : testAuthority(), plan)
}
