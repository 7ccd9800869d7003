import type { Context } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { REPLAY_MS, saveResponse } from '../../accounts/idempotency.ts'
import { type BeforeCommit, writeWith } from '../../db/before-commit.ts'
import type { Trx } from '../../db/database.ts'
import type { Env } from '../context.ts'
import { ApiError } from '../errors/api-error.ts'
import type { Service } from '../service.ts'

/** What a request caused, to be told. */
export type Answer = {
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
export type StoredAnswer = {
  readonly text: string
  readonly headers: Readonly<Record<string, string>>
}

export function sendStored(
  c: Context<Env>,
  { text, headers }: StoredAnswer,
  status: number,
): Response {
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
