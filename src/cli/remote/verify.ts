import type { EvClient } from '../../client/client.ts'
import type { Evidence as EvidenceObject, SingleResult, VerifyStep } from '../../client/types.ts'
import { parseAddress } from '../../engine/address/address.ts'
import { OPERATOR_ROWS } from '../../engine/dns/operators.ts'
import type { Route } from '../../engine/dns/route.ts'
import { connectionNote } from '../../engine/probe/probe-listener.ts'
import type { RecipientOutcome } from '../../engine/smtp/classify-reply.ts'
import type { Decision } from '../../engine/verdict/action.ts'
import type { Include, PresentedFlags } from '../../engine/verdict/present-result.ts'
import type { Evidence, Result } from '../../engine/verdict/verdict.ts'
import { SECOND } from '../../platform/clock.ts'

/** A verified address: as a result, and as the JSON of the HTTP API. */
export type Verified = {
  readonly result: Result
  readonly decision: Decision
  toObject(include: readonly Include[]): object
}

/** Where addresses are verified: by an engine in this process, or by a service. */
export type Verifier = {
  verify(address: string): Promise<Verified>
  /** Prints what the results say about this machine. */
  printNotes(results: readonly Result[]): void
  close(): Promise<void>
}

export type VerifierOptions = { readonly checkSmtp: boolean; readonly withDialogue: boolean }

/** Verifies addresses on a service. */
export const createRemoteVerifier = (client: EvClient, options: VerifierOptions): Verifier => ({
  verify: address => verifyRemotely(client, address, options),
  printNotes() {},
  async close() {},
})

/**
 * Verifies an address on a service. The stream has all parts of the result, and also a result for
 * an address that is not valid.
 */
async function verifyRemotely(
  { verify }: EvClient,
  email: string,
  { checkSmtp, withDialogue }: VerifierOptions,
): Promise<Verified> {
  const dialogue: string[] = []
  const onStep = (step: VerifyStep) => {
    if (step.step === 'server' && step.ok) dialogue.push(connectionNote(step))
    if (step.step === 'line') dialogue.push(step.text)
  }
  const found = await verify.single({ email, check_smtp: checkSmtp }, { onStep })
  return {
    result: toResult(found, withDialogue ? dialogue : null),
    decision: { action: found.action, sentence: found.action_reason },
    toObject: include => withParts(found, include, withDialogue ? dialogue : null),
  }
}

/** Keeps the parts that were asked for. */
function withParts(
  found: SingleResult,
  include: readonly Include[],
  dialogue: readonly string[] | null,
): object {
  const { flags, did_you_mean, canonical, mx_host, checked_at, evidence, sandbox, ...plain } = found
  const more = { flags, did_you_mean, canonical, mx_host, checked_at } satisfies Record<
    keyof PresentedFlags,
    unknown
  >
  return {
    ...plain,
    ...(include.includes('flags') ? more : {}),
    ...(include.includes('evidence')
      ? { evidence: dialogue === null ? evidence : { ...evidence, dialogue } }
      : {}),
    ...(sandbox === undefined ? {} : { sandbox }),
  }
}

/** Converts the JSON of a result, with all of its parts, to a result. */
function toResult(found: SingleResult, dialogue: readonly string[] | null): Result {
  const { details } = found
  return {
    email: found.email,
    provider: found.provider === '' ? null : found.provider,
    verdict: {
      class: found.class,
      valid: found.valid,
      deliverable: found.deliverable,
      risk: found.risk_level,
      reason: found.reason,
      confidence: found.confidence,
      details: {
        syntaxValid: details.syntax_valid,
        domainExists: details.domain_exists,
        mxRecord: details.mx_record,
        smtpValid: details.smtp_valid,
      },
    },
    evidence: toEvidence(found, dialogue),
    tookMs: found.response_time,
    cached: found.cached,
    checkedAt: Date.parse(found.checked_at ?? ''),
  }
}

