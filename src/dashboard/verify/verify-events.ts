import type { Context } from 'hono'
import { readEvents } from '../../client/stream.ts'
import type { ErrorBody, SingleResult, VerifyStep } from '../../client/types.ts'
import type { Api, Env } from '../deps.ts'
import { sentForm } from '../page/form.ts'

/** An event of one verification; the last is a result or an error. */
export type VerifyEvents =
  | { readonly event: 'step'; readonly data: VerifyStep }
  | { readonly event: 'result'; readonly data: SingleResult }
  | { readonly event: 'error'; readonly data: ErrorBody; readonly status?: number }

export type DomainStep = Extract<VerifyStep, { readonly step: 'domain' }>
type ServerStep = Extract<VerifyStep, { readonly step: 'server' }>

/**
 * Verifies an address through the API and yields its events. Never throws: a failure is the last
 * event. An abort of `gone`, when the browser disconnects, cancels the API call at once.
 */
export async function* verifyWithEvents(
  api: Api,
  form: VerifyForm,
  gone: AbortSignal = NEVER,
): AsyncGenerator<VerifyEvents> {
  try {
    const response = await requestVerification(api, form)
    if (!response.ok || response.body === null) {
      const data = await readError(response, form)
      return yield { event: 'error', data, status: response.status }
    }
    const body = response.body.pipeThrough(new TransformStream(), { signal: gone })
    for await (const event of readEvents<VerifyEvents>(body)) {
      yield event
      if (event.event !== 'step') return
    }
  } catch {
    // The API logs the cause.
  }
  yield { event: 'error', data: INTERRUPTED, status: 503 }
}

const NEVER = new AbortController().signal

const requestVerification = (api: Api, { email, sandbox, again }: VerifyForm): Promise<Response> =>
  api.fetch('/v1/verify/single?include=flags,evidence', {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Accept: 'text/event-stream',
      ...(sandbox && { 'X-EV-Sandbox': 'true' }),
    },
    body: JSON.stringify({ email, ...(again && { force_refresh: true }) }),
  })

/** Reads the error body; an error simulated by the sandbox gets an explanation. */
async function readError(response: Response, { sandbox }: VerifyForm): Promise<ErrorBody> {
  const body = (await response.json()) as ErrorBody
  if (!sandbox || body.code !== undefined) return body
  const error = `The sandbox simulates an error for this address: the API returns ${response.status} with "${body.error}".`
  return { ...body, error }
}

const INTERRUPTED: ErrorBody = {
  success: false,
  code: 'service_unavailable',
  request_id: '',
  error: 'The verification was interrupted. Try again.',
}

/** The address and options of the verify form. */
export type VerifyForm = {
  readonly email: string
  /** Whether the result is simulated. */
  readonly sandbox: boolean
  /** Whether to ignore a cached result. */
  readonly again: boolean
}

export const EMPTY_FORM: VerifyForm = { email: '', sandbox: false, again: false }

/** Parses the submitted form. */
export async function readVerifyForm(c: Context<Env>): Promise<VerifyForm> {
  const { text } = await sentForm(c)
  // Surrounding spaces are trimmed; spaces inside the address are reported as a syntax error.
  return { email: text('email'), sandbox: text('sandbox') !== '', again: text('again') !== '' }
}

/** The state of a verification, accumulated from its events. */
export type Progress = {
  /** Null before the first verification. */
  readonly form: VerifyForm | null
  readonly syntax: { readonly ok: boolean; readonly text: string } | null
  readonly domain: DomainStep | null
  /** One entry per contacted mail server, with its latest step. */
  readonly servers: readonly ServerStep[]
  readonly lines: readonly string[]
  /** Text that names the age of a cached result; null if the result is not cached. */
  readonly cached: string | null
  readonly result: SingleResult | null
  readonly error: (ErrorBody & { readonly status: number }) | null
}

/** The state before the first verification. */
export const IDLE: Progress = {
  form: null,
  syntax: null,
  domain: null,
  servers: [],
  lines: [],
  cached: null,
  result: null,
  error: null,
}

/** Returns the initial state of a verification. */
export const started = (form: VerifyForm): Progress => ({ ...IDLE, form })

export const isDone = ({ result, error }: Progress): boolean => result !== null || error !== null

/** Applies an event to the state. */
export function after(progress: Progress, event: VerifyEvents): Progress {
  if (event.event === 'step') return afterStep(progress, event.data)
  if (event.event === 'result') return { ...progress, result: event.data }
  return { ...progress, error: { ...event.data, status: event.status ?? 503 } }
}

function afterStep(progress: Progress, step: VerifyStep): Progress {
  switch (step.step) {
    case 'syntax':
      return { ...progress, syntax: step }
    case 'domain':
      return { ...progress, domain: step }
    case 'server': {
      const others = progress.servers.filter(({ host }) => host !== step.host)
      return { ...progress, servers: [...others, step] }
    }
    case 'line':
      return { ...progress, lines: [...progress.lines, step.text] }
    case 'cached':
      return { ...progress, cached: step.text }
    default:
      // Ignore steps of a newer API.
      return progress
  }
}
