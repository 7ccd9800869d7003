import type { Context } from 'hono'
import { creditsExceededError } from '../../accounts/credits/credit-store.ts'
import type { Reservation } from '../../accounts/credits/reservations.ts'
import type { Shortage } from '../../accounts/credits/usage-ledger.ts'
import { type Trx, writeAsyncCommit } from '../../db/database.ts'
import { commitMark } from '../../db/postgres/commit.ts'
import type { Address, SyntaxFault } from '../../engine/address/address.ts'
import { withDeadline } from '../../engine/deadline.ts'
import { sandboxResult } from '../../engine/sandbox.ts'
import type { Step } from '../../engine/step-observer.ts'
import { fromDeadline } from '../../engine/verdict/build-result.ts'
import type { Result } from '../../engine/verdict/verdict.ts'
import type { JobOptions } from '../../jobs/job-store.ts'
import { orOnAbort } from '../../platform/abort.ts'
import { formatNumber } from '../../platform/format.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { ApiDeps } from '../api-deps.ts'
import { type Env, unlessAborted } from '../context.ts'
import { requestError } from '../errors/request-errors.ts'
import { commitResponse, type IdempotencyDeps } from '../middleware/idempotency.ts'
import { outOfCredits, type RateLimitDeps } from '../middleware/rate-limit.ts'
import { EMAIL_LENGTH_MAX } from '../schemas/verify.ts'

export type AskDeps = Pick<
  ApiDeps,
  'capacity' | 'clock' | 'database' | 'engine' | 'feedback' | 'ledger'
> &
  IdempotencyDeps &
  RateLimitDeps

/** Largest body of a single verification, in bytes: an address has 254 octets. */
export const SINGLE_BODY_MAX = 16 * 1024

/** One address to verify, with its options. */
export type VerifyInput = JobOptions & {
  readonly email: string
  /** The address of `email`, so that it is parsed once. */
  readonly address: Address | SyntaxFault
  /**
   * Time after which the result is `timeout`, in ms, while the probe goes on; omitted: the deadline
   * of the engine.
   */
  readonly deadlineMs?: number
}

/** Reads the address of a request body from its field `name`. Throws ApiError if it is not a string. */
export function readEmail(email: unknown, name = 'email'): string {
  if (typeof email === 'string' && email.length <= EMAIL_LENGTH_MAX) return email
  if (typeof email === 'string') {
    const length = formatNumber(email.length)
    throw requestError('address_not_valid', {
      fault: `"${name}" has ${length} characters; an address has at most 254 octets.`,
    })
  }
  const excerpt = email === undefined ? 'missing' : sanitizeText(JSON.stringify(email), 40)
  throw requestError('address_not_valid', {
    fault: `"${name}" is ${excerpt}; it must be a string with one address.`,
  })
}

/** Verifies one address within the request, posts it to the ledger, and responds. */
export function answerOne(
  c: Context<Env>,
  service: AskDeps,
  input: VerifyInput,
  present: (result: Result) => object,
): Promise<Response> {
  if (!c.get('sandbox')) return answerLive(c, service, input, present)
  const result = sandboxResult(service.clock, input.email, input.address)
  return settle(c, service, { result, reservation: null }, present)
}

/** A cached answer is free, so it needs no reservation. */
async function answerLive(
  c: Context<Env>,
  service: AskDeps,
  input: VerifyInput,
  present: (result: Result) => object,
): Promise<Response> {
  const cached = await getCached(c, service, input)
  if (cached !== null) {
    const result = await applyFeedbackToOne(c, service, cached)
    return settle(c, service, { result, reservation: null }, present)
  }
  const reservation = await reserveCredits(c, service, 1)
  const result = await releaseOnFailure(c, service, reservation, async () =>
    applyFeedbackToOne(c, service, await verify(c, service, input)),
  )
  return settle(c, service, { result, reservation }, present)
}

/**
 * The cache scope of a request. Answers are shared only within an account, because `cached` would
 * tell one account which addresses another one has verified.
 */
export const getCacheScope = (c: Context<Env>): string => c.get('caller').account.id

/** Returns the cached result of an address, which is free; null if there is none. */
export const getCached = (
  c: Context<Env>,
  { engine }: AskDeps,
  { email, address, checkSmtp, forceRefresh }: VerifyInput,
  onStep?: (step: Step) => void,
): Promise<Result | null> =>
  checkSmtp && !forceRefresh
    ? engine.getCached(email, {
        address,
        cacheScope: getCacheScope(c),
        ...(onStep === undefined ? {} : { onStep }),
      })
    : NO_ANSWER

const NO_ANSWER = Promise.resolve(null)

/**
 * Runs `work` and releases the reservation if it fails. A transaction of `work` that settles the
 * reservation calls `onSettle` first: if its commit took effect although it failed, nothing is
 * released.
 */
export async function releaseOnFailure<T>(
  c: Context<Env>,
  { ledger }: AskDeps,
  reservation: Reservation | null,
  work: (onSettle: (trx: Trx) => Promise<void>) => Promise<T>,
): Promise<T> {
  let mark: string | null = null
  let isSettling = false
  try {
    const done = await work(async trx => {
      isSettling = true
      mark = reservation === null ? null : await commitMark(trx)
    })
    if (isSettling && reservation !== null) {
      ledger.settled(c.get('caller').account.id, reservation)
    }
    return done
  } catch (error) {
    if (reservation !== null) ledger.giveBack(c.get('caller').account.id, reservation, mark)
    throw error
  }
}

