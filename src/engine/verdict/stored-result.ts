import { type Address, isFault, type SyntaxFault } from '../address/address.ts'
import type { AddressFlags } from '../address/classifier.ts'
import type { Domain } from '../address/domain.ts'
import type { MxOperator } from '../dns/operators.ts'
import type { MxRecord } from '../dns/resolver.ts'
import type { Route } from '../dns/route.ts'
import { UNDETERMINED } from './judge.ts'
import { type Evidence, type Result, toClass, type Verdict } from './verdict.ts'

/** JSON leaves out properties that are undefined. */
type Optional<T> = { readonly [Name in keyof T]?: T[Name] | undefined }

/**
 * A result as it is stored with its row of a list: JSON without what is not determined and without
 * what repeats the address, about a fifth of the length of a `Result`. SQL reads
 * `verdict.reason`, `verdict.risk`, `evidence.operator.name`, `evidence.feedback.kind` and
 * `checkedAt`, so these keep their paths.
 */
type StoredResult = {
  readonly email: string
  /** Left out if it is the domain of the address, or null without an address. */
  readonly provider: string | null | undefined
  readonly verdict: StoredVerdict
  readonly evidence: StoredEvidence
  readonly tookMs: number
  /** Left out if false. */
  readonly cached: true | undefined
  readonly checkedAt: number
}

/** `marks` has a T or an F for each property that is true or false; see `readVerdict`. */
type StoredVerdict = Pick<Verdict, 'reason' | 'risk' | 'confidence'> & { readonly marks: string }

/**
 * Evidence without the values of `UNDETERMINED`. Results of earlier versions have whole routes,
 * operators and timings.
 */
type StoredEvidence = Optional<
  Omit<Evidence, 'address' | 'flags' | 'route' | 'operator' | 'timings'>
> & {
  /** Left out if all of it follows from the email. */
  readonly address: StoredAddress | undefined
  /** The flags that are set; `canonical` is left out if it is the email. */
  readonly flags: Optional<AddressFlags> | undefined
  readonly route: Route | StoredHosts | undefined
  readonly operator: StoredOperator | undefined
  readonly timings: Evidence['timings'] | readonly [dnsMs: Timing, connectMs: Timing] | undefined
}

/** The text is left out if it is the email, and the parts if they follow from the text. */
type StoredAddress =
  | SyntaxFault
  | (Optional<Omit<Address, 'domain'>> & { readonly domain: StoredDomain | undefined })

/** The names are left out if both are the domain of the text. */
type StoredDomain = Pick<Domain, 'kind'> & Optional<Domain>

/** The exchangers of a route: of each the preference, and then the host. */
type StoredHosts = readonly (number | string)[]

/** The title is left out if it is the name, and `tells`. */
type StoredOperator = Pick<MxOperator, 'name'> & Optional<MxOperator>

type Timing = Evidence['timings']['dnsMs']

/** Returns the JSON to store for a result. */
export function encodeResult(result: Result): string {
  const { email, provider, verdict, evidence, tookMs, cached, checkedAt } = result
  const { reason, risk, confidence } = verdict
  const stored: StoredResult = {
    email,
    provider: provider === getProvider(evidence.address) ? undefined : provider,
    verdict: { reason, risk, confidence, marks: toMarks(verdict) },
    evidence: shortenEvidence(email, evidence),
    tookMs,
    cached: cached || undefined,
    checkedAt,
  }
  return JSON.stringify(stored)
}

/**
 * Parses a stored result, including one that an earlier version stored with all fields. Returns
 * null for `null`, which replaces the result of an erased address.
 */
export function decodeResult(text: string): Result | null {
  const stored = JSON.parse(text) as StoredResult | Result | null
  if (stored === null || isComplete(stored)) return stored
  const { email, verdict, evidence, tookMs, cached = false, checkedAt } = stored
  const address = readAddress(email, evidence.address)
  const { provider = getProvider(address) } = stored
  return {
    email,
    provider,
    verdict: readVerdict(verdict),
    evidence: readEvidence(email, address, evidence),
    tookMs,
    cached,
    checkedAt,
  }
}

