import { CallbackAbortController, onAbort } from '../platform/abort.ts'
import type { Clock } from '../platform/clock.ts'

/**
 * An abort signal with a deadline. `done` releases its timer and listeners; it may be called twice.
 */
type Limit = { readonly signal: AbortSignal; readonly done: () => void }

/**
 * Returns a signal that aborts after `limitMs` (null: no time limit) or as soon as one of `signals`
 * aborts. AbortSignal.any would stay registered on long-lived signals until garbage collection.
 */
export function withDeadline(
  clock: Clock,
  limitMs: number | null,
  signals: readonly (AbortSignal | undefined)[],
): Limit {
  const controller = new CallbackAbortController()
  const cancels: (() => void)[] = []
  const done = () => {
    for (const cancel of cancels) cancel()
    cancels.length = 0
  }
  const abort = () => {
    done()
    controller.abort()
  }
  const isOver = limitMs !== null && limitMs <= 0
  if (isOver || signals.some(signal => signal?.aborted)) abort()
  else {
    for (const signal of signals) if (signal !== undefined) cancels.push(onAbort(signal, abort))
    if (limitMs !== null) cancels.push(clock.after(limitMs, abort))
  }
  return { signal: controller.signal, done }
}

/** The signals of a probe. `done` must be called once. */
type ProbeSignals = {
  /** Aborts with the caller's signal and with the closing of the engine. */
  readonly signal: AbortSignal
  /** Aborts also with the caller's drain. */
  readonly drain: AbortSignal
  readonly done: () => void
}

/**
 * Combines the signals of callers with that of the engine. All probes of a caller at one time share
 * the combined signals, so that no connection creates its own.
 */
export class SharedSignals {
  readonly #clock: Clock
  readonly #closing: AbortSignal
  /** By the caller's drain. */
  readonly #shared = new Map<AbortSignal, SharedSignal>()

  constructor(clock: Clock, closing: AbortSignal) {
    this.#clock = clock
    this.#closing = closing
  }

  acquire(signal: AbortSignal, drain: AbortSignal): ProbeSignals {
    const known = this.#shared.get(drain)
    if (known?.of === signal) return this.#use(known, drain)
    const end = withDeadline(this.#clock, null, [signal, this.#closing])
    const stop = drain === signal ? end : withDeadline(this.#clock, null, [end.signal, drain])
    const combined = { of: signal, end, stop, users: 0 }
    if (known === undefined) this.#shared.set(drain, combined)
    return this.#use(combined, drain)
  }

  #use(combined: SharedSignal, drain: AbortSignal): ProbeSignals {
    combined.users++
    return {
      signal: combined.end.signal,
      drain: combined.stop.signal,
      done: () => {
        if (--combined.users > 0) return
        combined.stop.done()
        combined.end.done()
        if (this.#shared.get(drain) === combined) this.#shared.delete(drain)
      },
    }
  }
}

type SharedSignal = {
  readonly of: AbortSignal
  readonly end: Limit
  readonly stop: Limit
  users: number
}

/** Lookups that start within this time share a time limit, which is thus up to this much shorter. */
const SHARED_FOR_MS = 100

/** Time limits of lookups of lists. Those of a caller that start within a moment share one timer. */
export class SharedDeadlines {
  readonly #clock: Clock
  readonly #closing: AbortSignal
  readonly #limitMs: number
  #latest: SharedDeadline | null = null

  /** `closing` aborts when the engine is closed. */
  constructor(clock: Clock, closing: AbortSignal, limitMs: number) {
    this.#clock = clock
    this.#closing = closing
    this.#limitMs = limitMs
  }

  /** Returns a limit that also aborts with the signal of the caller. `done` must be called once. */
  acquire(signal: AbortSignal | undefined): Limit {
    const now = this.#clock.monotonicNow()
    const shared = this.#find(signal, now) ?? this.#start(signal, now)
    shared.users++
    return {
      signal: shared.limit.signal,
      done: () => {
        if (--shared.users === 0) shared.limit.done()
      },
    }
  }

  #find(signal: AbortSignal | undefined, now: number): SharedDeadline | null {
    const latest = this.#latest
    if (latest === null || latest.of !== signal || latest.limit.signal.aborted) return null
    // Without users its timer has ended.
    return latest.users > 0 && now - latest.startedAt < SHARED_FOR_MS ? latest : null
  }

  #start(signal: AbortSignal | undefined, now: number): SharedDeadline {
    const limit = withDeadline(this.#clock, this.#limitMs, [this.#closing, signal])
    this.#latest = { of: signal, startedAt: now, limit, users: 0 }
    return this.#latest
  }
}

type SharedDeadline = {
  readonly of: AbortSignal | undefined
  /** Monotonic ms. */
  readonly startedAt: number
  readonly limit: Limit
  users: number
}
