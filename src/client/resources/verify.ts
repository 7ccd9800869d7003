import type { CallOptions, Connection, CreateOptions } from '../connection.ts'
import { EvConnectionError } from '../error.ts'
import { toApiError } from '../response.ts'
import { eventsOf } from '../stream.ts'
import type {
  AsyncAccepted,
  ErrorBody,
  ScoredRequest,
  ScoredResult,
  SingleResult,
  VerifyStep,
} from '../types.ts'

/** What is asked of one address: the address alone, or with how it is asked. */
export type Question = string | ScoredRequest

export type ScoredOptions = CallOptions & {
  /** What to tell beside the plain result. */
  readonly include?: readonly ('flags' | 'evidence')[] | undefined
}

export type SingleOptions = ScoredOptions & {
  /** Called with each step as it happens. The result has all of `include` then, and what is no address has one too. */
  readonly onStep?: ((step: VerifyStep) => void) | undefined
}

export type Verify = {
  /** Verifies one address; the result has a score as well. */
  (question: Question, options?: ScoredOptions): Promise<ScoredResult>
  /** Verifies one address. */
  single(question: Question, options?: SingleOptions): Promise<SingleResult>
  /** Answers at once; the result comes by the event `verification.completed`. */
  later(question: Question, options?: CreateOptions): Promise<AsyncAccepted>
}

export function verifyRoom(connection: Connection): Verify {
  const { json } = connection
  const verify = (question: Question, { include, ...options }: ScoredOptions = {}) =>
    json<ScoredResult>({ ...ask('/v1/verify', question), query: { include } }, options)

  return Object.assign(verify, {
    single: (question: Question, { include, onStep, ...options }: SingleOptions = {}) =>
      onStep === undefined
        ? json<SingleResult>({ ...ask('/v1/verify/single', question), query: { include } }, options)
        : follow(connection, question, { ...options, onStep }),
    later: (question: Question, options?: CreateOptions) =>
      json<AsyncAccepted>(
        {
          method: 'POST',
          path: '/v1/verify/single',
          body: { ...asBody(question), async: true },
          creates: true,
        },
        options,
      ),
  })
}

type VerifyProgress =
  | { readonly event: 'step'; readonly data: VerifyStep }
  | { readonly event: 'result'; readonly data: SingleResult }
  | { readonly event: 'error'; readonly data: ErrorBody }

async function follow(
  { stream }: Connection,
  question: Question,
  { onStep, ...options }: CallOptions & { readonly onStep: (step: VerifyStep) => void },
): Promise<SingleResult> {
  const request = { ...ask('/v1/verify/single', question), accept: 'text/event-stream' }
  for await (const { event, data } of eventsOf<VerifyProgress>(await stream(request, options))) {
    if (event === 'result') return data
    if (event === 'error') throw toApiError(data)
    onStep(data)
  }
  throw new EvConnectionError('The steps ended before the result: ask again.', { timedOut: false })
}

/** To ask twice costs no more: what is known already is free. */
const ask = (path: string, question: Question) =>
  ({ method: 'POST', path, body: asBody(question) }) as const

const asBody = (question: Question) =>
  typeof question === 'string' ? { email: question } : question
