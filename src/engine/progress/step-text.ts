import { MINUTE } from '../../platform/clock.ts'
import { formatDurationInWords } from '../../platform/format.ts'
import type { Domain } from '../address/domain.ts'
import type { MxOperator } from '../dns/operator.ts'
import type { Route } from '../dns/route.ts'
import { noMailText } from '../dns/route-text.ts'
import type { ServerCall } from '../probe/probe-listener.ts'
import { describeOutcome } from '../smtp/outcome-text.ts'

// The steps of a verification in sentences for people.

export const SYNTAX_IS_FINE = 'The syntax is fine.'

/** Where mail for a domain goes, and who runs it. */
export function routeText({ ascii: domain }: Domain, route: Route, operator: MxOperator | null) {
  if (route.kind === 'unknown') return `Nothing is known of ${domain}: ${noMailText(route)}.`
  if (route.kind === 'implicit') {
    return `${domain} names no mail server, so mail goes to ${domain} itself.`
  }
  if (route.kind !== 'mx') return `${domain} takes no mail: ${noMailText(route)}.`
  const [first, ...others] = route.hosts
  const isOne = others.length === 0
  const runner = operator === null || operator.name === domain ? null : operator.title
  const servers = isOne ? `one mail server, ${first?.host}` : `${route.hosts.length} mail servers`
  const run = runner === null ? '' : `; ${runner} runs ${isOne ? 'it' : 'them'}`
  return `${domain} has ${servers}${run}.`
}

/** What came of a call at a mail server. */
export function callText({ host, ip, port, dialled, answer }: ServerCall): string {
  const name = host ?? 'The mail server'
  if (answer === null) return `${name} answers on port ${port}, at ${ip}.`
  if (!dialled) return `${name} was not called. ${describeOutcome(answer)}`
  if (answer.kind !== 'no-response')
    return `${name} will not speak with us. ${describeOutcome(answer)}`
  switch (answer.why) {
    case 'no-address':
      return `${name} has no address.`
    case 'dns':
      return `The address of ${name} could not be looked up.`
    case 'not-public':
      return `${name} is at ${ip}, which is not on the public internet, so it was not called.`
    case 'connect':
      return `${name} does not answer on port ${port}: ${answer.detail}.`
    default:
      return `There was no conversation with ${name}. ${describeOutcome(answer)}`
  }
}

export const cachedText = (ageMs: number) =>
  `The mail server was asked ${agoText(ageMs)}, and its answer still counts.`

const agoText = (ageMs: number) =>
  ageMs < MINUTE ? 'just now' : `${formatDurationInWords(ageMs, Math.floor)} ago`
