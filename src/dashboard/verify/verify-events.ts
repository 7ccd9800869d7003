import type { Context } from 'hono'
import { eventsOf } from '../../client/stream.ts'
import type { ErrorBody, SingleResult, VerifyStep } from '../../client/types.ts'
import type { Api, Env } from '../deps.ts'
import { sentForm } from '../page/form.ts'

/** What the API tells of one verification; the last one is a result or an error. */
export type VerifyEvents =
  | { readonly event: 'step'; readonly data: VerifyStep }
  | { readonly event: 'result'; readonly data: SingleResult }
  | { readonly event: 'error'; readonly data: ErrorBody; readonly status?: number }

export type DomainStep = Extract<VerifyStep, { readonly step: 'domain' }>
export type ServerStep = Extract<VerifyStep, { readonly step: 'server' }>

/**
 * Asks the API about an address, and tells what it tells. Never throws: what goes wrong is the last that is told. Once
 * `gone` aborts nobody listens any more, so that the API need not wait for the next thing to be said.
 */
export async function* verifyWithEvents(
  api: Api,
  form: VerifyForm,
  gone: AbortSignal = NEVER,
): AsyncGenerator<VerifyEvents> {
  try {
    const answer = await askFor(api, form)
    if (!answer.ok || answer.body === null) {
      return yield { event: 'error', data: await refusalOf(answer, form), status: answer.status }
    }
    const body = answer.body.pipeThrough(new TransformStream(), { signal: gone })
    for await (const events of eventsOf<VerifyEvents>(body)) {
      yield events
      if (events.event !== 'step') return
    }
  } catch {
    // The service says why in its log.
  }
  yield { event: 'error', data: BROKEN_OFF, status: 503 }
}

const NEVER = new AbortController().signal

const askFor = (api: Api, { email, sandbox, again }: VerifyForm): Promise<Response> =>
  api.fetch('/v1/verify/single?include=flags,evidence', {
    method: 'POST',
    headers: {
      ...{ 'Content-Type': 'application/json', Accept: 'text/event-stream' },
      ...(sandbox && { 'X-EV-Sandbox': 'true' }),
    },
    body: JSON.stringify({ email, ...(again && { force_refresh: true }) }),
  })

/** Errors that the sandbox simulates have no sentence: they are as short as the interface shows them. */
async function refusalOf(answer: Response, { sandbox }: VerifyForm): Promise<ErrorBody> {
  const body = (await answer.json()) as ErrorBody
  if (!sandbox || body.code !== undefined) return body
  const error = `For this address the sandbox simulates an error: programs are answered ${answer.status} with “${body.error}”.`
  return { ...body, error }
}

const BROKEN_OFF: ErrorBody = {
  ...{ success: false, code: 'service_unavailable', request_id: '' },
  error: 'The service broke off before there was a verdict. Verify the address again.',
}

/** What somebody wants to know of which address. */
export type VerifyForm = {
  readonly email: string
  /** True: the answer is simulated. */
  readonly sandbox: boolean
  /** True: ask even if the answer is known. */
  readonly again: boolean
}

export const EMPTY_FORM: VerifyForm = { email: '', sandbox: false, again: false }

/** What the form of the page says. */
export async function readVerifyForm(c: Context<Env>): Promise<VerifyForm> {
  const { text } = await sentForm(c)
  // A space that is copied along with an address goes; one inside is a fault, and is told as one.
  return { email: text('email'), sandbox: text('sandbox') !== '', again: text('again') !== '' }
}
