import type { CallOptions, Connection, CreateOptions } from '../connection.ts'
import { EvConnectionError } from '../error.ts'
import { toApiError } from '../response.ts'
import { readEvents } from '../stream.ts'
import type {
  AsyncAccepted,
  ErrorBody,
  FormResult,
  ScoredRequest,
  ScoredResult,
  SingleRequest,
  SingleResult,
  VerifyStep,
} from '../types.ts'

/** An address to verify, alone or with options. */
export type VerifyInput = string | ScoredRequest

export type ScoredOptions = CallOptions & {
  /** Additional parts of the result. */
  readonly include?: readonly ('flags' | 'evidence')[] | undefined
}

export type SingleOptions = ScoredOptions & {
  /**
   * Called for each step as it happens. The result then has all parts of `include`, and an invalid
   * address yields a result instead of an error.
   */
  readonly onStep?: ((step: VerifyStep) => void) | undefined
}

export type Verify = {
  /** Verifies one address; the result includes a score. */
  (input: VerifyInput, options?: ScoredOptions): Promise<ScoredResult>
  /** Verifies one address. */
  single(input: VerifyInput, options?: SingleOptions): Promise<SingleResult>
  /** Returns immediately; the webhook event `verification.completed` delivers the result. */
  later(
    input: VerifyInput | Omit<SingleRequest, 'async'>,
    options?: CreateOptions,
  ): Promise<AsyncAccepted>
  /** Verifies the address of a form within seconds. A publishable key can do only this. */
  form(email: string, options?: CallOptions): Promise<FormResult>
}

export function createVerifyResource(connection: Connection): Verify {
  const { json } = connection
  const verify = (input: VerifyInput, { include, ...options }: ScoredOptions = {}) =>
    json<ScoredResult>({ ...verifyRequest('/v1/verify', input), query: { include } }, options)

  return Object.assign(verify, {
    single: (input: VerifyInput, { include, onStep, ...options }: SingleOptions = {}) =>
      onStep === undefined
        ? json<SingleResult>(
            { ...verifyRequest('/v1/verify/single', input), query: { include } },
            options,
          )
        : follow(connection, input, { ...options, onStep }),
    later: (input: VerifyInput | Omit<SingleRequest, 'async'>, options?: CreateOptions) =>
      json<AsyncAccepted>(
        {
          method: 'POST',
          path: '/v1/verify/single',
          body: { ...toBody(input), async: true },
          creates: true,
        },
        options,
      ),
    form: (email: string, options?: CallOptions) =>
      json<FormResult>(verifyRequest('/v1/verify/form', email), options),
  })
}

type VerifyProgress =
  | { readonly event: 'step'; readonly data: VerifyStep }
  | { readonly event: 'result'; readonly data: SingleResult }
  | { readonly event: 'error'; readonly data: ErrorBody }

async function follow(
  { stream }: Connection,
  input: VerifyInput,
  { onStep, ...options }: CallOptions & { readonly onStep: (step: VerifyStep) => void },
): Promise<SingleResult> {
  const request = { ...verifyRequest('/v1/verify/single', input), accept: 'text/event-stream' }
  for await (const { event, data } of readEvents<VerifyProgress>(await stream(request, options))) {
    if (event === 'result') return data
    if (event === 'error') throw toApiError(data)
    onStep(data)
  }
  throw new EvConnectionError('The stream ended before the result. Try again.', { timedOut: false })
}

/** Without an Idempotency-Key: a cached result is free, so a retry costs nothing. */
const verifyRequest = (path: string, input: VerifyInput) =>
  ({ method: 'POST', path, body: toBody(input) }) as const

const toBody = (input: VerifyInput | Omit<SingleRequest, 'async'>) =>
  typeof input === 'string' ? { email: input } : input
