import { SECOND } from '../platform/clock.ts'

/** Intervals of the API, in ms. */
export type HttpTimings = {
  /** Poll interval of a request that waits for a job: other processes may change it. */
  readonly pollMs: number
  /** Minimum interval of progress events; two a second are as many as a person reads. */
  readonly progressMs: number
}

export const DEFAULT_HTTP_TIMINGS: HttpTimings = { pollMs: SECOND, progressMs: SECOND / 2 }
