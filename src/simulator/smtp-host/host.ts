import { generateKeyPairSync, sign } from 'node:crypto'
import { createRequire } from 'node:module'
import type { Socket } from 'node:net'
import { createSecureContext, type SecureContext } from 'node:tls'
import type Forge from 'node-forge'
import { DAY, systemClock } from '../../platform/clock.ts'
import { plainIp } from '../../platform/ip.ts'
import { type Random, systemRandom } from '../../platform/random.ts'
import { type SessionLog, Tally } from '../counters.ts'
import { DelayedSocket } from '../delayed-socket.ts'
import { BEHAVIORS, type Behavior, EXTENSIONS, type HostPlan } from './behaviors.ts'
import { Conversation, type Line } from './conversation.ts'
import { libraryEngine } from './library-host.ts'
import {
  type Caller,
  createRuleSet,
  type DestroyableSession,
  type Moment,
  type RuleSet,
} from './rule.ts'

/** Settings and logs shared by all hosts. */
export type HostDeps = {
  readonly roundTripMs: number
  readonly sessionLog: SessionLog
  /** Sessions by recipient domain. */
  readonly byDomain: SessionLog
}

/** A mail server that follows a table of rules, with its own SMTP engine or a library. */
export class MailHost {
  readonly name: string
  readonly behavior: Behavior
  readonly rules: RuleSet
  readonly extensions: readonly string[]
  readonly tally = new Tally()
  readonly #startSession: (line: Line, caller: Caller) => DestroyableSession
  readonly #sessions = new Set<DestroyableSession>()
  readonly #greylist = new Map<string, { times: number; firstAt: number }>()
  #connections = 0
  #certificate: { key: string; cert: string } | undefined
  #secureContext: SecureContext | undefined

  constructor(name: string, plan: HostPlan) {
    this.name = name
    const behavior = BEHAVIORS[plan.behavior](plan)
    this.behavior = { ...behavior, ...(plan.starttls !== undefined && { starttls: plan.starttls }) }
    this.rules = createRuleSet([...(plan.rules ?? []), ...(this.behavior.rules ?? [])])
    this.extensions = plan.extensions ?? this.behavior.extensions ?? EXTENSIONS
    this.#startSession =
      plan.engine === 'smtp-server'
        ? libraryEngine(this)
        : (line, caller) => new Conversation(this, line, caller)
  }

  /** Accepts a loopback connection and simulates its latency. */
  accept(socket: Socket, deps: HostDeps): void {
    socket.on('error', () => socket.destroy())
    this.#connections += 1
    const client = socket.remoteAddress ?? ''
    const caller = {
      client,
      connection: this.#connections,
      ...this.#count(socket, client, deps),
    }
    if (deps.roundTripMs === 0) {
      this.#start(socket, caller)
      return
    }
    // Simulates the three-way handshake, which takes no time on loopback. A client reads the
    // greeting of a real server two round trips after dialing: SYN, SYN-ACK, ACK, greeting.
    const line = new DelayedSocket(socket, deps.roundTripMs)
    setTimeout(() => this.#start(line, caller), deps.roundTripMs * 1.5)
  }

  /** Counts a session until the server ends it or the connection closes. */
  #count(socket: Socket, client: string, deps: HostDeps): Pick<Caller, 'end' | 'addDomain'> {
    let isOpen = true
    const { sessionLog, byDomain } = deps
    const logs = [this.tally.sessionLog, sessionLog]
    const domains = new Set<string>()
    for (const log of logs) log.opened(client)
    const end = () => {
      if (!isOpen) return
      isOpen = false
      for (const log of logs) log.closed(client)
      for (const domain of domains) byDomain.closed(domain)
    }
    const addDomain = (domain: string) => {
      if (!isOpen || domains.has(domain)) return
      domains.add(domain)
      byDomain.opened(domain)
    }
    socket.once('close', end)
    return { end, addDomain }
  }

  /**
   * Records an attempt of client, sender and recipient; returns the number of attempts and the time
   * since the first one.
   */
  recordAttempt({ client, from, to }: Moment): { times: number; sinceMs: number } {
    const key = `${client} ${from} ${to}`
    const now = systemClock.monotonicNow()
    const entry = this.#greylist.get(key) ?? { times: 0, firstAt: now }
    entry.times += 1
    this.#greylist.set(key, entry)
    return { times: entry.times, sinceMs: now - entry.firstAt }
  }

