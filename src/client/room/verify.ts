import type { CallOptions, Connection, CreateOptions } from '../connection/connection.ts'
import type { AsyncAccepted, ScoredResult, SingleRequest, SingleResult } from '../types.ts'

/** What is asked of one address: the address alone, or with how it is asked. */
export type Question = string | (Omit<SingleRequest, 'async'> & { readonly async?: false })

export type SingleOptions = CallOptions & {
  /** What to tell beside the plain result. */
  readonly include?: readonly ('flags' | 'evidence')[] | undefined
}

export type Verify = {
  /** Verifies one address; the result has a score as well. */
  (question: Question, options?: CallOptions): Promise<ScoredResult>
  /** Verifies one address. */
  single(question: Question, options?: SingleOptions): Promise<SingleResult>
  /** Answers at once; the result comes by the event `verification.completed`. */
  later(question: Question, options?: CreateOptions): Promise<AsyncAccepted>
}

export function verifyRoom({ json }: Connection): Verify {
  const verify = (question: Question, options?: CallOptions) =>
    json<ScoredResult>(ask('/v1/verify', question), options)

  return Object.assign(verify, {
    single: (question: Question, { include, ...options }: SingleOptions = {}) =>
      json<SingleResult>({ ...ask('/v1/verify/single', question), query: { include } }, options),
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

/** To ask twice costs no more: what is known already is free. */
const ask = (path: string, question: Question) =>
  ({ method: 'POST', path, body: asBody(question) }) as const

const asBody = (question: Question) =>
  typeof question === 'string' ? { email: question } : question
