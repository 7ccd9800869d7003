import type { RecipientOutcome } from '../smtp/classify-reply.ts'

/** How one operator is asked by one egress at present. Times are of the wall clock, epoch ms. */
export type RateStatus = {
  readonly operator: string
  /** Connections open now, and how many may be: as many at most as the table or the settings say. */
  readonly sessions: number
  readonly sessionsAllowed: number
  readonly sessionsMax: number
  /** Connections that may be opened each second now, and at most. */
  readonly sessionsPerSecond: number
  readonly sessionsPerSecondMax: number
  /** Recipients asked lately; older ones count half. */
  readonly recent: number
  /** Unknown users in a row after which we leave. */
  readonly unknownStreakMax: number
  readonly pause: Pause | null
  /** Kept when its time is over, until somebody is let in. */
  readonly refusal: Block | null
}

/** Nobody is asked for some time. */
export type Pause = {
  readonly since: number
  readonly until: number
  /** `throttled`: it asked us to slow down. `unknown-users`: it knew none of too many in a row. */
  readonly why: 'throttled' | 'unknown-users'
}

/** The operator wants none of us. */
export type Block = {
  readonly since: number
  /** Who asks until then is told so unasked. */
  readonly until: number
  /** What it said, foreign and unclean. */
  readonly answer: RecipientOutcome
  /** Addresses that were to be asked about meanwhile. */
  readonly skipped: number
}
