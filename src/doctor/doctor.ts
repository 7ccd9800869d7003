import { withoutPassword } from '../config/values.ts'
import { isPostgresUrl } from '../db/database-url.ts'
import { inspectServer } from '../db/postgres/inspect.ts'
import { OUTAGE_REMEDY } from '../db/unusable.ts'
import { withDeadline } from '../engine/deadline.ts'
import type { Resolver } from '../engine/dns/resolver.ts'
import type { Dial } from '../engine/smtp/dial.ts'
import { orOnAbort } from '../platform/abort.ts'
import { type Clock, SECOND } from '../platform/clock.ts'
import { plainIp } from '../platform/ip.ts'
import type { Random } from '../platform/random.ts'
import { sanitizeText } from '../platform/text.ts'
import { databaseServerFindings } from './database-server.ts'
import { type Finding, warn } from './finding.ts'
import { onBlocklists } from './identity/blocklists.ts'
import { heloName, reverseName } from './identity/reverse-name.ts'
import { mailFrom, senderPolicy } from './identity/sender-policy.ts'
import { identityProviderFinding, type ProviderTarget } from './identity-provider.ts'
import { dataDirectoryFinding, diskFinding, type Machine, openFilesFinding } from './machine.ts'
import { clockFinding } from './network/clock-skew.ts'
import { type DnsServer, dnsFindings } from './network/dns.ts'
import { isPortBlocked, portFinding } from './network/outbound-smtp.ts'
import { ipv6Finding, ownAddresses } from './network/public-ip.ts'
import { probeAll } from './network/reference-hosts.ts'
import type { HandshakeResult } from './network/smtp-handshake.ts'

/** An egress to check: the identity and connection used to probe mail servers. */
export type Target = {
  readonly name: string
  readonly helo: string
  /** The bare address; empty for the null sender. */
  readonly mailFrom: string
  readonly sourceAddress: string | null
  readonly proxied: boolean
  readonly dial: Dial
}

export type DoctorDeps = {
  readonly clock: Clock
  readonly random: Random
  readonly resolver: Resolver
  readonly dnsServers: readonly DnsServer[]
  /** Domains that must have MX records, to detect a lying DNS server; empty to skip that check. */
  readonly dnsCheckNames: readonly string[]
  readonly egresses: readonly Target[]
  readonly isPublic: (ip: string) => boolean
  readonly smtpPort: number
  /** Mail servers to connect to, by host name or IP address. */
  readonly exchangers: readonly string[]
  readonly machine: Machine
  readonly concurrency: number
  readonly dataDir: string
  readonly databaseUrl: string
  /** Maximum number of PostgreSQL connections of one process. */
  readonly databaseConnections: number
  /** Null if people sign in with passwords only. */
  readonly identityProvider: ProviderTarget | null
}

/** One line of the report; `egress` is null for checks that concern all egresses. */
export type Check = Finding & {
  readonly check: CheckName
  readonly egress: string | null
  /** Set for the port if mail servers were contacted and none accepted a connection. */
  readonly blocked?: true
}
export type CheckName =
  | 'dns'
  | 'port-25'
  | 'address'
  | 'ptr'
  | 'helo'
  | 'mail-from'
  | 'spf'
  | 'blocklists'
  | 'ipv6'
  | 'clock'
  | 'disk'
  | 'open-files'
  | 'data-directory'
  | 'database'
  | 'sign-in'

/** All checks end by then, even if no server answers. */
const DEADLINE_MS = 18 * SECOND

/**
 * Checks whether this machine can probe mail servers. The checks run concurrently and yield their
 * results in a fixed order as soon as they are known; an abort of `signal` ends them at once.
 */
export async function* runChecks(deps: DoctorDeps, signal?: AbortSignal): AsyncGenerator<Check> {
  const ended = new AbortController()
  const limit = withDeadline(deps.clock, DEADLINE_MS, [signal, ended.signal])
  try {
    for (const { check, egress, findings, isBlocked } of checks(deps, limit.signal)) {
      for (const finding of await findings) {
        const found: Check = { check, egress, ...sanitized(finding) }
        yield (await isBlocked) ? { ...found, blocked: true } : found
      }
    }
  } finally {
    ended.abort()
  }
}

/** Removes control characters: findings contain untrusted text of servers and the DNS. */
const sanitized = ({ state, says, todo }: Finding): Finding => ({
  state,
  says: sanitizeText(says, CHARACTERS_MAX),
  todo: todo === null ? null : sanitizeText(todo, CHARACTERS_MAX),
})

