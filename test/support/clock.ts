import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../../src/platform/clock.ts'
import { drainEventLoop } from './wait.ts'

export type FakeClock = Clock & {
  /** Lets `ms` pass: fires what falls due, in order, and lets promises run after each. */
  advance(ms: number): Promise<void>
  /** Lets time pass until no timer is set; throws after 10,000 timers, which is a loop. */
  runAll(): Promise<void>
  /** Moves the wall clock alone, as an administrator or a leap would: `ticks` and timers do not notice. */
  jump(ms: number): void
  /** In how many ms the next timer is due; infinite when none is set. */
  readonly untilNextMs: number
  /** How many timers are set. */
  readonly pending: number
}

/** A clock that stands still until told; 12:00 UTC on 1 June 2026 unless `startMs` says otherwise. */
export function fakeClock(startMs = Date.UTC(2026, 5, 1, 12)): FakeClock {
  let ticks = FIRST_TICK
  let wallOffset = startMs - FIRST_TICK
  let timers: Timer[] = []

  // Timers due at the same tick fire in the order they were set, as Node's do.
  const nextDue = () => timers.toSorted((a, b) => a.dueAt - b.dueAt)[0]
  const fire = async (timer: Timer) => {
    timers = timers.filter(other => other !== timer)
    ticks = Math.max(ticks, timer.dueAt)
    timer.callback()
    await settle()
  }
  return {
    now: () => wallOffset + ticks,
    monotonicNow: () => ticks,
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
    jump(ms) {
      wallOffset += ms
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
 * Lets time pass until `isOver`, in multiples of `stepMs`: to the first one at which a timer has
 * fallen due, or one by one with `skips: false`, where something waits for real I/O, which takes no
 * time of this clock. Throws after `maxMs` of it.
 */
export async function letTimePass(
  clock: FakeClock,
  isDone: () => boolean,
  { stepMs, maxMs, skips = true }: TimeOptions,
): Promise<void> {
  await drainEventLoop()
  for (const endAt = clock.monotonicNow() + maxMs; !isDone(); ) {
    if (clock.monotonicNow() >= endAt)
      throw new Error(`It did not end in ${maxMs} ms of the fake clock`)
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

/** Not 0: lru-cache takes a start at 0 for "never set". */
const FIRST_TICK = 1_000
const RUN_MAX = 10_000

/** One turn of the event loop: every promise that can go on has gone on. */
const settle = () => setImmediate()

export type StallingClock = Clock & {
  /** From now on no timer fires, as in a process that was stopped. */
  stall(): void
  /** The timers that fell due meanwhile fire. */
  resume(): void
}

/** The clock of this machine, for a part of a test that stands still for a while. */
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
      const fires = due ?? []
      due = null
      for (const fire of fires) fire()
    },
  }
}

export type ShiftedClock = Clock & { pass(ms: number): void }

/** The clock of this machine, which may be set forward as if so much time had passed. */
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
