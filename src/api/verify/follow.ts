import { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import type { Reservation } from '../../accounts/credits/reservations.ts'
import { sandboxResult, sandboxSteps } from '../../engine/sandbox.ts'
import type { Step } from '../../engine/step-observer.ts'
import { presentResult } from '../../engine/verdict/present-result.ts'
import type { Result } from '../../engine/verdict/verdict.ts'
import { abortable } from '../../platform/abort.ts'
import { AsyncQueue } from '../../platform/async-queue.ts'
import { isoTime } from '../../platform/format.ts'
import { type ActionPolicyDeps, getActionPolicy } from '../action-policy.ts'
import type { ApiDeps } from '../api-deps.ts'
import type { Env } from '../context.ts'
import { logError } from '../errors/errors.ts'
import { invalidRequest } from '../errors/request-errors.ts'
import { eventStream, type StreamEvent } from '../event-stream.ts'
import { getHeader } from '../headers.ts'
import { mailHosts, ROUTE_KINDS } from '../schemas/evidence.ts'
import { time } from '../schemas/fields.ts'
import {
  type AskDeps,
  applyFeedbackToOne,
  getCached,
  releaseOnFailure,
  reserveOrGetCached,
  type VerifyInput,
  verificationOrigin,
  verifyAdmitted,
} from './ask.ts'

export type FollowDeps = Pick<ApiDeps, 'clock' | 'ledger' | 'log' | 'priority'> &
  AskDeps &
  ActionPolicyDeps

// Schemas of the steps of a single verification, sent to clients that accept `text/event-stream`.

const text = z.string().openapi({
  description: 'Human-readable description of the step.',
  example: 'example.com has one mail server, mx.example.com.',
})
const ok = z.boolean().openapi({ example: true })

const SyntaxStep = z.object({
  step: z.literal('syntax'),
  ok,
  address: z
    .object({
      local: z.string().openapi({ example: 'user' }),
      domain: z.string().openapi({ example: 'example.com' }),
    })
    .nullable(),
  did_you_mean: z.string().nullable().openapi({ example: null }),
  text,
})

const DomainStep = z.object({
  step: z.literal('domain'),
  ok: ok.nullable().openapi({ description: 'Null if DNS gave no conclusive answer.' }),
  kind: z.enum(ROUTE_KINDS).openapi({ example: 'mx' }),
  hosts: mailHosts,
  operator: z.string().nullable().openapi({
    description: 'Operator of the mail servers.',
    example: 'example.com',
  }),
  text,
})

const ServerStep = z.object({
  step: z.literal('server'),
  host: z.string().nullable().openapi({
    description: 'Null if no mail server was contacted.',
    example: 'mx.example.com',
  }),
  ip: z.string().nullable().openapi({ example: '192.0.2.25' }),
  ok,
  text,
})

const LineStep = z.object({
  step: z.literal('line'),
  text: z.string().openapi({
    description: 'A line of the SMTP session: `C: …` or `S: …`.',
    example: 'S: 250 Ok',
  }),
})

const CachedStep = z.object({
  step: z.literal('cached'),
  checked_at: time,
  text,
})

/** The data of `event: step`. */
export const VerifyStep = z
  .discriminatedUnion('step', [SyntaxStep, DomainStep, ServerStep, LineStep, CachedStep])
  .openapi('VerifyStep')

type StepBody = z.infer<typeof VerifyStep>

export const STEP_EXAMPLE: StepBody = {
  step: 'domain',
  ok: true,
  kind: 'mx',
  hosts: [{ preference: 10, host: 'mx.example.com' }],
  operator: 'example.com',
  text: 'example.com has one mail server, mx.example.com.',
}

/** Whether the client accepts the steps as server-sent events. */
export const wantsEvents = (c: Context<Env>) => EVENT_STREAM.test(getHeader(c, 'accept') ?? '')

const EVENT_STREAM = /\btext\/event-stream\b/i

/**
 * Refuses an Idempotency-Key with an event stream: nothing is created, and a stream cannot be
 * repeated.
 */
export function noKeyForEvents(c: Context<Env>): void {
  if (wantsEvents(c) && getHeader(c, 'idempotency-key') !== undefined) {
    throw invalidRequest(
      'Idempotency-Key is not supported with Accept: text/event-stream. Omit it: a repeated request is free while the answer is cached.',
    )
  }
}

/** Verifies one address and streams each step, then the result or the error. */
export async function followOne(
  c: Context<Env>,
  service: FollowDeps,
  input: VerifyInput,
): Promise<Response> {
  // Reserved before the stream starts: a refusal needs its own status.
  const steps: Step[] = []
  const { reservation, cached } = c.get('sandbox')
    ? { reservation: null, cached: null }
    : await reserveOrGetCached(c, service, 1, () =>
        getCached(c, service, input, step => steps.push(step)),
      )
  return eventStream(c, service, disconnected => {
    const events = new AsyncQueue<StreamEvent>()
    const fromCache = cached === null ? null : { result: cached, steps }
    void follow(c, service, {
      input,
      reservation,
      fromCache,
      disconnected,
      send: event => events.put(event),
    }).finally(() => events.end())
    return takeAll(events)
  })
}

type FollowOptions = {
  readonly input: VerifyInput
  readonly reservation: Reservation | null
  /** The cached answer, if no credits are left. */
  readonly fromCache: { readonly result: Result; readonly steps: readonly Step[] } | null
  /** Aborts when the client disconnects. */
  readonly disconnected: AbortSignal
  readonly send: (event: StreamEvent) => void
}

/** Runs the verification. Never rejects. */
async function follow(c: Context<Env>, service: FollowDeps, options: FollowOptions): Promise<void> {
  const { reservation, disconnected, send } = options
  const { capacity } = service
  // The guard counts a request until its response starts, which was just now (`holdVerifying`).
  const endVerifying = capacity.countVerifying()
  let leaveShare = () => {}
  const endRequest = service.priority.startRequest()
  try {
    const result = await releaseOnFailure(c, service, reservation, async () => {
      leaveShare = capacity.startOfAccount(c.get('caller').account.id)
      return applyFeedbackToOne(c, service, await verify(c, service, options))
    })
    const entry = { result }
    await service.ledger.settle({ ...verificationOrigin(c), source: 'single', reservation, entry })
    const mark = c.get('sandbox') ? { sandbox: true } : {}
    const shown = presentResult(result, ['flags', 'evidence'], getActionPolicy(c, service))
    send({ event: 'result', data: { ...shown, ...mark } })
  } catch (error) {
    if (!disconnected.aborted) send({ event: 'error', data: logError(c, service.log, error).body })
  } finally {
    endVerifying()
    leaveShare()
    endRequest()
  }
}

/** The probe continues if the client disconnects, since its answer is cached. */
async function verify(
  c: Context<Env>,
  service: FollowDeps,
  { input, fromCache, disconnected, send }: FollowOptions,
): Promise<Result> {
  const onStep = (step: Step) => send({ event: 'step', data: presentStep(step) })
  if (fromCache !== null) {
    fromCache.steps.forEach(onStep)
    return fromCache.result
  }
  if (!c.get('sandbox')) {
    return abortable(verifyAdmitted(c, service, input, onStep), disconnected)
  }
  const result = sandboxResult(service.clock, input.email, input.address)
  sandboxSteps(result).forEach(onStep)
  return result
}

async function* takeAll<T extends object>(queue: AsyncQueue<T>): AsyncGenerator<T, void> {
  for (let value = await queue.next(); value !== null; value = await queue.next()) yield value
}

/** Converts a step to its API form. Only this file knows the names of its fields. */
function presentStep(step: Step): StepBody {
  switch (step.kind) {
    case 'syntax': {
      const { ok, address, suggestion, text } = step
      return { step: 'syntax', ok, address, did_you_mean: suggestion, text }
    }
    case 'domain': {
      const { ok, route, hosts, operator, text } = step
      return { step: 'domain', ok, kind: route, hosts: [...hosts], operator, text }
    }
    case 'server': {
      const { host, ip, ok, text } = step
      return { step: 'server', host, ip, ok, text }
    }
    case 'line':
      return { step: 'line', text: step.text }
    case 'cached':
      return { step: 'cached', checked_at: isoTime(step.checkedAt), text: step.text }
  }
}
