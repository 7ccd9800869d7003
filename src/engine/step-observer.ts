import { type Clock, MINUTE } from '../platform/clock.ts'
import { errorMessage } from '../platform/error.ts'
import { formatDurationInWords } from '../platform/format.ts'
import type { Log } from '../platform/log.ts'
import { sanitizeText } from '../platform/text.ts'
import { type Address, isFault, type SyntaxFault } from './address/address.ts'
import type { Domain } from './address/domain.ts'
import { suggestDomain } from './address/suggestion.ts'
import type { MxOperator } from './dns/operator-table.ts'
import { noMailText, type Route } from './dns/route.ts'
import type { ProbeListener, ServerCall } from './probe/probe-listener.ts'
import { describeOutcome } from './smtp/outcome-text.ts'
import type { DomainStep, Step, SyntaxStep } from './step.ts'

/** Tells somebody of one verification while it goes on. */
export type StepObserver = {
  notify(step: Step): void
  /** The text was read. `meant` is what a text that is no address was perhaps meant to be. */
  read(address: Address | SyntaxFault, intended: string | null): void
  routed(domain: Domain, route: Route, operator: MxOperator | null): void
  onCacheHit(checkedAt: number): void
  readonly listener: ProbeListener
}

type Observer = {
  readonly onStep?: ((step: Step) => void) | undefined
  /** Who has left is told nothing more. */
  readonly signal?: AbortSignal | undefined
}

/** Lines of a conversation that are told: a server that talks without end fills nobody's memory. */
const LINES_MAX = 200

/** Null where nobody listens, so that nothing is put into words for nobody. */
export function observerFor(
  observer: Observer,
  { clock, log }: { clock: Clock; log: Log },
): StepObserver | null {
  const notify = guarded(observer, log)
  if (notify === null) return null
  let linesLeft = LINES_MAX
  return {
    notify,
    read: (address, intended) => notify(syntaxStep(address, intended)),
    routed: (domain, route, operator) => notify(domainStep(domain, route, operator)),
    onCacheHit: checkedAt =>
      notify({ kind: 'cached', checkedAt, text: cachedText(clock.now() - checkedAt) }),
    listener: {
      onCall: call =>
        notify({
          ...{ kind: 'server', ok: call.answer === null },
          ...{ host: call.host, ip: call.ip, text: callText(call) },
        }),
      onLine: text => {
        if (linesLeft-- > 0) notify({ kind: 'line', text })
      },
    },
  }
}

/** A listener that fails ends nobody's verification; it is complained of once, and told nothing more. */
function guarded({ onStep, signal }: Observer, log: Log): ((step: Step) => void) | null {
  if (onStep === undefined) return null
  let isDeaf = false
  const fail = (error: unknown) => {
    if (!isDeaf) log.warn('who listens to a verification failed', { error: errorMessage(error) })
    isDeaf = true
  }
  return step => {
    if (isDeaf || signal?.aborted) return
    try {
      // A function that is async gives a promise, whatever its type says.
      const observed: unknown = onStep({ ...step, text: sanitizeText(step.text, TEXT_LENGTH_MAX) })
      if (observed instanceof Promise) observed.catch(fail)
    } catch (error) {
      fail(error)
    }
  }
}

/** As a line of a kept dialogue. */
const TEXT_LENGTH_MAX = 512

export function syntaxStep(address: Address | SyntaxFault, intended: string | null): SyntaxStep {
  if (isFault(address)) {
    return {
      ...{ kind: 'syntax', ok: false, address: null },
      ...{ suggestion: intended, text: address.message },
    }
  }
  const { local, domain } = address
  const correction = suggestDomain(domain)
  // A guess is refuted by a mail server, of which nothing is known yet.
  const suggestion = correction?.sure ? `${local}@${correction.domain}` : null
  const deps = { local, domain: domain.ascii }
  return { kind: 'syntax', ok: true, address: deps, suggestion, text: SYNTAX_IS_FINE }
}

export function domainStep(domain: Domain, route: Route, operator: MxOperator | null): DomainStep {
  const isSure = route.kind !== 'unknown'
  return {
    kind: 'domain',
    ok: isSure ? route.kind === 'mx' || route.kind === 'implicit' : null,
    route: route.kind,
    hosts: hostsOf(route),
    operator: operator?.name ?? null,
    text: routeText(domain, route, operator),
  }
}

function hostsOf(route: Route): DomainStep['hosts'] {
  if (route.kind === 'implicit') return [{ preference: 0, host: route.host }]
  return route.kind === 'mx'
    ? route.hosts.map(({ preference, host }) => ({ preference, host }))
    : []
}

// The steps of a verification in sentences for people.

const SYNTAX_IS_FINE = 'The syntax is fine.'

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