const isComplete = (stored: StoredResult | Result): stored is Result => 'details' in stored.verdict

const getProvider = (address: Evidence['address']): string | null =>
  isFault(address) ? null : address.domain.ascii

const toMarks = ({ valid, deliverable, details }: Verdict): string =>
  toMark(valid) +
  toMark(deliverable) +
  toMark(details.syntaxValid) +
  toMark(details.domainExists) +
  toMark(details.mxRecord) +
  toMark(details.smtpValid)

const toMark = (holds: boolean) => (holds ? 'T' : 'F')

function readVerdict({ reason, risk, confidence, marks }: StoredVerdict): Verdict {
  const valid = marks[0] === 'T'
  return {
    class: toClass({ valid, risk }),
    valid,
    deliverable: marks[1] === 'T',
    risk,
    reason,
    confidence,
    details: {
      syntaxValid: marks[2] === 'T',
      domainExists: marks[3] === 'T',
      mxRecord: marks[4] === 'T',
      smtpValid: marks[5] === 'T',
    },
  }
}

// Each property is named: an object of a fixed shape is written twice as fast as one that is built
// from entries, and the compiler reports a property of `Evidence` that is missing here.
function shortenEvidence(email: string, evidence: Evidence): StoredEvidence {
  const { address, flags, route, operator, host, timings, catchAll } = evidence
  return {
    address: shortenAddress(email, address),
    flags: flags === null ? undefined : shortenFlags(email, flags),
    suggestion: evidence.suggestion ?? undefined,
    typo: evidence.typo ?? undefined,
    disposableHost: evidence.disposableHost || undefined,
    route: route?.kind === 'mx' ? toStoredHosts(route.hosts) : (route ?? undefined),
    operator: operator === null ? undefined : shortenOperator(operator),
    answer: evidence.answer ?? undefined,
    catchAll: catchAll ?? undefined,
    egress: evidence.egress ?? undefined,
    host: host === getUsualHost(route, evidence.ip) ? undefined : host,
    ip: evidence.ip ?? undefined,
    tls: evidence.tls || undefined,
    timings: shortenTimings(timings),
    skipped: evidence.skipped ?? undefined,
    failure: evidence.failure ?? undefined,
    dialogue: evidence.dialogue ?? undefined,
    signals: evidence.signals,
    feedback: evidence.feedback,
    domainFeedback: evidence.domainFeedback,
    calibration: evidence.calibration,
    external: evidence.external,
  } satisfies Record<keyof Evidence, unknown>
}

function readEvidence(
  email: string,
  address: Evidence['address'],
  stored: StoredEvidence,
): Evidence {
  const route = readRoute(stored.route)
  const evidence = {
    address,
    flags: readFlags(email, stored.flags),
    suggestion: stored.suggestion ?? null,
    typo: stored.typo ?? null,
    disposableHost: stored.disposableHost ?? false,
    route,
    operator: readOperator(stored.operator),
    answer: stored.answer ?? null,
    catchAll: stored.catchAll ?? null,
    egress: stored.egress ?? null,
    host: stored.host === undefined ? getUsualHost(route, stored.ip) : stored.host,
    ip: stored.ip ?? null,
    tls: stored.tls ?? false,
    timings: readTimings(stored.timings),
    skipped: stored.skipped ?? null,
    failure: stored.failure ?? null,
    dialogue: stored.dialogue ?? null,
  }
  const { signals, feedback, domainFeedback, calibration, external } = stored
  const hasMore = [signals, feedback, domainFeedback, calibration, external].some(
    one => one !== undefined,
  )
  return hasMore ? { ...(stored as Partial<Evidence>), ...evidence } : evidence
}

