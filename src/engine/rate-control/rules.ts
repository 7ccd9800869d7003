import { HOUR, MINUTE, SECOND } from '../../platform/clock.ts'
import type { RecipientOutcome } from '../smtp/classify-reply.ts'
import type { RateLimits } from './limit-table.ts'

/**
 * The adaptive rate state of one operator and egress. It is plain data that can be stored anywhere,
 * and only the functions below change it. All times are in ms of a single clock.
 */
export type RateState = {
  /** Allowed concurrent connections; a fraction does not count yet. */
  readonly sessionsAllowed: number
  /** The most that `sessionsAllowed` may be until `ceilingUntil`. */
  readonly sessionsCeiling: number
  readonly ceilingUntil: number
  readonly ratePerMs: number
  /** When the rate allows the next connection; in the past by at most a burst of `sessionsMax`. */
  readonly nextStartAt: number
  readonly pausedAt: number
  readonly pausedUntil: number
  readonly throttledUntil: number
  readonly pauseMs: number
  readonly streakPauseMs: number
  /** Consecutive unknown users, over all connections. */
  readonly streak: number
  readonly refusal: BlockedState | null
  /** When it began to throttle or block us without serving a recipient since; null if it serves us. */
  readonly unservedSince: number | null
  /** Domains that blocked us at RCPT since the operator last answered for a recipient. */
  readonly refusingDomains: readonly BlockingDomain[]
}

type BlockingDomain = { readonly domain: string; readonly at: number }

/** A block by the operator. It outlasts `until` as a record, until a session succeeds. */
export type BlockedState = {
  readonly answer: RecipientOutcome
  readonly at: number
  readonly until: number
  readonly skipped: number
}

/** Applies an event to the state; returns the same object if nothing changes. */
export type RateChange = (state: RateState, now: number) => RateState

/** Applies an event whose time does not matter. */
export type RateNote = (state: RateState) => RateState

/** Postfix's minimal_backoff_time and maximal_backoff_time: 300 s and 4,000 s. */
export const PAUSE_MIN_MS = 5 * MINUTE
export const PAUSE_MAX_MS = 4_000 * SECOND
/**
 * How long after a pause no more connections are open at once than the server had accepted when it
 * refused a further one. Exim, Postfix and others limit the connections of a client, so each
 * attempt to have more costs another pause.
 */
export const CEILING_MS = HOUR
/** How long a block counts before the next probe. */
export const BLOCK_MS = 30 * MINUTE
/**
 * How long a list retries at an operator that serves none of its recipients. RFC 5321 §4.5.4.1 asks
 * for patient retries.
 */
export const UNSERVED_MAX_MS = 4 * HOUR
/** A pause or a block that begins this long after the end of the last one starts a new count. */
export const UNSERVED_GAP_MS = HOUR
/**
 * Blocking domains after which their operator counts as blocking. One or two may have their own
 * policy, which is not evidence for the operator's other tenants.
 */
const REFUSING_DOMAINS_MAX = 3
/** The first pause after a streak of unknown users; it doubles with each further streak. */
const STREAK_PAUSE_MIN_MS = 10 * SECOND
const STREAK_PAUSE_MAX_MS = 2 * MINUTE
/** The lowest rate that halving leads to: one connection in five minutes. */
const RATE_MIN_PER_MS = 1 / (5 * MINUTE)
/** Earlier than any time of any clock; JSON has no infinity. */
const NEVER = Number.MIN_SAFE_INTEGER

/** Returns the initial state of an operator. */
export const newState = ({ sessionsMax, sessionsPerSecond }: RateLimits): RateState => ({
  sessionsAllowed: sessionsMax,
  sessionsCeiling: sessionsMax,
  ceilingUntil: NEVER,
  ratePerMs: sessionsPerSecond / SECOND,
  nextStartAt: NEVER,
  pausedAt: NEVER,
  pausedUntil: NEVER,
  throttledUntil: NEVER,
  pauseMs: PAUSE_MIN_MS,
  streakPauseMs: STREAK_PAUSE_MIN_MS,
  streak: 0,
  refusal: null,
  unservedSince: null,
  refusingDomains: [],
})

/** Returns the block that counts now; null if there is none. */
export const currentBlock = ({ refusal }: RateState, now: number): BlockedState | null =>
  refusal !== null && refusal.until > now ? refusal : null

export const isBlocked = (state: RateState, now: number): boolean =>
  currentBlock(state, now) !== null

