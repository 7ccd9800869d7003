import type { Clock } from '../../platform/clock.ts'
import { errorMessage } from '../../platform/error.ts'
import { parseAddress } from '../address/address.ts'
import type { Acceptance } from '../probe/mx-groups.ts'
import type { ProbeTask } from '../probe/prepare.ts'
import { noResponse, type ProbeResult } from '../probe/probe-outcome.ts'
import type { CachedAnswer } from '../result-cache.ts'
import { toEvidence, toResult } from './judge.ts'
import type { Evidence, Result } from './verdict.ts'

/** Builds the result of a probe. */
export function fromProbe(
  clock: Clock,
  task: ProbeTask,
  probed: CachedAnswer['probed'] & Pick<ProbeResult, 'dialogue'>,
): Result {
  return toResult(clock, task.text, task.startedAt, {
    address: task.address,
    flags: task.flags,
    suggestion: task.suggestion,
    typo: task.typo,
    disposableHost: false,
    route: task.route,
    operator: task.operator,
    answer: probed.answer,
    catchAll: probed.catchAll,
    egress: probed.egress ?? null,
    host: probed.host,
    ip: probed.ip,
    tls: probed.tls,
    timings: { dnsMs: task.dnsMs, connectMs: rounded(probed.connectMs) },
    skipped: null,
    failure: null,
    dialogue: probed.dialogue,
  })
}

/** Builds the result of an earlier acceptance while the catch-all status is unknown. */
export function fromAcceptance(clock: Clock, task: ProbeTask, accepted: Acceptance): Result {
  const { at, egress, ...facts } = accepted
  const probed = { ...facts, ...(egress === null ? {} : { egress }) }
  const untested = { ...probed, catchAll: null, asked: true, dialogue: null }
  return { ...fromProbe(clock, task, untested), checkedAt: at }
}

/** Builds the result of an address whose mail server is not contacted. */
export function fromUnprobed(clock: Clock, task: ProbeTask): Result {
  return toResult(clock, task.text, task.startedAt, {
    ...previousEvidence(task),
    catchAll: task.exchangers[0].catchAll,
    skipped: 'finished',
  })
}

/** Builds the result of a cached answer. */
export function fromCache(clock: Clock, task: ProbeTask, cached: CachedAnswer): Result {
  const result = fromProbe(clock, task, { ...cached.probed, dialogue: null })
  return { ...result, cached: true, checkedAt: cached.at }
}

/** Replaces a result without DNS answer by a cached one: a temporary failure revokes nothing. */
export function staleIfError(
  clock: Clock,
  inconclusive: Result,
  startedAt: number,
  { probed, at }: CachedAnswer,
): Result {
  const evidence = { ...inconclusive.evidence, route: null, ...factsOf(probed) }
  return {
    ...toResult(clock, inconclusive.email, startedAt, evidence),
    cached: true,
    checkedAt: at,
  }
}

/** Builds the result of an internal error: no conclusion, only the evidence so far. */
export function fromFailure(
  clock: Clock,
  subject: ProbeTask | { readonly text: string; readonly startedAt: number },
  error: unknown,
): Result {
  const known =
    'route' in subject
      ? previousEvidence(subject)
      : toEvidence({ address: safeParse(subject.text) })
  return toResult(clock, subject.text, subject.startedAt, {
    ...known,
    failure: errorMessage(error),
  })
}

/** Builds the result of a probe that failed internally; an earlier acceptance is kept. */
export const fromFailedProbe = (clock: Clock, task: ProbeTask, error: unknown): Result =>
  task.accepted === null
    ? fromFailure(clock, task, error)
    : fromAcceptance(clock, task, task.accepted)

/** Builds the result of an address whose deadline passed before any evidence was found. */
export function fromDeadline(clock: Clock, text: string, startedAt: number): Result {
  const answer = noResponse('timeout', 'connect', 'deadline exceeded')
  return toResult(clock, text, startedAt, toEvidence({ address: safeParse(text), answer }))
}

function previousEvidence(task: ProbeTask): Evidence {
  const { address, flags, suggestion, typo, route, operator, dnsMs } = task
  const timings = { dnsMs, connectMs: null }
  return toEvidence({ address, flags, suggestion, typo, route, operator, timings })
}

const factsOf = ({ answer, catchAll, egress, host, ip, tls }: CachedAnswer['probed']) => ({
  answer,
  catchAll,
  // Cache entries of earlier versions have no egress.
  egress: egress ?? null,
  host,
  ip,
  tls,
})

/** The internal error may come from the parser itself. */
function safeParse(text: string) {
  try {
    return parseAddress(text)
  } catch {
    return parseAddress('')
  }
}

const rounded = (ms: number | null) => (ms === null ? null : Math.round(ms))