function shortenAddress(email: string, address: Evidence['address']): StoredAddress | undefined {
  if (isFault(address)) return address
  const { text, local, domain } = address
  const parts = splitText(text)
  const shortened = shortenDomain(parts.domain, domain)
  if (text === email && local === parts.local && shortened === undefined) return undefined
  return {
    text: text === email ? undefined : text,
    local: local === parts.local ? undefined : local,
    domain: shortened,
  }
}

function shortenDomain(name: string, domain: Domain): StoredDomain | undefined {
  const { ascii, unicode, kind } = domain
  if (ascii !== name || unicode !== name) return domain
  return kind === 'name' ? undefined : { kind }
}

function readAddress(email: string, stored: StoredAddress | undefined): Evidence['address'] {
  if (stored !== undefined && 'fault' in stored) return stored
  const text = stored?.text ?? email
  const parts = splitText(text)
  return {
    text,
    local: stored?.local ?? parts.local,
    domain: readDomain(parts.domain, stored?.domain),
  }
}

function splitText(text: string) {
  const at = text.lastIndexOf('@')
  return { local: text.slice(0, at), domain: text.slice(at + 1) }
}

const readDomain = (name: string, stored: StoredDomain | undefined): Domain => ({
  ascii: stored?.ascii ?? name,
  unicode: stored?.unicode ?? name,
  kind: stored?.kind ?? 'name',
})

const toStoredHosts = (hosts: readonly MxRecord[]): StoredHosts =>
  hosts.flatMap(({ preference, host }) => [preference, host])

function readRoute(stored: StoredEvidence['route']): Route | null {
  if (stored === undefined) return null
  return isHosts(stored) ? { kind: 'mx', hosts: readHosts(stored) } : stored
}

const isHosts = (stored: Route | StoredHosts): stored is StoredHosts => Array.isArray(stored)

function readHosts(stored: StoredHosts): MxRecord[] {
  const hosts: MxRecord[] = []
  for (let i = 0; i < stored.length; i += 2) {
    hosts.push({ preference: Number(stored[i]), host: String(stored[i + 1]) })
  }
  return hosts
}

/** Returns the host that is not stored: the first of the route if an address of it was dialed. */
const getUsualHost = (route: Route | null, ip: Evidence['ip'] | undefined): string | null =>
  ip == null || route?.kind !== 'mx' ? null : (route.hosts[0]?.host ?? null)

const shortenOperator = ({ name, title, truth }: MxOperator): StoredOperator => ({
  name,
  title: title === name ? undefined : title,
  truth: truth === 'tells' ? undefined : truth,
})

const readOperator = (stored: StoredOperator | undefined): MxOperator | null =>
  stored === undefined
    ? null
    : { name: stored.name, title: stored.title ?? stored.name, truth: stored.truth ?? 'tells' }

function shortenTimings({ dnsMs, connectMs }: Evidence['timings']): StoredEvidence['timings'] {
  return dnsMs === null && connectMs === null ? undefined : [dnsMs, connectMs]
}

function readTimings(stored: StoredEvidence['timings']): Evidence['timings'] {
  if (stored === undefined) return UNDETERMINED.timings
  if (!('length' in stored)) return stored
  const [dnsMs, connectMs] = stored
  return { dnsMs, connectMs }
}

const shortenFlags = (email: string, flags: AddressFlags): Optional<AddressFlags> => ({
  disposable: flags.disposable || undefined,
  role: flags.role || undefined,
  free: flags.free || undefined,
  relay: flags.relay || undefined,
  blocked: flags.blocked || undefined,
  spamTrap: flags.spamTrap || undefined,
  quality: flags.quality ?? undefined,
  canonical: flags.canonical === email ? undefined : flags.canonical,
})

const readFlags = (email: string, flags: StoredEvidence['flags']): AddressFlags | null =>
  flags === undefined
    ? null
    : {
        disposable: flags.disposable ?? false,
        role: flags.role ?? false,
        free: flags.free ?? false,
        relay: flags.relay ?? false,
        blocked: flags.blocked ?? false,
        spamTrap: flags.spamTrap ?? false,
        quality: flags.quality ?? null,
        canonical: flags.canonical ?? email,
      }
