import { generateKeyPairSync } from 'node:crypto'
import { createRequire } from 'node:module'
import type Forge from 'node-forge'
import { DAY, systemClock } from '../../platform/clock.ts'
import { plainIp } from '../../platform/ip.ts'
import { type Random, systemRandom } from '../../platform/random.ts'

/** A certificate with its private key, both PEM. */
export type Certified = { readonly key: string; readonly cert: string }

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

/**
 * A fresh key and a self-signed certificate for `name`, as most mail servers have one: made here, so that no private
 * key need be kept in the repository.
 */
export const selfSigned = (name: string, expiresAt = systemClock.now() + 365 * DAY): Certified =>
  issue({
    names: [name],
    notBefore: expiresAt - 366 * DAY,
    notAfter: expiresAt,
    random: systemRandom,
  })

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

/** A certificate of a server that nobody but itself vouches for, unless another issuer or extensions are given. */
export function issue(
  { names, notBefore, notAfter, random, pair = newPair() }: CertificatePlan,
  {
    authority = null,
    extensions = serverOf(names),
  }: { readonly authority?: Certified | null; readonly extensions?: readonly object[] } = {},
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
