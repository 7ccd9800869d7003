import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../../src/platform/clock.ts'
import { drainEventLoop } from './wait.ts'

export type FakeClock = Clock & {
  /** Advances by `ms`: fires due timers in order, and runs pending promises after each. */
  advance(ms: number): Promise<void>
  /** Advances until no timer is left; throws after 10,000 timers, which indicates a loop. */
  runAll(): Promise<void>
  /** Stops the process: both clocks move on, and no timer fires. */
  stopProcess(ms: number): void
  /** Moves only the wall clock; the monotonic clock and timers are unaffected. */
  jump(ms: number): void
  /** Suspends the machine: the monotonic clock and timers stop. */
  suspend(ms: number): void
  /** Time until the next timer is due; infinite without a timer. */
  readonly untilNextMs: number
  /** Number of timers. */
  readonly pending: number
}

/**
 * A clock that advances only on request; starts at 12:00 UTC on 1 June 2026 unless `startMs` is
 * set.
 */
export function fakeClock(startMs = Date.UTC(2026, 5, 1, 12)): FakeClock {
  let ticks = FIRST_TICK
  let wallOffset = startMs - FIRST_TICK
  let suspendedMs = 0
  let timers: Timer[] = []

  // Timers due at the same time fire in the order in which they were set, as in Node.
  const nextDue = () => {
    let due: Timer | undefined
    for (const timer of timers) if (due === undefined || timer.dueAt < due.dueAt) due = timer
    return due
  }
  const fire = async (timer: Timer) => {
    timers = timers.filter(other => other !== timer)
    ticks = Math.max(ticks, timer.dueAt)
    timer.callback()
    await settle()
  }
  return {
    now: () => wallOffset + ticks,
    monotonicNow: () => ticks,
    uptimeMs: () => ticks + suspendedMs,
    after(delayMs, callback) {
      const timer = { dueAt: ticks + Math.max(0, delayMs), callback }
      timers.push(timer)
      return () => {
        timers = timers.filter(other => other !== timer)
      }
    },
    async advance(ms) {
      const end = ticks + ms
      await settle()
      for (let due = nextDue(); due && due.dueAt <= end; due = nextDue()) await fire(due)
      ticks = end
    },
    async runAll() {
      await settle()
      for (let fired = 0, due = nextDue(); due; due = nextDue(), fired++) {
        if (fired === RUN_MAX) throw new Error(`still setting timers after ${RUN_MAX}`)
        await fire(due)
      }
    },
    stopProcess(ms) {
      ticks += ms
    },
    jump(ms) {
      wallOffset += ms
    },
    suspend(ms) {
      wallOffset += ms
      suspendedMs += ms
    },
    get untilNextMs() {
      const due = nextDue()
      return due === undefined ? Number.POSITIVE_INFINITY : Math.max(0, due.dueAt - ticks)
    },
    get pending() {
      return timers.length
    },
  }
}

/**
 * Advances until `isDone` returns true, in multiples of `stepMs`: to the first one at which a timer
 * is due, or one by one with `skips: false`, if something waits for real I/O, which takes no time
 * of this clock. Throws after `maxMs`.
 */
export async function letTimePass(
  clock: FakeClock,
  isDone: () => boolean,
  { stepMs, maxMs, skips = true }: TimeOptions,
): Promise<void> {
  await drainEventLoop()
  for (const endAt = clock.monotonicNow() + maxMs; !isDone(); ) {
    if (clock.monotonicNow() >= endAt)
      throw new Error(`The condition did not hold within ${maxMs} ms of the fake clock`)
    const steps = skips ? Math.ceil(clock.untilNextMs / stepMs) : 1
    await clock.advance(Number.isFinite(steps) ? Math.max(1, steps) * stepMs : stepMs)
    await drainEventLoop()
  }
}

type TimeOptions = {
  readonly stepMs: number
  readonly maxMs: number
  readonly skips?: boolean
}

type Timer = { readonly dueAt: number; readonly callback: () => void }

/** Not 0, which lru-cache reads as "never set". */
const FIRST_TICK = 1_000
const RUN_MAX = 10_000

/** Waits for one turn of the event loop, in which pending promises continue. */
const settle = () => setImmediate()

export type StallingClock = Clock & {
  /** Stops firing timers, as in a suspended process. */
  stall(): void
  /** Fires the timers that became due meanwhile. */
  resume(): void
}

/** The system clock, which a test can stall. */
export function stallingClock(clock: Clock): StallingClock {
  let due: (() => void)[] | null = null
  return {
    ...clock,
    after(delayMs, callback) {
      let isCancelled = false
      const fire = () => {
        if (isCancelled) return
        if (due === null) callback()
        else due.push(fire)
      }
      const cancel = clock.after(delayMs, fire)
      return () => {
        isCancelled = true
        cancel()
      }
    },
    stall() {
      due = []
    },
    resume() {
      const callbacks = due ?? []
      due = null
      for (const fire of callbacks) fire()
    },
  }
}

export type ShiftedClock = Clock & { pass(ms: number): void }

/** The system clock, which a test can set forward. */
export function shiftedClock(clock: Clock): ShiftedClock {
  let aheadMs = 0
  return {
    ...clock,
    now: () => clock.now() + aheadMs,
    monotonicNow: () => clock.monotonicNow() + aheadMs,
    pass(ms) {
      aheadMs += ms
    },
  }
}