/** Why no connection may be opened, and until when. */
export type ProbeStop = {
  /**
   * `refused`: the operator blocks us. `throttled`: it asked to slow down. `unknown-users`: it
   * rejected many recipients in a row as unknown.
   */
  readonly why: 'refused' | 'throttled' | 'unknown-users'
  readonly until: number
}

/** Returns the current block or pause; null if there is neither. */
export function currentStop(state: RateState, now: number): ProbeStop | null {
  const block = currentBlock(state, now)
  if (block !== null) return { why: 'refused', until: block.until }
  const { pausedUntil, throttledUntil } = state
  if (pausedUntil <= now) return null
  return { why: throttledUntil > now ? 'throttled' : 'unknown-users', until: pausedUntil }
}

export const isFull = ({ sessionsAllowed }: RateState, sessions: number) =>
  sessions >= Math.floor(sessionsAllowed)

/** Returns when the rate allows the next connection; idle time allows a burst of `sessionsMax`. */
export const dueAt = (
  { nextStartAt, ratePerMs }: Pick<RateState, 'nextStartAt' | 'ratePerMs'>,
  { sessionsMax }: Pick<RateLimits, 'sessionsMax'>,
  now: number,
) => Math.max(nextStartAt, now - (sessionsMax - 1) / ratePerMs)

/** Whether one more connection may be opened besides `sessions` open ones. */
export const mayStart = (state: RateState, limits: RateLimits, now: number, sessions: number) =>
  !isBlocked(state, now) &&
  state.pausedUntil <= now &&
  !isFull(state, sessions) &&
  dueAt(state, limits, now) <= now

/** Records that a connection was opened. */
export const onStarted = (state: RateState, limits: RateLimits, now: number): RateState => ({
  ...state,
  nextStartAt: dueAt(state, limits, now) + 1 / state.ratePerMs,
})

/**
 * Records a successful session. The limit grows by one connection after as many successes as there
 * are allowed connections, up to the ceiling.
 */
export function onSucceeded(state: RateState, limits: RateLimits, now: number): RateState {
  const ceiling = now < state.ceilingUntil ? state.sessionsCeiling : limits.sessionsMax
  const sessionsAllowed = Math.min(
    limits.sessionsMax,
    ceiling,
    state.sessionsAllowed + 1 / state.sessionsAllowed,
  )
  const ratePerMs = Math.min(limits.sessionsPerSecond / SECOND, state.ratePerMs * 1.25)
  return {
    ...state,
    sessionsAllowed,
    ratePerMs,
    pauseMs: PAUSE_MIN_MS,
    refusal: null,
    unservedSince: null,
  }
}

/**
 * Records throttling by the operator. `retryAfterMs` is the delay that it requested, or null;
 * `otherSessions` is how many connections were open when it refused a further one, or 0. If it has
 * not served us for too long, its `answer` counts as a block during the pause.
 */
export function onThrottled(
  state: RateState,
  now: number,
  retryAfterMs: number | null,
  otherSessions = 0,
  answer: RecipientOutcome | null = null,
): RateState {
  // Sessions opened before the pause may be throttled too; they count as one event.
  const isNew = state.throttledUntil <= now
  const ownMs = isNew ? state.pauseMs : 0
  const until = now + Math.min(Math.max(ownMs, retryAfterMs ?? 0), PAUSE_MAX_MS)
  const throttledUntil = Math.max(state.throttledUntil, until)
  const unservedSince = getUnservedSince(state, now)
  const isGivenUp = answer !== null && now - unservedSince >= UNSERVED_MAX_MS
  const refusal = isGivenUp ? toRefusal(state, now, answer, throttledUntil) : state.refusal
  const paused = {
    ...pausedUntil(state, now, throttledUntil),
    throttledUntil,
    unservedSince,
    refusal,
  }
  const capped = onLimitReached(paused, now, otherSessions)
  if (!isNew) return capped
  return { ...halved(capped), pauseMs: Math.min(state.pauseMs * 2, PAUSE_MAX_MS) }
}

/**
 * Records that a server refused a further connection while others were open; 0 changes nothing. The
 * other refused connections are still open when the first one is refused, so the least counts.
 */
export function onLimitReached(state: RateState, now: number, sessions: number): RateState {
  if (sessions === 0) return state
  const sessionsCeiling =
    now < state.ceilingUntil ? Math.min(state.sessionsCeiling, sessions) : sessions
  return {
    ...state,
    sessionsAllowed: Math.min(state.sessionsAllowed, sessionsCeiling),
    sessionsCeiling,
    ceilingUntil: Math.max(now, state.throttledUntil) + CEILING_MS,
  }
}

