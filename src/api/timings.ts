import { SECOND } from '../platform/clock.ts'

/** Intervals of the API, in ms. */
export type HttpTimings = {
  /** How often a request that waits for a job looks at it: other processes may change it. */
  readonly pollMs: number
  /** A stream of progress tells at most so often; two a second are as many as a person reads. */
  readonly progressMs: number
}

export const DEFAULT_HTTP_TIMINGS: HttpTimings = { pollMs: SECOND, progressMs: SECOND / 2 }
