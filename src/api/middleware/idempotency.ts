import { createHash } from 'node:crypto'
import type { Context } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import {
  findResponse,
  REPLAY_MS,
  type StoredResponse,
  saveResponse,
} from '../../accounts/idempotency.ts'
import { type BeforeCommit, type Trx, writeWith } from '../../db/database.ts'
import type { Env, Replay } from '../context.ts'
import { invalidRequest, requestError } from '../errors/request-errors.ts'
import { getHeader } from '../headers.ts'
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

/** Like `answerWith` for `work` that is not a use case, in its own write transaction. */
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
export const unchecked = (answer: Response | Promise<Response>) => answer as Promise<never>

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
  throw requestError('request_finished_first')
}

/** Idempotency-Keys of requests that this process is processing. */
export class KeysInFlight {
  readonly #locks = new Set<string>()
  #ended = 0

  /** Number of requests with a key that have ended; a response may be stored since it was lower. */
  get ended(): number {
    return this.#ended
  }

  /** Locks a key of an API key. Throws ApiError if it is locked. Returns the function that unlocks. */
  start(keyId: string, key: string): () => void {
    const lock = `${keyId} ${key}`
    if (this.#locks.has(lock)) throw requestError('request_in_progress')
    this.#locks.add(lock)
    return () => {
      this.#locks.delete(lock)
      this.#ended++
    }
  }
}

type ReplayDeps = IdempotencyDeps & { readonly keysInFlight: KeysInFlight }

/** Whether a request has an Idempotency-Key. */
export const isIdempotent = (c: Context<Env>): boolean =>
  getHeader(c, 'idempotency-key') !== undefined

/** Reads the Idempotency-Key of a request and the response that is stored under it. */
export async function findReplay(c: Context<Env>, service: ReplayDeps): Promise<Replay> {
  const key = getHeader(c, 'idempotency-key') ?? ''
  const { ended } = service.keysInFlight
  const replay = { key, fingerprint: '', stored: await findStored(c, service, key), ended }
  c.set('replay', replay)
  return replay
}

/**
 * Locks the key of a request until the returned function is called, so that its request is executed
 * once. Throws ApiError if the key is malformed or locked.
 */
export async function lockReplay(
  c: Context<Env>,
  service: ReplayDeps,
  replay: Replay,
): Promise<() => void> {
  checkKey(replay.key)
  const unlock = service.keysInFlight.start(c.get('caller').key.id, replay.key)
  // The body was read since the first look.
  if (replay.stored === null && service.keysInFlight.ended !== replay.ended) {
    try {
      replay.stored = await findStored(c, service, replay.key)
    } catch (error) {
      unlock()
      throw error
    }
  }
  return unlock
}

/**
 * Returns the stored response of the key of a request; null if the request is new or has no key.
 * Throws ApiError if the key was used for another request. `body` is the body or, if that is long,
 * its digest.
 */
export function repeatStored(
  c: Context<Env>,
  service: IdempotencyDeps,
  body: Uint8Array,
): Response | null {
  const replay = c.get('replay') ?? null
  if (replay === null) return null
  replay.fingerprint = createFingerprint(c, body)
  return replay.stored === null ? null : repeat(c, service, replay.stored, replay.fingerprint)
}

function findStored(c: Context<Env>, { database, clock }: IdempotencyDeps, key: string) {
  const since = clock.now() - REPLAY_MS
  return findResponse(database, { keyId: c.get('caller').key.id, key, since })
}

function checkKey(key: string): void {
  if (PRINTABLE.test(key)) return
  throw invalidRequest('Idempotency-Key must have 1 to 255 printable ASCII characters.')
}

const PRINTABLE = /^[\x20-\x7e]{1,255}$/

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
    throw requestError('idempotency_key_reused')
  }
  c.header('Idempotency-Replayed', 'true')
  return sendStored(c, JSON.parse(service.secretBox.decrypt(stored.answer)), stored.status)
}
