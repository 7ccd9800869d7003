import type { ErrorBody, SingleResult, VerifyStep } from '../../client/types.ts'
import type { DomainStep, ServerStep, VerifyEvents, VerifyForm } from './verify-events.ts'

/** How far a verification is, by what was told of it. */
export type Progress = {
  /** Null: nothing was asked yet. */
  readonly form: VerifyForm | null
  readonly syntax: { readonly ok: boolean; readonly text: string } | null
  readonly domain: DomainStep | null
  /** One for each mail server that was called, with what came of it last. */
  readonly servers: readonly ServerStep[]
  readonly lines: readonly string[]
  /** Where the answer was known: from when it is, in words. */
  readonly cached: string | null
  readonly result: SingleResult | null
  readonly error: (ErrorBody & { readonly status: number }) | null
}

/** Nothing was asked yet. */
export const IDLE: Progress = {
  ...{ form: null, syntax: null, domain: null, servers: [], lines: [], cached: null },
  ...{ result: null, error: null },
}

/** It begins. */
export const started = (form: VerifyForm): Progress => ({ ...IDLE, form })

export const isDone = ({ result, error }: Progress): boolean => result !== null || error !== null

/** What is known when that was told, too. */
export function after(progress: Progress, events: VerifyEvents): Progress {
  if (events.event === 'step') return afterStep(progress, events.data)
  if (events.event === 'result') return { ...progress, result: events.data }
  return { ...progress, error: { ...events.data, status: events.status ?? 503 } }
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
      // A step of a newer API.
      return progress
  }
}