/** Longer than any finding, including the quoted replies. */
const CHARACTERS_MAX = 1_500

type DoctorReport = {
  readonly check: CheckName
  readonly egress: string | null
  readonly findings: Promise<readonly Finding[]>
  readonly isBlocked?: Promise<boolean>
}

function checks(deps: DoctorDeps, signal: AbortSignal): DoctorReport[] {
  const { clock, machine, dataDir, databaseUrl, concurrency, identityProvider } = deps
  const names = deps.exchangers.filter(host => plainIp(host) === null)
  const probeRounds = deps.egresses.map(egress => ({
    egress,
    handshakes: probeAll({ ...deps, ...egress }, deps.exchangers, signal),
  }))
  const allHandshakes = Promise.all(probeRounds.map(({ handshakes }) => handshakes))
  return [
    general('dns', dnsFindings(deps, names, signal)),
    ...probeRounds.flatMap(({ egress, handshakes }) =>
      checkEgress(deps, egress, handshakes, signal),
    ),
    general(
      'clock',
      allHandshakes.then(all => [clockFinding(all.flat(), clock.now())]),
    ),
    general('disk', diskFinding(machine, dataDir).then(one)),
    general('open-files', Promise.resolve([openFilesFinding(machine.openFilesMax, concurrency)])),
    general('data-directory', dataDirectoryFinding(dataDir, databaseUrl).then(one)),
    ...(isPostgresUrl(databaseUrl) ? [general('database', serverFindings(deps, signal))] : []),
    ...(identityProvider === null
      ? []
      : [general('sign-in', identityProviderFinding(identityProvider, signal).then(one))]),
  ]
}

function serverFindings(
  { databaseUrl, databaseConnections, clock }: DoctorDeps,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const url = withoutPassword(databaseUrl)
  const why = 'it does not respond'
  const noResponse = { kind: 'unreachable', why, remedy: OUTAGE_REMEDY } as const
  return orOnAbort(inspectServer(databaseUrl, clock), signal, noResponse).then(inspection =>
    databaseServerFindings(inspection, url, databaseConnections),
  )
}

function checkEgress(
  { resolver, smtpPort, isPublic, egresses }: DoctorDeps,
  egress: Target,
  handshakes: Promise<readonly HandshakeResult[]>,
  signal: AbortSignal,
): DoctorReport[] {
  const { helo, proxied } = egress
  const publicIps = handshakes.then(results => ownAddresses(results, { ...egress, isPublic }))
  const addresses = publicIps.then(found => found.addresses)
  const each = (runChecks: (ip: string) => Promise<Finding | readonly Finding[]>) =>
    addresses.then(async all =>
      all.length === 0 ? [NO_ADDRESS] : (await Promise.all(all.map(runChecks))).flat(),
    )
  const of = (check: CheckName, findings: Promise<readonly Finding[]>): DoctorReport =>
    startCheck(check, egresses.length > 1 ? egress.name : null, findings)
  return [
    {
      ...of(
        'port-25',
        handshakes.then(results => [portFinding(results, smtpPort, proxied)]),
      ),
      isBlocked: handshakes.then(isPortBlocked, () => false),
    },
    of(
      'address',
      publicIps.then(({ finding }) => [finding]),
    ),
    of(
      'ptr',
      each(ip => reverseName(resolver, ip, helo, signal)),
    ),
    of('helo', addresses.then(all => heloName(resolver, helo, all, signal)).then(one)),
    of('mail-from', mailFrom(resolver, egress.mailFrom, signal).then(one)),
    of(
      'spf',
      each(ip => senderPolicy(resolver, { ...egress, ip }, signal)),
    ),
    of(
      'blocklists',
      each(ip => onBlocklists(resolver, ip, signal)),
    ),
    of(
      'ipv6',
      handshakes.then(results => [ipv6Finding(results)].filter(finding => finding !== null)),
    ),
  ]
}

const NO_ADDRESS = warn(
  'skipped: the public IP address is unknown',
  'Fix the check of the public IP address above, then run this again.',
)

const one = (finding: Finding) => [finding]

const general = (check: CheckName, findings: Promise<readonly Finding[]>) =>
  startCheck(check, null, findings)

function startCheck(
  check: CheckName,
  egress: string | null,
  findings: Promise<readonly Finding[]>,
): DoctorReport {
  // Prevents an unhandled rejection: the promise is awaited later, in report order.
  findings.catch(() => {})
  return { check, egress, findings }
}
