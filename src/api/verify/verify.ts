import { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { cleanAddress, isFault, parseAddress } from '../../engine/address/address.ts'
import {
  type ActionPolicy,
  DEFAULT_ACTION_POLICY,
  decideVerdict,
} from '../../engine/verdict/action.ts'
import {
  type Include,
  plainResult,
  presentAddressFlags,
  presentResult,
} from '../../engine/verdict/present-result.ts'
import type { Reason } from '../../engine/verdict/reason.ts'
import type { Result } from '../../engine/verdict/verdict.ts'
import { sanitizeText } from '../../platform/text.ts'
import { type ActionPolicyDeps, getActionPolicy } from '../action-policy.ts'
import type { ApiDeps } from '../api-deps.ts'
import type { Env } from '../context.ts'
import { invalidRequest, requestError } from '../errors/request-errors.ts'
import {
  type GivenMetadata,
  type JobOptionDeps,
  readJobWebhook,
  readMetadata,
} from '../lists/job-options.ts'
import { type QueueDeps, queueOne } from '../lists/queue.ts'
import { type ListDeps, listRoutes } from '../lists/routes.ts'
import { unchecked } from '../middleware/idempotency.ts'
import { newRouter, route } from '../route.ts'
import { eventContent, json } from '../schemas/answers.ts'
import { RESULT_EXAMPLE, ScoredResult, SingleResult } from '../schemas/result.ts'
import { AsyncAccepted, ScoredRequest, SingleQuery, SingleRequest } from '../schemas/verify.ts'
import { type AskDeps, answerOne, readEmail, SINGLE_BODY_MAX, type VerifyInput } from './ask.ts'
import { type DomainDeps, domainRoutes } from './domain.ts'
import { type FollowDeps, followOne, noKeyForEvents, STEP_EXAMPLE, wantsEvents } from './follow.ts'
import { type FormDeps, formRoutes } from './form.ts'
import { simulatedError } from './sandbox.ts'

type VerifyDeps = Pick<ApiDeps, 'guard'> &
  ActionPolicyDeps &
  JobOptionDeps &
  QueueDeps &
  ListDeps &
  AskDeps &
  FollowDeps &
  FormDeps &
  DomainDeps

/** The body after validation by the schema; `email` may still be anything. */
type SingleBody = {
  readonly email?: unknown
  readonly check_smtp?: boolean | undefined
  readonly force_refresh?: boolean | undefined
  readonly async?: boolean | undefined
  readonly metadata?: GivenMetadata
  readonly webhook_url?: string | null | undefined
}

/** `POST /v1/verify/single`: one address, answered now, or later by an event. */
function verifySingle(
  c: Context<Env>,
  service: VerifyDeps,
  body: SingleBody,
  include: string | undefined,
): Response | Promise<Response> {
  const input = readSingle(body)
  const included = readInclude(include)
  const sandbox = c.get('sandbox')
  const simulated = simulatedError(c, input.address)
  if (simulated !== null) return simulated
  if (body.async === true) {
    refuseIncluded(included)
    return queueSingle(c, service, body, input)
  }
  refuseJobOptions(body)
  return answerOne(c, service, input, result => {
    const answer = presentIncluded(result, included, getActionPolicy(c, service))
    return sandbox ? { ...answer, sandbox } : answer
  })
}

/** Queues the address; its result becomes an event. */
async function queueSingle(
  c: Context<Env>,
  service: VerifyDeps,
  body: SingleBody,
  input: VerifyInput,
): Promise<Response> {
  const events = ['verification.completed'] as const
  return queueOne(c, service, {
    ...input,
    metadata: readMetadata(body.metadata),
    webhook: await readJobWebhook(c, service, body.webhook_url, events),
  })
}

/** The same as an event stream. Text that is not an address has a result there: people mistype. */
async function followSingle(
  c: Context<Env>,
  service: VerifyDeps,
  body: SingleBody,
): Promise<Response> {
  const request = readVerifyInput(body)
  if (body.async === true) {
    const message =
      '"async": true returns at once and has no steps to stream. Omit it, or the header Accept.'
    throw invalidRequest(message)
  }
  refuseJobOptions(body)
  return simulatedError(c, request.address) ?? followOne(c, service, request)
}

/** `POST /v1/verify`: one address with a status and a score; in the sandbox a simulated one. */
function verifyScored(
  c: Context<Env>,
  service: VerifyDeps,
  body: SingleBody,
  include: string | undefined,
): Response | Promise<Response> {
  const input = readSingle(body)
  const included = readInclude(include)
  const sandbox = c.get('sandbox')
  const simulated = simulatedError(c, input.address)
  if (simulated !== null) return simulated
  return answerOne(c, service, input, result =>
    scoredBody(result, { include: included, sandbox, policy: getActionPolicy(c, service) }),
  )
}

/** Refuses what cannot be an address. Whether it accepts mail is a result. */
function readSingle(body: SingleBody): VerifyInput {
  const input = readVerifyInput(body)
  if (isFault(input.address))
    throw requestError('address_not_valid', { fault: input.address.message })
  return input
}

function readVerifyInput({ email, check_smtp, force_refresh }: SingleBody): VerifyInput {
  // As in a list: an address that is pasted from a table has spaces around it.
  const { text } = cleanAddress(readEmail(email))
  return {
    email: text,
    address: parseAddress(text),
    checkSmtp: check_smtp ?? true,
    forceRefresh: force_refresh ?? false,
  }
}

const INCLUDES: readonly Include[] = ['flags', 'evidence']

function readInclude(text: string | undefined): readonly Include[] {
  if (text === undefined) return []
  const names = text.split(',').map(name => name.trim())
  return names
    .filter(name => name !== '')
    .map(name => {
      const known = INCLUDES.find(include => include === name)
      if (known !== undefined) return known
      throw invalidRequest(
        `include=${sanitizeText(name, 40)} is unknown; it takes ${INCLUDES.join(' and ')}.`,
      )
    })
}

/** The event has the plain result only. */
function refuseIncluded(include: readonly Include[]): void {
  if (include.length > 0) throw invalidRequest('"include" cannot be combined with "async": true.')
}

/** Throws for options of a job if there is none. */
function refuseJobOptions(body: SingleBody): void {
  const name = (['metadata', 'webhook_url'] as const).find(one => body[one] !== undefined)
  if (name === undefined) return
  throw invalidRequest(`"${name}" belongs to a job. Add "async": true, or omit it.`)
}

/** The plain result with the included parts. */
const presentIncluded = (result: Result, include: readonly Include[], policy: ActionPolicy) =>
  include.length === 0 ? plainResult(result, policy) : presentResult(result, include, policy)

type ScoredOptions = {
  readonly include: readonly Include[]
  readonly sandbox: boolean
  readonly policy: ActionPolicy
}

/** Has the same fields live and in the sandbox; the sandbox has three statuses (spec 2.6). */
function scoredBody(result: Result, { include, sandbox, policy }: ScoredOptions) {
  const { email, ...rest } = presentIncluded(result, include, policy)
  const { is_disposable, is_role, is_catch_all, is_free } = presentAddressFlags(result.evidence)
  const status = sandbox && rest.class === 'unknown' ? 'risky' : rest.class
  return {
    email,
    status,
    score: SCORES[rest.reason],
    is_disposable,
    is_role,
    is_catch_all,
    is_free,
    ...rest,
    sandbox,
  }
}

/**
 * The score of each reason, 0 to 100: the higher, the more likely mail reaches a person. The
 * interface fixes rejected at 0 and the rows of the sandbox; the others lie in between.
 */
export const SCORES: Readonly<Record<Reason, number>> = {
  accepted_email: 95,
  role_account: 60,
  possible_typo: 55,
  low_quality: 50,
  low_deliverability: 50,
  catch_all: 50,
  disposable_email: 30,
  // The mailbox exists, but mail bounces until it has space again.
  mailbox_full: 20,
  // Sending there harms the reputation of the sender.
  spam_trap: 5,
  blocklisted: 5,

  // Unknown: below accepted addresses, above those that are known to do harm.
  greylisted: 40,
  smtp_skipped: 40,
  no_address: 40,
  no_connect: 40,
  timeout: 40,
  unavailable_smtp: 40,
  invalid_smtp: 40,
  probe_blocked: 40,
  dns_error: 40,
  unexpected_error: 40,

  // Only rows of lists have these.
  external_deliverable: 65,
  external_risky: 50,
  external_do_not_mail: 5,
  external_undeliverable: 0,
  external_unknown: 40,

  mailbox_disabled: 0,
  rejected_email: 0,
  invalid_email: 0,
  invalid_domain: 0,
  no_mx_record: 0,
  does_not_accept_mail: 0,
}

/** Routes that verify addresses and lists. */
export const verifyRoutes = (service: VerifyDeps) =>
  newRouter()
    .include(singleRoutes(service))
    .include(formRoutes(service))
    .include(domainRoutes(service))
    .include(listRoutes(service))

function singleRoutes(service: VerifyDeps) {
  const router = newRouter()

  const single = route(service, 'POST /v1/verify/single', {
    ...SINGLE,
    id: 'verifySingle',
    summary: 'Verify one address',
    description:
      "An address that doesn't exist is a result, with status 200. Text that isn't an address is rejected with 400 `invalid_email`. With `Accept: text/event-stream`, the response is a stream of server-sent events: a `step` event with a `VerifyStep` for each step, then a `result` event with the fields of `?include=flags,evidence`, or an `error` event with an `Error`. In a stream, malformed text is also a result. A stream can't be combined with an `Idempotency-Key`.",
    body: { ...SINGLE_BODY, schema: SingleRequest },
    answer: withEventStream(
      json(z.union([SingleResult, AsyncAccepted]), 'The result', RESULT_EXAMPLE),
    ),
    // Only `async` stores a row.
    errors: [...SINGLE.errors, 'stored_rows_exceeded', 'invalid_webhook_url'],
    optionalHeaders: ['X-Accel-Buffering'],
    afterBody: noKeyForEvents,
  })
  router.handle(single, c => {
    const body = c.req.valid('json')
    if (wantsEvents(c)) return unchecked(followSingle(c, service, body))
    return unchecked(verifySingle(c, service, body, c.req.valid('query').include))
  })

  const scored = route(service, 'POST /v1/verify', {
    ...SINGLE,
    id: 'verify',
    summary: 'Verify one address with a status and a score',
    description:
      'Like `POST /v1/verify/single`, with more fields. With `X-EV-Sandbox: true`, the prefix of the address selects the result (`valid`, `invalid`, `risky`, `catchall`, `disposable`, `role`) or an error (`error-auth`, `error-ratelimit`, `error-timeout`, `error-server`).',
    body: { ...SINGLE_BODY, schema: ScoredRequest },
    answer: json(ScoredResult, 'The result', SCORED_EXAMPLE),
  })
  router.handle(scored, c =>
    unchecked(verifyScored(c, service, c.req.valid('json'), c.req.valid('query').include)),
  )

  return router
}

const SINGLE = {
  scope: 'verify:single',
  counts: 'single',
  idempotent: true,
  query: SingleQuery,
  errors: ['invalid_email', 'quota_exceeded'],
} as const

/** The address may be cached, and is then answered without credits. */
const SINGLE_BODY = {
  example: { email: 'user@example.com' },
  max: SINGLE_BODY_MAX,
  freeMax: SINGLE_BODY_MAX,
}

/** Adds the event stream to a response. */
const withEventStream = <C extends object>({
  content,
  ...rest
}: {
  description: string
  content: C
}) => ({
  ...rest,
  content: { ...content, 'text/event-stream': eventContent('VerifyStep', EVENTS_EXAMPLE) },
})

const EVENTS_EXAMPLE = [
  'retry: 3000',
  `event: step\ndata: ${JSON.stringify(STEP_EXAMPLE)}`,
  `event: result\ndata: ${JSON.stringify(RESULT_EXAMPLE)}`,
]
  .map(text => `${text}\n\n`)
  .join('')

const { action, sentence: action_reason } = decideVerdict(
  { reason: 'disposable_email', risk: 'high' },
  DEFAULT_ACTION_POLICY,
)

const SCORED_EXAMPLE = {
  email: 'disposable-test@example.com',
  status: 'risky' as const,
  score: 30,
  is_disposable: true,
  is_role: false,
  is_catch_all: null,
  is_free: false,
  valid: true,
  deliverable: false,
  risk_level: 'high' as const,
  provider: 'example.com',
  response_time: 4,
  confidence: 90,
  details: { syntax_valid: true, domain_exists: true, mx_record: true, smtp_valid: true },
  reason: 'disposable_email' as const,
  cached: false,
  class: 'risky' as const,
  action,
  action_reason,
  sandbox: true,
}