  secureContext(): SecureContext {
    this.#secureContext ??= createSecureContext(this.certificate())
    return this.#secureContext
  }

  /** Returns the certificate, created on first use as few hosts offer TLS. */
  certificate(): { key: string; cert: string } {
    this.#certificate ??= selfSigned(this.name)
    return this.#certificate
  }

  close(): void {
    for (const session of this.#sessions) session.destroy()
  }

  #start(line: Line, caller: Caller): void {
    if (line.destroyed) return
    const session = this.#startSession(line, caller)
    this.#sessions.add(session)
    line.once('close', () => this.#sessions.delete(session))
  }
}

/** A certificate with its private key, both PEM. */
export type Certified = { readonly key: string; readonly cert: string }

export type CertificatePlan = {
  /** DNS names and IP addresses; the first is the common name as well. */
  readonly names: readonly string[]
  /** Validity, epoch ms. */
  readonly notBefore: number
  readonly notAfter: number
  readonly random: Random
  /** Defaults to a new pair, which takes 0.1 s to generate. */
  readonly pair?: KeyPair
}

/** A key pair, both keys PEM. */
export type KeyPair = { readonly publicKey: string; readonly privateKey: string }

/**
 * Creates a key and a self-signed certificate for `name`, as most mail servers have. Generated at
 * run time, so that the repository contains no private key.
 */
export const selfSigned = (name: string, expiresAt = systemClock.now() + 365 * DAY): Certified =>
  issue({
    names: [name],
    notBefore: expiresAt - 366 * DAY,
    notAfter: expiresAt,
    random: systemRandom,
  })

/** Extensions of a TLS server certificate; its names are only in subjectAltName (RFC 9525 §2). */
const serverOf = (names: readonly string[]): readonly object[] => [
  { name: 'basicConstraints', cA: false, critical: true },
  { name: 'keyUsage', digitalSignature: true, keyEncipherment: true, critical: true },
  { name: 'extKeyUsage', serverAuth: true },
  { name: 'subjectAltName', altNames: names.map(alternative) },
]

/** General name types (RFC 5280 §4.2.1.6): 7 is an IP address, 2 a DNS name. */
const alternative = (name: string) =>
  plainIp(name) === null ? { type: 2, value: name } : { type: 7, ip: name }

/** Issues a certificate, self-signed unless an authority is given. */
export function issue(
  { names, notBefore, notAfter, random, pair = newPair() }: CertificatePlan,
  {
    authority = null,
    extensions = serverOf(names),
  }: { readonly authority?: Certified | null; readonly extensions?: readonly object[] } = {},
): Certified {
  const { asn1, md, pki } = forge()
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
    // Required by strict verifiers to build the chain (RFC 5280 §4.2.1.1).
    { name: 'subjectKeyIdentifier' },
    { name: 'authorityKeyIdentifier', keyIdentifier: issuerKey },
  ])
  const pem = authority?.key ?? pair.privateKey
  const key = pki.privateKeyFromPem(pem)
  // Node signs in a tenth of the time of node-forge.
  key.sign = () => {
    const signed = Buffer.from(asn1.toDer(certificate.tbsCertificate).getBytes(), 'latin1')
    return sign('sha256', signed, pem).toString('latin1')
  }
  certificate.sign(key, md.sha256.create())
  return { key: pair.privateKey, cert: pki.certificateToPem(certificate).replaceAll('\r', '') }
}

/** Loaded lazily: importing takes 40 ms, and few runs create a certificate. */
const forge = () => createRequire(import.meta.url)('node-forge') as typeof Forge

/** RSA, as node-forge cannot sign with elliptic curves. */
export const newPair = (): KeyPair =>
  generateKeyPairSync('rsa', {
    modulusLength: 2_048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })

/** A positive number of 16 bytes in hexadecimal (RFC 5280 §4.1.2.2). */
const serialNumber = (random: Random) =>
  `4${Array.from({ length: 31 }, () => random.below(16).toString(16)).join('')}`
