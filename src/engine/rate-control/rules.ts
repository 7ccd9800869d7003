import { MINUTE, SECOND } from '../../platform/clock.ts'
import type { RecipientOutcome } from '../smtp/classify-reply.ts'
import type { RateLimits } from './limit-table.ts'

/**
 * What one egress knows of how an operator is asked. Plain, so that it can be stored: wherever it is kept, what happens
 * changes it by the functions below. All times are ms of one clock, whichever it is.
 */
export type RateState = {
  /** Connections at the same time; one that is not whole does not count yet. */
  readonly sessionsAllowed: number
  readonly ratePerMs: number
  /** When the next connection is due by the rate; behind now by at most a burst of `sessionsMax`. */
  readonly nextStartAt: number
  readonly pausedAt: number
  readonly pausedUntil: number
  readonly throttledUntil: number
  readonly pauseMs: number
  readonly streakPauseMs: number
  /** Unknown users in a row, over all connections. */
  readonly streak: number
  readonly refusal: BlockedState | null
  /** Domains that refused us at RCPT since the operator last answered for a recipient. */
  readonly refusingDomains: readonly BlockingDomain[]
}

export type BlockingDomain = { readonly domain: string; readonly at: number }

/** The operator wants none of us; kept when its time is over, until somebody is let in. */
export type BlockedState = {
  readonly answer: RecipientOutcome
  readonly at: number
  readonly until: number
  readonly onSkipped: number
}

/** One thing that happened. Gives the very same state where it changes nothing. */
export type RateChange = (state: RateState, now: number) => RateState

/** The same, whenever it happened. */
export type RateNote = (state: RateState) => RateState

/** Postfix's minimal_backoff_time and maximal_backoff_time: 300 s and 4,000 s. */
const PAUSE_MIN_MS = 5 * MINUTE
const PAUSE_MAX_MS = 4_000 * SECOND
/** How long a refusal of our address is believed before we ask again. */
export const BLOCK_MS = 30 * MINUTE
/**
 * Domains that must refuse us for their operator to count as refusing. One or two may have a policy of
 * their own, which says nothing of the operator's other tenants.
 */
const REFUSING_DOMAINS_MAX = 3
/** A first pause after too many unknown users in a row; it doubles while they go on. */
const STREAK_PAUSE_MIN_MS = 10 * SECOND
const STREAK_PAUSE_MAX_MS = 2 * MINUTE
/** The slowest that halving may make us: one connection in five minutes. */
const RATE_MIN_PER_MS = 1 / (5 * MINUTE)
/** Before any time of any clock; JSON has no infinity. */
const NEVER = Number.MIN_SAFE_INTEGER

/** How an operator is asked that was not asked yet. */
export const newState = ({ sessionsMax, sessionsPerSecond }: RateLimits): RateState => ({
  sessionsAllowed: sessionsMax,
  ratePerMs: sessionsPerSecond / SECOND,
  nextStartAt: NEVER,
  pausedAt: NEVER,
  pausedUntil: NEVER,
  throttledUntil: NEVER,
  pauseMs: PAUSE_MIN_MS,
  streakPauseMs: STREAK_PAUSE_MIN_MS,
  streak: 0,
  refusal: null,
  refusingDomains: [],
})

export const isBlocked = ({ refusal }: RateState, now: number) =>
  refusal !== null && refusal.until > now

export const isFull = ({ sessionsAllowed }: RateState, sessions: number) =>
  sessions >= Math.floor(sessionsAllowed)

/** When the rate allows the next connection; a burst of `sessionsMax` is allowed after a rest. */
export const dueAt = ({ nextStartAt, ratePerMs }: RateState, row: RateLimits, now: number) =>
  Math.max(nextStartAt, now - (row.sessionsMax - 1) / ratePerMs)

/** Whether one more connection may be opened beside so many. */
export const mayStart = (state: RateState, row: RateLimits, now: number, sessions: number) =>
  !isBlocked(state, now) &&
  state.pausedUntil <= now &&
  !isFull(state, sessions) &&
  dueAt(state, row, now) <= now

/** A connection is opened. */
export const onStarted = (state: RateState, row: RateLimits, now: number): RateState => ({
  ...state,
  nextStartAt: dueAt(state, row, now) + 1 / state.ratePerMs,
})

/** A conversation ended well: one more connection for each clean cohort, as many as there are now. */
export function onSucceeded(state: RateState, row: RateLimits): RateState {
  const sessionsAllowed = Math.min(
    row.sessionsMax,
    state.sessionsAllowed + 1 / state.sessionsAllowed,
  )
  const ratePerMs = Math.min(row.sessionsPerSecond / SECOND, state.ratePerMs * 1.25)
  return { ...state, sessionsAllowed, ratePerMs, pauseMs: PAUSE_MIN_MS, refusal: null }
}

