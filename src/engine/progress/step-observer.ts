import type { Clock } from '../../platform/clock.ts'
import { errorMessage } from '../../platform/error.ts'
import type { Log } from '../../platform/log.ts'
import { sanitizeText } from '../../platform/text.ts'
import { type Address, isFault, type SyntaxFault } from '../address/address.ts'
import type { Domain } from '../address/domain.ts'
import { suggestDomain } from '../address/suggestion.ts'
import type { MxOperator } from '../dns/operator.ts'
import type { Route } from '../dns/route.ts'
import type { ProbeListener } from '../probe/probe-listener.ts'
import type { DomainStep, Step, SyntaxStep } from './step.ts'
import { cachedText, callText, routeText, SYNTAX_IS_FINE } from './step-text.ts'

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
