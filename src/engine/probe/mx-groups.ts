import { EvError } from '../../platform/error.ts'
import type { Address } from '../address/address.ts'
import type { MxOperator } from '../dns/operators.ts'
import type { Route } from '../dns/route.ts'
import type { RecipientOutcome } from '../smtp/classify-reply.ts'

/** One recipient to probe. It stays the same object in all of its attempts. */
export type ProbeTarget = {
  readonly address: Address
  /** The MX hosts to probe, in this order. */
  readonly exchangers: MxHosts
  /**
   * Set if the server accepted this recipient at an earlier attempt, but the catch-all test of its
   * domain was not decided. Only the test is repeated; the recipient stays accepted.
   */
  readonly accepted: Acceptance | null
}

/** The MX hosts of a route that one operator runs, in the order of the route. */
export type OperatorHosts = {
  readonly operator: MxOperator
  readonly route: RouteWithHost
  /** Whether the domain is a catch-all there, as far as known before any probe. */
  readonly catchAll: boolean | null
}

/** The hosts of a route by operator, the operator of the first host first. */
export type MxHosts = readonly [OperatorHosts, ...OperatorHosts[]]

/** An acceptance of a recipient, with the time and the host. Plain data that JSON can store. */
export type Acceptance = {
  readonly answer: Extract<RecipientOutcome, { kind: 'accepted' }>
  readonly egress: string | null
  readonly host: string | null
  readonly ip: string | null
  readonly tls: boolean
  readonly connectMs: number | null
  /** Wall-clock time of the answer, epoch ms. */
  readonly at: number
}

export type RouteWithHost = Extract<Route, { kind: 'mx' | 'implicit' }>

/** Returns the hosts of a target that an operator runs. */
export function hostsAt({ exchangers }: ProbeTarget, operator: string): OperatorHosts {
  const hosts = exchangers.find(one => one.operator.name === operator)
  if (hosts === undefined) throw new EvError('internal', `A target has no host of ${operator}.`)
  return hosts
}

/** The targets of one set of MX hosts. Domains with the same hosts share connections. */
export type MxGroupPlan<Q extends ProbeTarget> = {
  readonly key: string
  readonly route: RouteWithHost
  /** True if all targets have the hosts of a second operator, so that each gets half of the limits. */
  readonly sharesLimits: boolean
  readonly targets: Q[]
}

/** The hosts of two operators share the limits of a single one. */
export const getLimitDivisor = ({
  sharesLimits,
}: Pick<MxGroupPlan<ProbeTarget>, 'sharesLimits'>) => (sharesLimits ? 2 : 1)

/** Groups targets by their MX hosts at an operator, and sorts each group by domain. */
export function groupByMx<Q extends ProbeTarget>(
  targets: readonly Q[],
  operator: string,
): MxGroupPlan<Q>[] {
  const plans = new Map<string, Mutable<MxGroupPlan<Q>>>()
  for (const target of targets) {
    const { route } = hostsAt(target, operator)
    const sharesLimits = target.exchangers.length > 1
    const key = mxGroupKey(route)
    const plan = plans.get(key)
    if (plan === undefined) plans.set(key, { key, route, sharesLimits, targets: [target] })
    else {
      plan.targets.push(target)
      plan.sharesLimits &&= sharesLimits
    }
  }
  for (const plan of plans.values()) {
    plan.targets.sort((a, b) => compare(a.address.domain.ascii, b.address.domain.ascii))
  }
  return [...plans.values()]
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

/** Returns the key of a set of MX hosts; cached, because every address of a list needs it. */
export function mxGroupKey(route: RouteWithHost): string {
  if (route.kind === 'implicit') return route.host
  const known = KEYS.get(route)
  if (known !== undefined) return known
  const key = hostsOf(route).join(' ')
  KEYS.set(route, key)
  return key
}

const KEYS = new WeakMap<RouteWithHost, string>()

/** Returns the keys of a host, and of all hosts with its preference. */
export function serverKeys(route: RouteWithHost, host: string): readonly string[] {
  if (route.kind === 'implicit' || route.hosts.length === 1) return [host]
  return [host, equalHosts(route, host).join(' ')]
}

/** Returns the hosts with the preference of a host, itself included, or those `among` others. */
export function equalHosts(
  route: RouteWithHost,
  host: string,
  among: RouteWithHost = route,
): readonly string[] {
  if (route.kind !== 'mx' || among.kind !== 'mx') return []
  const preference = route.hosts.find(one => one.host === host)?.preference
  return among.hosts.filter(one => one.preference === preference).map(one => one.host)
}

export const hostsOf = (route: RouteWithHost) =>
  route.kind === 'mx' ? route.hosts.map(({ host }) => host) : [route.host]

/**
 * Returns the cache key of a domain's catch-all test at an operator, at one of its hosts if that is
 * known. A backup MX that queues mail often accepts every local part when the primary does not, so it
 * has its own result.
 */
export function catchAllKey(
  target: ProbeTarget,
  operator: string,
  host: string | null = null,
): string {
  const domain = target.address.domain.ascii
  const hosts = hostsAt(target, operator)
  if (isBackup(hosts.route, host)) return `${domain} ${host}`
  return hosts === target.exchangers[0] ? domain : `${domain} ${mxGroupKey(hosts.route)}`
}

function isBackup(route: RouteWithHost, host: string | null): boolean {
  if (route.kind !== 'mx' || host === null) return false
  const record = route.hosts.find(one => one.host === host)
  return record !== undefined && record.preference !== route.hosts[0]?.preference
}

/**
 * Returns the targets of the next MAIL transaction: at most `sizeMax` with the same domain and the
 * same need of SMTPUTF8 as the first one, as Google refuses several domains in one transaction.
 * Recipients that were accepted earlier are not mixed with others.
 */
export function nextBatch<Q extends ProbeTarget>(targets: Iterable<Q>, sizeMax: number): Q[] {
  const [first] = targets
  if (first === undefined) return []
  const batch: Q[] = []
  for (const target of targets) {
    const sameDomain = target.address.domain.ascii === first.address.domain.ascii
    if (batch.length >= sizeMax || !sameDomain) break
    if ((target.accepted === null) !== (first.accepted === null)) continue
    if (needsSmtpUtf8(target) === needsSmtpUtf8(first)) batch.push(target)
  }
  return batch
}

/** RFC 6531 §3.3. Only the local part counts, because domains are sent as A-labels. */
export const needsSmtpUtf8 = (target: ProbeTarget) => /[^\x00-\x7f]/.test(target.address.local)

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)
