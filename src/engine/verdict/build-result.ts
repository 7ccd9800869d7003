import type { Clock } from '../../platform/clock.ts'
import { errorMessage } from '../../platform/error.ts'
import { parseAddress } from '../address/address.ts'
import { type ProbeResult, noResponse } from '../probe/probe-outcome.ts'
import type { Acceptance } from '../probe/mx-groups.ts'
import type { ProbeTask } from '../probing/prepare.ts'
import type { CachedAnswer } from '../result-cache.ts'
import { toEvidence, toResult } from './result.ts'
import type { Evidence, Result } from './verdict.ts'

/** The result of an inquiry that a server was asked about. */
export function fromProbe(
  clock: Clock,
  task: ProbeTask,
  probed: CachedAnswer['probed'] & Pick<ProbeResult, 'dialogue'>,
): Result {
  const evidence = { ...previousEvidence(task), ...factsOf(probed), dialogue: probed.dialogue }
  const timings = { dnsMs: task.dnsMs, connectMs: rounded(probed.connectMs) }
  return toResult(clock, task.text, task.startedAt, { ...evidence, timings })
}

/** The result of an inquiry that was accepted at an earlier try, as long as its domain is not tested. */
export function fromAcceptance(clock: Clock, task: ProbeTask, accepted: Acceptance): Result {
  const { at, egress, ...facts } = accepted
  const probed = { ...facts, ...(egress === null ? {} : { egress }) }
  const untested = { ...probed, catchAll: null, asked: true, dialogue: null }
  return { ...fromProbe(clock, task, untested), checkedAt: at }
}

/** The result of an inquiry whose answer is remembered. */
export function fromCache(clock: Clock, task: ProbeTask, cached: CachedAnswer): Result {
  const result = fromProbe(clock, task, { ...cached.probed, dialogue: null })
  return { ...result, cached: true, checkedAt: cached.at }
}

/** A remembered answer in place of DNS that failed: trouble of the moment takes nothing back. */
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

/** The result where something went wrong inside ev: nothing is concluded, what was seen is told. */
export function fromFailure(
  clock: Clock,
  asked: ProbeTask | { readonly text: string; readonly startedAt: number },
  error: unknown,
): Result {
  const known =
    'route' in asked ? previousEvidence(asked) : toEvidence({ address: readable(asked.text) })
  return toResult(clock, asked.text, asked.startedAt, { ...known, failure: errorMessage(error) })
}

/** The result of an address that nothing was found out about in the time that the caller had. */
export function fromDeadline(clock: Clock, text: string, startedAt: number): Result {
  const answer = noResponse('timeout', 'connect', 'time ran out')
  return toResult(clock, text, startedAt, toEvidence({ address: readable(text), answer }))
}

function previousEvidence(task: ProbeTask): Evidence {
  const { address, flags, suggestion, typo, route, operator, dnsMs } = task
  const timings = { dnsMs, connectMs: null }
  return toEvidence({ address, flags, suggestion, typo, route, operator, timings })
}

const factsOf = ({ answer, catchAll, egress, host, ip, tls }: CachedAnswer['probed']) => ({
  answer,
  catchAll,
  // Whoever remembered it may not have known.
  egress: egress ?? null,
  host,
  ip,
  tls,
})

/** What went wrong may be the reading itself. */
function readable(text: string) {
  try {
    return parseAddress(text)
  } catch {
    return parseAddress('')
  }
}

const rounded = (ms: number | null) => (ms === null ? null : Math.round(ms))