/**
 * The probe continues if the client disconnects: other requests of the account may share it, and its
 * answer is cached.
 */
const verify = (c: Context<Env>, service: AskDeps, input: VerifyInput): Promise<Result> =>
  unlessAborted(c, verifyAdmitted(c, service, input))

/** The engine ends this much before the deadline, so that its result with the evidence is returned. */
const RESULT_MARGIN_MS = 20

/** Verifies one address. The wait for admission counts toward the deadline. */
export async function verifyAdmitted(
  c: Context<Env>,
  service: AskDeps,
  input: VerifyInput,
  onStep?: (step: Step) => void,
): Promise<Result> {
  const { clock, engine } = service
  const { email, address, checkSmtp, forceRefresh, deadlineMs = engine.deadlineMs } = input
  const now = clock.monotonicNow()
  const startedAt = service.capacity.admissions.arrivedAt(c.env?.outgoing) ?? now
  const waitedMs = now - startedAt
  const limit = withDeadline(clock, deadlineMs - waitedMs, [])
  const run = engine.verify(email, {
    address,
    checkSmtp,
    forceRefresh,
    cacheScope: getCacheScope(c),
    ...(onStep === undefined ? {} : { onStep }),
    deadlineMs: engine.deadlineMs - RESULT_MARGIN_MS - waitedMs,
  })
  const result = await orOnAbort(run, limit.signal, null).finally(limit.done)
  return result ?? fromDeadline(clock, email, startedAt)
}

/** Commits the result before the response is sent, with an Idempotency-Key also the response. */
async function settle(
  c: Context<Env>,
  service: AskDeps,
  { result, reservation }: { readonly result: Result; readonly reservation: Reservation | null },
  present: (result: Result) => object,
): Promise<Response> {
  const origin = verificationOrigin(c)
  const entry = { result }
  const body = present(result)
  if ((c.get('replay') ?? null) === null) {
    await service.ledger.settle({ ...origin, source: 'single', reservation, entry })
    return c.json(body)
  }
  const period = reservation?.period ?? null
  const released = reservation?.amount ?? 0
  return releaseOnFailure(c, service, reservation, onSettle =>
    commitResponse(c, service, async trx => {
      await onSettle(trx)
      const held = { period, released, member: reservation?.member ?? null }
      const entries = { ...origin, source: 'single' as const, jobId: null, ...held }
      await service.ledger.record(trx, { ...entries, entries: [entry] })
      return { status: 200, body }
    }),
  )
}

/** The account, key and mode of a verification, for the ledger. */
export function verificationOrigin(c: Context<Env>) {
  const { account, key } = c.get('caller')
  return { accountId: account.id, keyId: key.id, sandbox: c.get('sandbox') }
}

/** Applies the feedback of the account to results, and stores their verdicts for later feedback. */
export async function applyFeedback(
  c: Context<Env>,
  { feedback, database }: AskDeps,
  results: readonly Result[],
): Promise<readonly Result[]> {
  const accountId = c.get('caller').account.id
  if (c.get('sandbox') || !(await feedback.isEnrolled(accountId))) return results
  return writeAsyncCommit(database, trx => feedback.adjust(trx, accountId, results))
}

/**
 * Applies the feedback of the account to one result. An account that is known to have no feedback
 * waits for nothing.
 */
export function applyFeedbackToOne(
  c: Context<Env>,
  service: AskDeps,
  result: Result,
): Result | Promise<Result> {
  if (service.feedback.isKnownWithout(c.get('caller').account.id)) return result
  return applyFeedback(c, service, [result]).then(([adjusted = result]) => adjusted)
}

/** Reserves credits for verifications within a request. Throws `quota_exceeded` if too few are left. */
async function reserveCredits(
  c: Context<Env>,
  service: AskDeps,
  amount: number,
): Promise<Reservation> {
  const reserved = await tryReserve(c, service, amount)
  if ('amount' in reserved) return reserved
  throw shortageError(c, service, amount, reserved)
}

/** Reserved credits, or a cached answer that needs none. */
type ReservedOrCached<Cached> =
  | { readonly reservation: Reservation; readonly cached: null }
  | { readonly reservation: null; readonly cached: Cached }

/**
 * Reserves credits for verifications within a request. If too few are left, returns what
 * `getCached` finds, since cached answers are free; throws `quota_exceeded` if that is null.
 */
export async function reserveOrGetCached<Cached>(
  c: Context<Env>,
  service: AskDeps,
  amount: number,
  getCached: () => Promise<Cached | null>,
): Promise<ReservedOrCached<Cached>> {
  const reserved = await tryReserve(c, service, amount)
  if ('amount' in reserved) return { reservation: reserved, cached: null }
  const cached = await getCached()
  if (cached !== null) return { reservation: null, cached }
  throw shortageError(c, service, amount, reserved)
}

function tryReserve(
  c: Context<Env>,
  { ledger }: AskDeps,
  amount: number,
): Promise<Reservation | Shortage> {
  const { account, plan } = c.get('caller')
  return ledger.reserve(account.id, plan, amount)
}

function shortageError(
  c: Context<Env>,
  service: AskDeps,
  needed: number,
  { creditsLeft: left }: Shortage,
): Error {
  const { plan } = c.get('caller')
  if (left === 0) return outOfCredits(service, plan.creditsPerDay ?? 0)
  return creditsExceededError(plan, service.clock.now(), { needed, left })
}