function toEvidence(
  { email, flags, did_you_mean, canonical, retry_after, evidence, sandbox }: SingleResult,
  dialogue: readonly string[] | null,
): Evidence {
  const { signals, feedback, domain_feedback, calibration } = evidence ?? {}
  return {
    address: parseAddress(email),
    flags:
      flags === undefined
        ? null
        : {
            disposable: flags.is_disposable,
            role: flags.is_role,
            free: flags.is_free,
            relay: flags.is_relay,
            blocked: false,
            spamTrap: false,
            quality: null,
            canonical: canonical ?? '',
          },
    suggestion: did_you_mean ?? null,
    typo: null,
    disposableHost: false,
    route: toRoute(evidence),
    operator: toOperator(evidence?.operator ?? null),
    answer: toOutcome(evidence?.answer ?? null, retry_after),
    catchAll: evidence?.catch_all ?? null,
    egress: evidence?.egress ?? null,
    host: evidence?.host ?? null,
    ip: evidence?.ip ?? null,
    tls: evidence?.tls === true,
    timings: { dnsMs: evidence?.dns_ms ?? null, connectMs: evidence?.connect_ms ?? null },
    skipped: sandbox ? 'sandbox' : (evidence?.skipped ?? null),
    failure: evidence?.failure ?? null,
    dialogue,
    ...(signals === undefined ? {} : { signals }),
    ...(feedback === undefined
      ? {}
      : {
          feedback: {
            kind: feedback.kind,
            occurredAt: Date.parse(feedback.occurred_at),
            code: feedback.code,
            enhancedCode: feedback.enhanced_code,
            text: feedback.text,
            decides: feedback.decides,
          },
        }),
    ...(domain_feedback === undefined
      ? {}
      : {
          domainFeedback: {
            delivered: domain_feedback.delivered,
            bounced: domain_feedback.bounced,
            rateMin: domain_feedback.bounce_rate_min,
            rateMax: domain_feedback.bounce_rate_max,
          },
        }),
    ...(calibration === undefined
      ? {}
      : {
          calibration: {
            fixed: calibration.fixed_confidence,
            reason: toLevel(calibration.reason),
            operator: calibration.operator === null ? null : toLevel(calibration.operator),
            domain: calibration.domain === null ? null : toLevel(calibration.domain),
          },
        }),
  }
}

type LevelObject = NonNullable<EvidenceObject['calibration']>['reason']

const toLevel = (level: LevelObject) => ({
  correct: level.correct,
  total: level.total,
  priorWeight: level.prior_weight ?? 0,
  halfLifeDays: level.half_life_days,
  trend: level.trend,
})

function toRoute(evidence: EvidenceObject | undefined): Route | null {
  const route = evidence?.route ?? null
  if (route === null) return null
  const { kind, hosts, detail } = route
  if (kind === 'mx') return { kind, hosts }
  if (kind === 'implicit') return { kind, host: hosts[0]?.host ?? '' }
  if (kind !== 'unknown') return { kind }
  return { kind, fault: 'server', ...(detail === undefined ? {} : { detail }) }
}

/** An operator that ev does not know is named by its domain. */
function toOperator(name: string | null): Evidence['operator'] {
  if (name === null) return null
  const [, title = name, truth = 'tells'] = OPERATOR_ROWS.find(([one]) => one === name) ?? []
  return { name, title, truth }
}

function toOutcome(
  answer: EvidenceObject['answer'],
  retryAfterS: number | undefined,
): RecipientOutcome | null {
  if (answer === null) return null
  const { kind, why, stage, code, enhanced_code: enhanced, text, learned } = answer
  // The service only combines kinds and reasons that belong together.
  return {
    kind,
    why,
    stage,
    ...(kind === 'no-response' ? { detail: text } : { reply: { code: code ?? 0, enhanced, text } }),
    ...(kind === 'deferred'
      ? { retryAfterMs: retryAfterS === undefined ? null : retryAfterS * SECOND }
      : {}),
    ...(learned === undefined ? {} : { learned }),
  } as RecipientOutcome
}
