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
import type { ServiceDeps } from '../service.ts'

export type IdempotencyDeps = Pick<ServiceDeps, 'clock' | 'database' | 'secretBox'>

/** The response of a request, to be stored and sent. */
type Answer = {
  readonly status: 200 | 201
  readonly body: object
  readonly headers?: Readonly<Record<string, string>>
}

/**
 * Runs a use case and responds with its result. With an Idempotency-Key the response is stored in
 * the transaction of the use case: if a commit took effect although it failed, a retry gets that
 * response. It is typed as `never`, which fits every route: its body has no static type, and tests
 * check it against its schema.
 */
export async function answerWith<Result>(
  c: Context<Env>,
  service: IdempotencyDeps,
  useCase: (beforeCommit: BeforeCommit<Result>) => Promise<unknown>,
  present: (result: Result) => Answer,
): Promise<never> {
  let answer: { readonly status: number; readonly stored: StoredAnswer } | undefined
  await useCase(async (trx, result) => {
    const { status, body, headers = {} } = present(result)
    answer = { status, stored: { text: JSON.stringify(body), headers } }
    await storeAnswer(trx, c, service, answer)
  })
  if (answer === undefined) throw new Error('the use case ended without a commit')
  return sendStored(c, answer.stored, answer.status) as never
}

/** Like `answerWith` for `work` that is no use case, in its own write transaction. */
export const commitResponse = (
  c: Context<Env>,
  service: IdempotencyDeps,
  work: (trx: Trx) => Promise<Answer>,
): Promise<never> =>
  answerWith<Answer>(
    c,
    service,
    beforeCommit => writeWith(service.database, work, beforeCommit),
    answer => answer,
  )

/** Casts a response whose body has no static type; tests check it against its schema. */
export const unchecked = (answer: Promise<Response>) => answer as Promise<never>

/** A response that is repeated byte for byte. */
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

async function storeAnswer(
  trx: Trx,
  c: Context<Env>,
  { clock, secretBox }: IdempotencyDeps,
  { status, stored }: { status: number; stored: StoredAnswer },
): Promise<void> {
  const replay = c.get('replay') ?? null
  if (replay === null) return
  if (replay.fingerprint === '')
    throw new Error('the response is stored before the fingerprint of the request is known')
  const now = clock.now()
  const row = {
    key_id: c.get('caller').key.id,
    idempotency_key: replay.key,
    fingerprint: replay.fingerprint,
    status,
    answer: secretBox.encrypt(JSON.stringify(stored)),
    created_at: now,
  }
  if (await saveResponse(trx, row, now - REPLAY_MS)) return
  // Another process of the service stored a response first; a retry gets that one.
  throw new ApiError(
    'idempotency_in_progress',
    'Another request with this Idempotency-Key finished first. Repeat the request.',
    {
      retryAfterS: 1,
    },
  )
}

/**
 * Executes the request of an Idempotency-Key once: its response is stored for a day by
 * `commitResponse`, and repeated. With `fingerprintLater` the body is a stream: the handler reads
 * it and calls `findStoredResponse` before it commits.
 */
export function idempotent(
  service: IdempotencyDeps & { readonly inFlightKeys: Set<string> },
  { fingerprintLater = false }: { fingerprintLater?: boolean } = {},
): MiddlewareHandler<Env> {
  return async (c, next) => {
    const key = c.req.header('Idempotency-Key')
    c.set('replay', null)
    if (key === undefined) return next()
    checkKey(key)
    const { inFlightKeys } = service
    const lock = `${c.get('caller').key.id} ${key}`
    if (inFlightKeys.has(lock)) throw inProgress()
    inFlightKeys.add(lock)
    try {
      if (fingerprintLater) {
        c.set('replay', { key, fingerprint: '' })
        return await next()
      }
      const repeated = await findStoredResponse(c, service, { key, body: c.get('body') ?? EMPTY })
      if (repeated !== null) return repeated
      return await next()
    } finally {
      inFlightKeys.delete(lock)
    }
  }
}

/**
 * Returns the stored response of a key; null if the request is new. Throws ApiError if the key was
 * used for another request. `body` is the body or, if that is long, its digest.
 */
export async function findStoredResponse(
  c: Context<Env>,
  service: IdempotencyDeps,
  { key, body }: { key: string; body: Uint8Array },
): Promise<Response | null> {
  const fingerprint = createFingerprint(c, body)
  c.set('replay', { key, fingerprint })
  const stored = await findStored(c, service, key)
  return stored === null ? null : repeat(c, service, stored, fingerprint)
}

/**
 * Whether a response is stored under the Idempotency-Key of the request, perhaps of another
 * request. Repeating it is free.
 */
export async function isAnswered(c: Context<Env>, service: IdempotencyDeps): Promise<boolean> {
  const key = c.req.header('Idempotency-Key')
  return key !== undefined && (await findStored(c, service, key)) !== null
}

function findStored(c: Context<Env>, { database, clock }: IdempotencyDeps, key: string) {
  const since = clock.now() - REPLAY_MS
  return findResponse(database, { keyId: c.get('caller').key.id, key, since })
}

const EMPTY = new Uint8Array()

function checkKey(key: string): void {
  if (PRINTABLE.test(key)) return
  throw new ApiError(
    'invalid_request',
    'Idempotency-Key must have 1 to 255 printable ASCII characters.',
  )
}

const PRINTABLE = /^[\x20-\x7e]{1,255}$/

const inProgress = () =>
  new ApiError(
    'idempotency_in_progress',
    'A request with this Idempotency-Key is in progress. Try again later.',
    {
      retryAfterS: 1,
    },
  )

/** The query and the sandbox header are part of the request, too. */
function createFingerprint(c: Context<Env>, body: Uint8Array): string {
  const { pathname, search } = new URL(c.req.url)
  const head = `${c.req.method} ${pathname}${search} ${c.get('sandbox') ? 'sandbox' : ''}\n`
  return createHash('sha256').update(head).update(body).digest('hex')
}

function repeat(
  c: Context<Env>,
  service: IdempotencyDeps,
  stored: StoredResponse,
  fingerprint: string,
): Response {
  if (stored.fingerprint !== fingerprint) {
    const message =
      'This Idempotency-Key was used for another request. Use a new key for each request.'
    throw new ApiError('idempotency_mismatch', message)
  }
  c.header('Idempotency-Replayed', 'true')
  return sendStored(c, JSON.parse(service.secretBox.decrypt(stored.answer)), stored.status)
}
