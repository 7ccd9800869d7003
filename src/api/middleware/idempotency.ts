import { createHash } from 'node:crypto'
import type { Context, MiddlewareHandler } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import {
  findResponse,
  REPLAY_MS,
  type StoredResponse,
  saveResponse,
} from '../../accounts/idempotency.ts'
import { type BeforeCommit, type Trx, writeWith } from '../../db/database.ts'
import type { Env } from '../context.ts'
import { ApiError } from '../errors/api-error.ts'
import type { Service } from '../service.ts'
import { stateOf } from '../state.ts'

/** What a request caused, to be told. */
type Answer = {
  readonly status: 200 | 201
  readonly body: object
  readonly headers?: Readonly<Record<string, string>>
}

/**
 * Runs a use case and answers with its result. Under an Idempotency-Key the answer is kept in the transaction of the use
 * case: a commit that failed may have come about all the same, and then the retry is told so.
 */
export async function answerWith<Result>(
  c: Context<Env>,
  service: Service,
  useCase: (beforeCommit: BeforeCommit<Result>) => Promise<unknown>,
  present: (result: Result) => Answer,
): Promise<Response> {
  let answer: { readonly status: number; readonly kept: StoredAnswer } | undefined
  await useCase(async (trx, result) => {
    const { status, body, headers = {} } = present(result)
    answer = { status, kept: { text: JSON.stringify(body), headers } }
    await keep(trx, c, service, answer)
  })
  if (answer === undefined) throw new Error('the use case ended without a commit')
  return sendStored(c, answer.kept, answer.status)
}

/** The same for `work` that is no use case, in a write transaction of its own. */
export const commitResponse = (
  c: Context<Env>,
  service: Service,
  work: (trx: Trx) => Promise<Answer>,
): Promise<Response> =>
  answerWith<Answer>(
    c,
    service,
    beforeCommit => writeWith(service.database, work, beforeCommit),
    answer => answer,
  )

/** An answer in the bytes that it has each time. */
type StoredAnswer = {
  readonly text: string
  readonly headers: Readonly<Record<string, string>>
}

function sendStored(c: Context<Env>, { text, headers }: StoredAnswer, status: number): Response {
  return c.body(text, status as ContentfulStatusCode, {
    'Content-Type': 'application/json',
    ...headers,
  })
}

async function keep(
  trx: Trx,
  c: Context<Env>,
  { clock, secretBox }: Service,
  { status, kept }: { status: number; kept: StoredAnswer },
): Promise<void> {
  const replay = c.get('replay') ?? null
  if (replay === null) return
  if (replay.fingerprint === '')
    throw new Error('this path keeps answers before it knows the request')
  const now = clock.now()
  const row = {
    key_id: c.get('caller').key.id,
    idempotency_key: replay.key,
    fingerprint: replay.fingerprint,
    status,
    answer: secretBox.encrypt(JSON.stringify(kept)),
    created_at: now,
  }
  if (await saveResponse(trx, row, now - REPLAY_MS)) return
  // Another process of the service was as fast: whatever it did is told to who asks again.
  throw new ApiError(
    'idempotency_in_progress',
    'A request with this Idempotency-Key was answered',
    {
      retryAfterS: 1,
    },
  )
}

/**
 * Gives the request of an Idempotency-Key its effect once: its answer is kept for a day by `commit`, and repeated.
 * With `fingerprintLater` the body is a stream: the handler reads it and calls `recognise` before it commits.
 */
export function idempotent(
  service: Service,
  { fingerprintLater = false }: { fingerprintLater?: boolean } = {},
): MiddlewareHandler<Env> {
  return async (c, next) => {
    const key = c.req.header('Idempotency-Key')
    c.set('replay', null)
    if (key === undefined) return next()
    checkKey(key)
    const { answering } = stateOf(service)
    const turn = `${c.get('caller').key.id} ${key}`
    if (answering.has(turn)) throw inProgress()
    answering.add(turn)
    try {
      if (fingerprintLater) {
        c.set('replay', { key, fingerprint: '' })
        return await next()
      }
      const repeated = await findStoredResponse(c, service, { key, body: c.get('body') ?? NOTHING })
      if (repeated !== null) return repeated
      return await next()
    } finally {
      answering.delete(turn)
    }
  }
}

/**
 * Looks whether a request with this key was answered before: gives that answer, or refuses another request under
 * the same key; null: it is new. `body` is the body or, where that is long, its digest.
 */
export async function findStoredResponse(
  c: Context<Env>,
  service: Service,
  { key, body }: { key: string; body: Uint8Array },
): Promise<Response | null> {
  const fingerprint = fingerprintOf(c, body)
  c.set('replay', { key, fingerprint })
  const kept = await findStored(c, service, key)
  return kept === null ? null : repeat(c, service, kept, fingerprint)
}

/** Whether there is an answer under the request's Idempotency-Key, perhaps to another request: it costs nothing to be had again. */
export async function isAnswered(c: Context<Env>, service: Service): Promise<boolean> {
  const key = c.req.header('Idempotency-Key')
  return key !== undefined && (await findStored(c, service, key)) !== null
}

function findStored(c: Context<Env>, { database, clock }: Service, key: string) {
  const since = clock.now() - REPLAY_MS
  return findResponse(database, { keyId: c.get('caller').key.id, key, since })
}

const NOTHING = new Uint8Array()

function checkKey(key: string): void {
  if (PRINTABLE.test(key)) return
  throw new ApiError(
    'invalid_request',
    'Idempotency-Key must be 1 to 255 printable ASCII characters',
  )
}

const PRINTABLE = /^[\x20-\x7e]{1,255}$/

const inProgress = () =>
  new ApiError('idempotency_in_progress', 'A request with this Idempotency-Key is being answered', {
    retryAfterS: 1,
  })

/** What is asked for is in the query and in the sandbox header too. */
function fingerprintOf(c: Context<Env>, body: Uint8Array): string {
  const { pathname, search } = new URL(c.req.url)
  const head = `${c.req.method} ${pathname}${search} ${c.get('sandbox') ? 'sandbox' : ''}\n`
  return createHash('sha256').update(head).update(body).digest('hex')
}

function repeat(
  c: Context<Env>,
  service: Service,
  kept: StoredResponse,
  fingerprint: string,
): Response {
  if (kept.fingerprint !== fingerprint) {
    const sentence = 'This Idempotency-Key was used for another request: take a new one for each'
    throw new ApiError('idempotency_mismatch', sentence)
  }
  c.header('Idempotency-Replayed', 'true')
  return sendStored(c, JSON.parse(service.secretBox.decrypt(kept.answer)), kept.status)
}