/** The operator asked us to slow down; `retryAfterMs` is the time it named, if it did. */
export function onThrottled(state: RateState, now: number, retryAfterMs: number | null): RateState {
  // Conversations begun before the pause may say the same: that is one trouble, not several.
  const isNew = state.throttledUntil <= now
  const ownMs = isNew ? state.pauseMs : 0
  const until = now + Math.min(Math.max(ownMs, retryAfterMs ?? 0), PAUSE_MAX_MS)
  const throttledUntil = Math.max(state.throttledUntil, until)
  const paused = { ...pausedUntil(state, now, throttledUntil), throttledUntil }
  if (!isNew) return paused
  return { ...halved(paused), pauseMs: Math.min(state.pauseMs * 2, PAUSE_MAX_MS) }
}

/** The operator refuses our address, name or sender. It goes on until somebody was let in, however often we are told. */
export function onBlocked(state: RateState, now: number, answer: RecipientOutcome): RateState {
  const { at, onSkipped } = state.refusal ?? { at: now, onSkipped: 0 }
  const slower = isBlocked(state, now) ? state : halved(state)
  return { ...slower, refusal: { answer, at, until: now + BLOCK_MS, onSkipped } }
}

/** One more domain refused us at RCPT. Several of them, with no answer for a recipient in between, are the operator. */
export function onDomainBlocked(
  state: RateState,
  now: number,
  { domain, answer }: { readonly domain: string; readonly answer: RecipientOutcome },
): RateState {
  const others = state.refusingDomains.filter(one => one.domain !== domain && isRecent(one, now))
  const refusingDomains = [...others, { domain, at: now }]
  if (refusingDomains.length < REFUSING_DOMAINS_MAX) return { ...state, refusingDomains }
  return { ...onBlocked(state, now, answer), refusingDomains: [] }
}

const isRecent = ({ at }: BlockingDomain, now: number) => at <= now && at > now - BLOCK_MS

/** Addresses that were to be asked about while it refused us. */
export function onSkipped(state: RateState, count: number): RateState {
  const { refusal } = state
  if (refusal === null) return state
  return { ...state, refusal: { ...refusal, onSkipped: refusal.onSkipped + count } }
}

/** One more unknown user, whichever connection met it. */
export const onUnknownRecipient: RateNote = state =>
  withStreak(state, state.streak + 1, state.streakPauseMs, NO_DOMAINS)

/** The server told of a mailbox that is there, or would not tell: no row of unknown ones. */
export const onOtherReply: RateNote = state =>
  withStreak(state, 0, state.streakPauseMs, state.refusingDomains)

/** A real recipient was found: the unknown ones before it were no dictionary attack. */
export const onKnownRecipient: RateNote = state =>
  withStreak(state, 0, STREAK_PAUSE_MIN_MS, NO_DOMAINS)

const NO_DOMAINS: readonly BlockingDomain[] = []

/** Written out, as it is made for most recipients: by a spread it takes five times as long. */
function withStreak(
  state: RateState,
  streak: number,
  streakPauseMs: number,
  refusingDomains: readonly BlockingDomain[],
): RateState {
  const isSame = streak === state.streak && streakPauseMs === state.streakPauseMs
  if (isSame && refusingDomains.length === state.refusingDomains.length) return state
  return {
    sessionsAllowed: state.sessionsAllowed,
    ratePerMs: state.ratePerMs,
    nextStartAt: state.nextStartAt,
    pausedAt: state.pausedAt,
    pausedUntil: state.pausedUntil,
    throttledUntil: state.throttledUntil,
    pauseMs: state.pauseMs,
    streakPauseMs,
    streak,
    refusal: state.refusal,
    refusingDomains,
  }
}

/** Too many unknown users in a row. */
export const onUnknownStreak: RateChange = (state, now) => ({
  ...pausedUntil(state, now, now + state.streakPauseMs),
  streak: 0,
  streakPauseMs: Math.min(state.streakPauseMs * 2, STREAK_PAUSE_MAX_MS),
})

/** A state that was kept by others or by a clock that was set since, as far as these settings and this time allow it. */
export function rescale(given: RateState, row: RateLimits, now: number): RateState {
  const state = { ...newState(row), ...given }
  const slowestMs = Math.max(1 / RATE_MIN_PER_MS, SECOND / row.sessionsPerSecond)
  const { refusal } = state
  return {
    ...state,
    sessionsAllowed: Math.min(state.sessionsAllowed, row.sessionsMax),
    ratePerMs: Math.min(state.ratePerMs, row.sessionsPerSecond / SECOND),
    nextStartAt: Math.min(state.nextStartAt, now + slowestMs),
    pausedUntil: Math.min(state.pausedUntil, now + PAUSE_MAX_MS),
    throttledUntil: Math.min(state.throttledUntil, now + PAUSE_MAX_MS),
    refusal: refusal && { ...refusal, until: Math.min(refusal.until, now + BLOCK_MS) },
  }
}

function pausedUntil(state: RateState, now: number, until: number): RateState {
  const pausedAt = state.pausedUntil <= now ? now : state.pausedAt
  return { ...state, pausedAt, pausedUntil: Math.max(state.pausedUntil, until) }
}

const halved = (state: RateState): RateState => ({
  ...state,
  sessionsAllowed: Math.max(1, Math.floor(state.sessionsAllowed / 2)),
  ratePerMs: Math.max(RATE_MIN_PER_MS, state.ratePerMs / 2),
})
