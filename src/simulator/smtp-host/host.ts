import { type Caller, type Ending, createRuleSet, type Moment, type RuleSet } from './rule.ts'
import { generateKeyPairSync } from 'node:crypto'
import { createRequire } from 'node:module'
import type { Socket } from 'node:net'
import { createSecureContext, type SecureContext } from 'node:tls'
import type Forge from 'node-forge'
import { DAY, systemClock } from '../../platform/clock.ts'
import { plainIp } from '../../platform/ip.ts'
import { type Random, systemRandom } from '../../platform/random.ts'
import { Tally } from '../counters.ts'
import { DelayedSocket } from '../loopback/delayed-socket.ts'
import { type HostPlan, BEHAVIORS, type Behavior, EXTENSIONS } from './behaviors.ts'
import type { SessionLog } from '../session-log.ts'
import { Conversation, type Line } from './conversation.ts'
import { libraryEngine } from './library-host.ts'

/** What a host knows of the world around it. */
export type HostDeps = {
  readonly roundTripMs: number
  readonly attendance: SessionLog
  /** Sessions by the domains that they asked about. */
  readonly byDomain: SessionLog
}

/** A mail server that follows a table of rules, whoever speaks for it. */
export class MailHost {
  readonly name: string
  readonly behavior: Behavior
  readonly rules: RuleSet
  readonly extensions: readonly string[]
  readonly tally = new Tally()
  readonly #converse: (line: Line, caller: Caller) => Ending
  readonly #sessions = new Set<Ending>()
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
    this.#converse =
      plan.engine === 'smtp-server'
        ? libraryEngine(this)
        : (line, caller) => new Conversation(this, line, caller)
  }

  /** Takes a connection that came in over the loopback, from as far away as `roundTripMs` says. */
  accept(socket: Socket, world: HostDeps): void {
    socket.on('error', () => socket.destroy())
    this.#connections += 1
    const client = socket.remoteAddress ?? ''
    const caller = {
      client,
      connection: this.#connections,
      ...this.#count(socket, client, world),
    }
    if (world.roundTripMs === 0) {
      this.#begin(socket, caller)
      return
    }
    // The three-way handshake of a far connection: the loopback's own takes no time. The greeting
    // of a real one is read two round trips after dialling: SYN, SYN-ACK, ACK, greeting.
    const line = new DelayedSocket(socket, world.roundTripMs)
    setTimeout(() => this.#begin(line, caller), world.roundTripMs * 1.5)
  }

  /** Counts a session until it is over, by the word of the server or by the end of the connection. */
  #count(socket: Socket, client: string, world: HostDeps): Pick<Caller, 'over' | 'asks'> {
    let counted = true
    const { attendance, byDomain } = world
    const ledger = [this.tally.attendance, attendance]
    const domains = new Set<string>()
    for (const ruleSet of ledger) ruleSet.opened(client)
    const over = () => {
      if (!counted) return
      counted = false
      for (const ruleSet of ledger) ruleSet.closed(client)
      for (const domain of domains) byDomain.closed(domain)
    }
    const asks = (domain: string) => {
      if (!counted || domains.has(domain)) return
      domains.add(domain)
      byDomain.opened(domain)
    }
    socket.once('close', over)
    return { over, asks }
  }

  /** How often, and how long ago first, this client asked for this recipient from this sender. */
  remember({ client, from, to }: Moment): { times: number; sinceMs: number } {
    const key = `${client} ${from} ${to}`
    const now = systemClock.monotonicNow()
    const seen = this.#greylist.get(key) ?? { times: 0, firstAt: now }
    seen.times += 1
    this.#greylist.set(key, seen)
    return { times: seen.times, sinceMs: now - seen.firstAt }
  }

  secureContext(): SecureContext {
    this.#secureContext ??= createSecureContext(this.certificate())
    return this.#secureContext
  }

  /** Made when first wanted: few hosts encrypt. */
  certificate(): { key: string; cert: string } {
    this.#certificate ??= selfSigned(this.name)
    return this.#certificate
  }

  close(): void {
    for (const session of this.#sessions) session.destroy()
  }

  #begin(line: Line, caller: Caller): void {
    if (line.destroyed) return
    const session = this.#converse(line, caller)
    this.#sessions.add(session)
    line.once('close', () => this.#sessions.delete(session))
  }
}

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
