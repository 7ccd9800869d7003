import { type Clock, MINUTE } from '../platform/clock.ts'
import { errorMessage } from '../platform/error.ts'
import { formatDurationInWords } from '../platform/format.ts'
import { type Log, writeLog } from '../platform/log.ts'
import { sanitizeText } from '../platform/text.ts'
import { type Address, isFault, type SyntaxFault } from './address/address.ts'
import type { Domain } from './address/domain.ts'
import { suggestDomain } from './address/suggestion.ts'
import type { MxOperator } from './dns/operators.ts'
import type { MxRecord } from './dns/resolver.ts'
import { noMailText, type Route } from './dns/route.ts'
import type { ProbeListener, ServerCall } from './probe/probe-listener.ts'
import { describeOutcome } from './smtp/outcome-text.ts'
import { ENGINE_LOG } from './telemetry.ts'

/** A progress event of a verification; `text` is a sanitized sentence for people. Plain data. */
export type Step = SyntaxStep | DomainStep | ServerStep | LineStep | CachedStep

/** The address was parsed: always the first step. */
type SyntaxStep = {
  readonly kind: 'syntax'
  readonly ok: boolean
  /** Null if the text is not an address. */
  readonly address: { readonly local: string; readonly domain: string } | null
  /** The address that was probably intended, if the spelling alone shows it. */
  readonly suggestion: string | null
  readonly text: string
}

/** The mail route of the domain was looked up. */
type DomainStep = {
  readonly kind: 'domain'
  /** Null if the DNS lookup failed. */
  readonly ok: boolean | null
  readonly route: Route['kind']
  /** The mail servers in order of preference. */
  readonly hosts: readonly MxRecord[]
  /** The operator of the mail servers. */
  readonly operator: string | null
  readonly text: string
}

/** A connection to a mail server succeeded or failed. The last step for a host is the valid one. */
type ServerStep = {
  readonly kind: 'server'
  readonly ok: boolean
  /** Null if no mail server was contacted. */
  readonly host: string | null
  readonly ip: string | null
  readonly text: string
}

/** A line of the SMTP session: `C: …` from ev, `S: …` from the server. */
type LineStep = { readonly kind: 'line'; readonly text: string }

/** The result comes from the cache. */
type CachedStep = {
  readonly kind: 'cached'
  /** When the mail server answered, epoch ms. */
  readonly checkedAt: number
  readonly text: string
}

/** Emits the steps of one verification as they happen. */
export type StepObserver = {
  notify(step: Step): void
  /** The text was parsed; `intended` is the suggestion for a text that is not an address. */
  read(address: Address | SyntaxFault, intended: string | null): void
  routed(domain: Domain, route: Route, operator: MxOperator | null): void
  onCacheHit(checkedAt: number): void
  readonly listener: ProbeListener
}

type Observer = {
  readonly onStep?: ((step: Step) => void) | undefined
  /** No step is emitted after it aborts. */
  readonly signal?: AbortSignal | undefined
}

/** Maximum number of session lines emitted, so that an endless reply cannot fill memory. */
const LINES_MAX = 200

/** Returns null without an `onStep` callback, so that no text is built needlessly. */
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
          kind: 'server',
          ok: call.answer === null,
          host: call.host,
          ip: call.ip,
          text: callText(call),
        }),
      onLine: text => {
        if (linesLeft-- > 0) notify({ kind: 'line', text })
      },
    },
  }
}

/** Wraps `onStep`: after its first error, which is logged, it is never called again. */
function guarded({ onStep, signal }: Observer, log: Log): ((step: Step) => void) | null {
  if (onStep === undefined) return null
  let hasFailed = false
  const fail = (error: unknown) => {
    if (!hasFailed) writeLog(log, ENGINE_LOG.onStepFailed, { error: errorMessage(error) })
    hasFailed = true
  }
  return step => {
    if (hasFailed || signal?.aborted) return
    try {
      // An async callback returns a promise even though its type says void.
      const observed: unknown = onStep({ ...step, text: sanitizeText(step.text, TEXT_LENGTH_MAX) })
      if (observed instanceof Promise) observed.catch(fail)
    } catch (error) {
      fail(error)
    }
  }
}

/** The same limit as for a line of the stored dialogue. */
const TEXT_LENGTH_MAX = 512

export function syntaxStep(address: Address | SyntaxFault, intended: string | null): SyntaxStep {
  if (isFault(address)) {
    return {
      kind: 'syntax',
      ok: false,
      address: null,
      suggestion: intended,
      text: address.message,
    }
  }
  const { local, domain } = address
  const correction = suggestDomain(domain)
  // Only a certain suggestion is shown; a guess may still be refuted by the mail server.
  const suggestion = correction?.sure ? `${local}@${correction.domain}` : null
  const parts = { local, domain: domain.ascii }
  return { kind: 'syntax', ok: true, address: parts, suggestion, text: SYNTAX_OK }
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

const SYNTAX_OK = 'The syntax is fine.'

/** Describes the mail route of a domain and its operator in a sentence. */
export function routeText({ ascii: domain }: Domain, route: Route, operator: MxOperator | null) {
  if (route.kind === 'unknown') return `Nothing is known about ${domain}: ${noMailText(route)}.`
  if (route.kind === 'implicit') {
    return `${domain} has no MX record, so mail goes to ${domain} itself.`
  }
  if (route.kind !== 'mx') return `${domain} accepts no mail: ${noMailText(route)}.`
  const [first, ...others] = route.hosts
  const isOne = others.length === 0
  const runner = operator === null || operator.name === domain ? null : operator.title
  const servers = isOne ? `one mail server, ${first?.host}` : `${route.hosts.length} mail servers`
  const run = runner === null ? '' : `; ${runner} runs ${isOne ? 'it' : 'them'}`
  return `${domain} has ${servers}${run}.`
}

/** Describes the result of connecting to a mail server in a sentence. */
export function callText({ host, ip, port, dialled, answer }: ServerCall): string {
  const name = host ?? 'The mail server'
  if (answer === null) return `${name} answers on port ${port}, at ${ip}.`
  if (!dialled) return `${name} was not contacted. ${describeOutcome(answer)}`
  if (answer.kind !== 'no-response')
    return `${name} refused the session. ${describeOutcome(answer)}`
  switch (answer.why) {
    case 'no-address':
      return `${name} has no IP address.`
    case 'dns':
      return `The address of ${name} could not be looked up.`
    case 'not-public':
      return `${name} is at ${ip}, which is not on the public internet, so it was not contacted.`
    case 'connect':
      return `${name} does not answer on port ${port}: ${answer.detail}.`
    default:
      return `The SMTP session with ${name} failed. ${describeOutcome(answer)}`
  }
}

export const cachedText = (ageMs: number) =>
  `The mail server was asked ${agoText(ageMs)}; the cached answer is used.`

const agoText = (ageMs: number) =>
  ageMs < MINUTE ? 'just now' : `${formatDurationInWords(ageMs, Math.floor)} ago`
