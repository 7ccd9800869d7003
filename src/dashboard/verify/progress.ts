import type { ErrorBody, SingleResult, VerifyStep } from '../../client/types.ts'
import type { DomainStep, ServerStep, VerifyEvents, VerifyForm } from './verify-events.ts'

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
  ...{ form: null, syntax: null, domain: null, servers: [], lines: [], cached: null },
  ...{ result: null, error: null },
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
