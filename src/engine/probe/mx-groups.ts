import type { Address } from '../address/address.ts'
import type { Route } from '../dns/route.ts'
import type { RecipientOutcome } from '../smtp/classify-reply.ts'

/** One recipient to ask about. */
export type ProbeTarget = {
  readonly address: Address
  readonly route: RouteWithHost
  /** What is known of the domain beforehand: no need to ask whether it takes everything. */
  readonly catchAll: boolean | null
  /**
   * The server accepted this recipient at an earlier try, but the catch-all test of its domain was not
   * decided. Only the test is made up for: the recipient is not asked again and stays accepted.
   */
  readonly accepted: Acceptance | null
  /** True where the route holds the exchangers of a second operator, which may take everything. */
  readonly isBackup?: boolean
  /** True where the exchangers of two operators may be dialled for it: each has half of the limits. */
  readonly sharesLimits?: boolean
}

/** That a recipient was accepted, when and by which host. Plain data, fit for JSON. */
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

/** Domains with the same exchangers share connections: one plan for one set of hosts. */
export type MxGroupPlan<Q extends ProbeTarget> = {
  readonly key: string
  readonly route: RouteWithHost
  readonly questions: Q[]
}

/** Sorts questions into lanes by their exchangers, and within a lane by domain. */
export function groupByMx<Q extends ProbeTarget>(questions: readonly Q[]): MxGroupPlan<Q>[] {
  const groups = new Map<string, MxGroupPlan<Q>>()
  const keys = new Map<RouteWithHost, string>()
  for (const question of questions) {
    const key = keys.get(question.route) ?? mxGroupKey(question.route)
    keys.set(question.route, key)
    const group = groups.get(key)
    if (group !== undefined) group.questions.push(question)
    else groups.set(key, { key, route: question.route, questions: [question] })
  }
  for (const group of groups.values()) {
    group.questions.sort((a, b) => compare(a.address.domain.ascii, b.address.domain.ascii))
  }
  return [...groups.values()]
}

export const mxGroupKey = (route: RouteWithHost) => hostsOf(route).join(' ')

export const hostsOf = (route: RouteWithHost) =>
  route.kind === 'mx' ? route.hosts.map(({ host }) => host) : [route.host]

/**
 * By what the catch-all test of a domain is remembered. A backup that queues mail for the domain often
 * takes every name where the first exchanger does not, so each has a result of its own.
 */
export function catchAllKey({ address, route, isBackup = false }: ProbeTarget): string {
  const domain = address.domain.ascii
  return isBackup ? `${domain} ${mxGroupKey(route)}` : domain
}

/**
 * The next MAIL transaction: the first question and those after it of the same domain and the same need
 * of SMTPUTF8 (Google refuses several domains in one transaction), at most `sizeMax`. Recipients that
 * were accepted before are not mixed with others.
 */
export function nextBatch<Q extends ProbeTarget>(questions: Iterable<Q>, sizeMax: number): Q[] {
  const [first] = questions
  if (first === undefined) return []
  const batch: Q[] = []
  for (const question of questions) {
    const sameDomain = question.address.domain.ascii === first.address.domain.ascii
    if (batch.length >= sizeMax || !sameDomain) break
    if ((question.accepted === null) !== (first.accepted === null)) continue
    if (needsSmtpUtf8(question) === needsSmtpUtf8(first)) batch.push(question)
  }
  return batch
}

/** RFC 6531 §3.3: only the local part; domains go out as A-labels. */
export const needsSmtpUtf8 = (question: ProbeTarget) => /[^\x00-\x7f]/.test(question.address.local)

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)
