import { parseAddress } from '../../address/address.ts'
import type { Clock } from '../../base/clock.ts'
import { messageOf } from '../../base/error.ts'
import type { Probed } from '../../probe/lane/lane.ts'
import { silent } from '../../probe/lane/outcome.ts'
import type { Acceptance } from '../../probe/plan.ts'
import type { Evidence, Result } from '../../verdict/verdict.ts'
import type { Inquiry } from '../inquiry/prepare.ts'
import type { Remembered } from '../memory.ts'
import { evidenceOf, resultOf } from './result.ts'

/** The result of an inquiry that a server was asked about. */
export function resultOfProbe(
  clock: Clock,
  inquiry: Inquiry,
  probed: Remembered['probed'] & Pick<Probed, 'dialogue'>,
): Result {
  const evidence = { ...knownBefore(inquiry), ...factsOf(probed), dialogue: probed.dialogue }
  const timings = { dnsMs: inquiry.dnsMs, connectMs: rounded(probed.connectMs) }
  return resultOf(clock, inquiry.text, inquiry.begunAt, { ...evidence, timings })
}

/** The result of an inquiry that was accepted at an earlier try, as long as its domain is not tested. */
export function resultOfAcceptance(clock: Clock, inquiry: Inquiry, accepted: Acceptance): Result {
  const { at, egress, ...facts } = accepted
  const probed = { ...facts, ...(egress === null ? {} : { egress }) }
  const untested = { ...probed, catchAll: null, asked: true, dialogue: null }
  return { ...resultOfProbe(clock, inquiry, untested), checkedAt: at }
}

/** The result of an inquiry whose answer is remembered. */
export function resultOfMemory(clock: Clock, inquiry: Inquiry, remembered: Remembered): Result {
  const result = resultOfProbe(clock, inquiry, { ...remembered.probed, dialogue: null })
  return { ...result, cached: true, checkedAt: remembered.at }
}

/** A remembered answer in place of DNS that failed: trouble of the moment takes nothing back. */
export function standIn(
  clock: Clock,
  troubled: Result,
  begunAt: number,
  { probed, at }: Remembered,
): Result {
  const evidence = { ...troubled.evidence, route: null, ...factsOf(probed) }
  return { ...resultOf(clock, troubled.email, begunAt, evidence), cached: true, checkedAt: at }
}

/** The result where something went wrong inside ev: nothing is concluded, what was seen is told. */
export function resultOfFailure(
  clock: Clock,
  asked: Inquiry | { readonly text: string; readonly begunAt: number },
  error: unknown,
): Result {
  const known =
    'route' in asked ? knownBefore(asked) : evidenceOf({ address: readable(asked.text) })
  return resultOf(clock, asked.text, asked.begunAt, { ...known, failure: messageOf(error) })
}

/** The result of an address that nothing was found out about in the time that the caller had. */
export function resultOfNoTime(clock: Clock, text: string, begunAt: number): Result {
  const answer = silent('timeout', 'connect', 'time ran out')
  return resultOf(clock, text, begunAt, evidenceOf({ address: readable(text), answer }))
}

function knownBefore(inquiry: Inquiry): Evidence {
  const { address, traits, suggestion, typo, route, operator, dnsMs } = inquiry
  const timings = { dnsMs, connectMs: null }
  return evidenceOf({ address, traits, suggestion, typo, route, operator, timings })
}

const factsOf = ({ answer, catchAll, egress, host, ip, tls }: Remembered['probed']) => ({
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