/** Records a block of our IP, HELO or sender. Repeated ones extend it until a session succeeds. */
export function onBlocked(state: RateState, now: number, answer: RecipientOutcome): RateState {
  const slower = isBlocked(state, now) ? state : halved(state)
  return {
    ...slower,
    refusal: toRefusal(state, now, answer, now + BLOCK_MS),
    unservedSince: getUnservedSince(state, now),
  }
}

/** Returns a block that continues the last one, if no session has succeeded since. */
function toRefusal(
  { refusal }: RateState,
  now: number,
  answer: RecipientOutcome,
  until: number,
): BlockedState {
  return { answer, at: refusal?.at ?? now, until, skipped: refusal?.skipped ?? 0 }
}

/** Returns how long the operator has throttled or blocked us without serving us, in ms. */
export const unservedForMs = (state: RateState, now: number): number =>
  now - getUnservedSince(state, now)

function getUnservedSince(state: RateState, now: number): number {
  const { unservedSince, throttledUntil, refusal } = state
  const stoppedUntil = Math.max(throttledUntil, refusal?.until ?? NEVER)
  return unservedSince === null || now > stoppedUntil + UNSERVED_GAP_MS ? now : unservedSince
}

/**
 * Records a blocking domain. Several in a row, with no answer for a recipient, block the operator.
 */
export function onDomainBlocked(
  state: RateState,
  now: number,
  { domain, answer }: { readonly domain: string; readonly answer: RecipientOutcome },
): RateState {
  const others = state.refusingDomains.filter(one => one.domain !== domain && isCurrent(one, now))
  const refusingDomains = [...others, { domain, at: now }]
  if (refusingDomains.length < REFUSING_DOMAINS_MAX) return { ...state, refusingDomains }
  return { ...onBlocked(state, now, answer), refusingDomains: [] }
}

const isCurrent = ({ at }: BlockingDomain, now: number) => at <= now && at > now - BLOCK_MS

/** Counts addresses that were skipped during a block. */
export function onSkipped(state: RateState, count: number): RateState {
  const { refusal } = state
  if (refusal === null) return state
  return { ...state, refusal: { ...refusal, skipped: refusal.skipped + count } }
}

/** Counts one unknown user, from any connection. */
export const onUnknownRecipient: RateNote = state =>
  withStreak(served(state), state.streak + 1, state.streakPauseMs, NO_DOMAINS)

/** Records an existing mailbox or an inconclusive reply, which ends a streak of unknown users. */
export const onOtherReply: RateNote = state =>
  withStreak(state, 0, state.streakPauseMs, state.refusingDomains)

/** Records an accepted recipient, which also resets the length of the streak pause. */
export const onKnownRecipient: RateNote = state =>
  withStreak(served(state), 0, STREAK_PAUSE_MIN_MS, NO_DOMAINS)

const served = (state: RateState): RateState =>
  state.unservedSince === null ? state : { ...state, unservedSince: null }

const NO_DOMAINS: readonly BlockingDomain[] = []

/** Copies each field, because it runs for most recipients and a spread takes five times as long. */
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
    sessionsCeiling: state.sessionsCeiling,
    ceilingUntil: state.ceilingUntil,
    ratePerMs: state.ratePerMs,
    nextStartAt: state.nextStartAt,
    pausedAt: state.pausedAt,
    pausedUntil: state.pausedUntil,
    throttledUntil: state.throttledUntil,
    pauseMs: state.pauseMs,
    streakPauseMs,
    streak,
    refusal: state.refusal,
    unservedSince: state.unservedSince,
    refusingDomains,
  }
}

/** Pauses the operator after a streak of unknown users. */
export const onUnknownStreak: RateChange = (state, now) => ({
  ...pausedUntil(state, now, now + state.streakPauseMs),
  streak: 0,
  streakPauseMs: Math.min(state.streakPauseMs * 2, STREAK_PAUSE_MAX_MS),
})

/** Clamps a stored state to the current limits and time, after a change of settings or clock. */
export function rescale(stored: RateState, limits: RateLimits, now: number): RateState {
  const state = { ...newState(limits), ...stored }
  const slowestMs = Math.max(1 / RATE_MIN_PER_MS, SECOND / limits.sessionsPerSecond)
  const { refusal } = state
  return {
    ...state,
    sessionsAllowed: Math.min(state.sessionsAllowed, limits.sessionsMax),
    ratePerMs: Math.min(state.ratePerMs, limits.sessionsPerSecond / SECOND),
    nextStartAt: Math.min(state.nextStartAt, now + slowestMs),
    ceilingUntil: Math.min(state.ceilingUntil, now + PAUSE_MAX_MS + CEILING_MS),
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
