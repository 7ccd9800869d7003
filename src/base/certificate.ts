import { generateKeyPairSync } from 'node:crypto'
import { createRequire } from 'node:module'
import type Forge from 'node-forge'
import { DAY } from './clock.ts'
import { plainIp } from './ip.ts'
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
  /** A new one when left out: to make one takes a tenth of a second. */
  readonly pair?: KeyPair
}

/** A private key and its public one, both PEM. */
export type KeyPair = { readonly publicKey: string; readonly privateKey: string }

/** An authority whose certificate signs those of others. It holds from a day before `now`, as clocks differ. */
export function makeAuthority({ name, now, days, random }: AuthorityPlan): Certified {
  const notBefore = now - DAY
  const plan = { names: [name], notBefore, notAfter: now + days * DAY, random }
  return signed(plan, AUTHORITY, null)
}

/** A certificate of a server, signed by `authority`. */
export const certify = (authority: Certified, plan: CertificatePlan): Certified =>
  signed(plan, serverOf(plan.names), authority)

/** A certificate of a server that nobody but itself vouches for. */
export const certifySelf = (plan: CertificatePlan): Certified =>
  signed(plan, serverOf(plan.names), null)

/** RFC 5280 §4.2.1.3, §4.2.1.9: what lets a certificate sign others. */
const AUTHORITY: readonly object[] = [
  { name: 'basicConstraints', cA: true, critical: true },
  { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
]

/** What TLS asks of a server's certificate: its names are in subjectAltName alone (RFC 9525 §2). */
const serverOf = (names: readonly string[]): readonly object[] => [
  { name: 'basicConstraints', cA: false, critical: true },
  { name: 'keyUsage', digitalSignature: true, keyEncipherment: true, critical: true },
  { name: 'extKeyUsage', serverAuth: true },
  { name: 'subjectAltName', altNames: names.map(alternative) },
]

/** RFC 5280 §4.2.1.6: 7 is an address, 2 a name. */
const alternative = (name: string) =>
  plainIp(name) === null ? { type: 2, value: name } : { type: 7, ip: name }

function signed(
  { names, notBefore, notAfter, random, pair = newPair() }: CertificatePlan,
  extensions: readonly object[],
  authority: Certified | null,
): Certified {
  const { md, pki } = forge()
  const certificate = pki.createCertificate()
  certificate.setSubject([{ name: 'commonName', value: names[0] ?? '' }])
  certificate.publicKey = pki.publicKeyFromPem(pair.publicKey)
  const issuer = authority === null ? certificate : pki.certificateFromPem(authority.cert)
  certificate.setIssuer(issuer.subject.attributes)
  certificate.serialNumber = serialNumber(random)
  certificate.validity = { notBefore: new Date(notBefore), notAfter: new Date(notAfter) }
  const issuerKey = issuer.generateSubjectKeyIdentifier().getBytes()
  certificate.setExtensions([
    ...extensions,
    // How a chain is put together (RFC 5280 §4.2.1.1); strict readers insist on it.
    { name: 'subjectKeyIdentifier' },
    { name: 'authorityKeyIdentifier', keyIdentifier: issuerKey },
  ])
  certificate.sign(pki.privateKeyFromPem(authority?.key ?? pair.privateKey), md.sha256.create())
  return { key: pair.privateKey, cert: pki.certificateToPem(certificate).replaceAll('\r', '') }
}

/** Loaded where a certificate is made, which few runs do: it costs 40 ms. */
const forge = () => createRequire(import.meta.url)('node-forge') as typeof Forge

/** RSA, though elliptic curves are cheaper: the library signs with nothing else. */
export const newPair = (): KeyPair =>
  generateKeyPairSync('rsa', {
    modulusLength: 2_048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })

/** 16 bytes in hexadecimal, and a positive number (RFC 5280 §4.1.2.2). */
const serialNumber = (random: Random) =>
  `4${Array.from({ length: 31 }, () => random.below(16).toString(16)).join('')}`
