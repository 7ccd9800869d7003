import { breatheTogether, type Clock, MINUTE } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { openLedger } from './ledger.ts'
import { type Bucket, type BucketState, type LimitStore, nothingToGive, stateOf } from './limits.ts'

/**
 * Counts in memory, so that they are exact however many ask at once, and writes what changed to `file` once in
 * each turn of the event loop, before anybody of that turn is answered. Windows end by the monotonic clock: a
 * wall clock that is set anew locks nobody out.
 */
export function openLimits(file: string, { clock, log }: Doors): LimitStore {
  const ledger = openLedger(file, log)
  const windows = new Map<string, Window>()
  for (const { key, perMs, used, leftMs } of ledger.load(clock.now())) {
    windows.set(key, { used, perMs, endsAt: clock.ticks() + leftMs })
  }
  const changed = new Set<string>()
  let writing: Promise<void> | null = null
  let sweepAt = clock.ticks() + SWEEP_MS

  function write(): void {
    writing = null
    const [now, ticks] = [clock.now(), clock.ticks()]
    const rows = [...changed].flatMap(key => {
      const window = windows.get(key)
      return window === undefined ? [] : [{ key, ...window, endsAt: now + window.endsAt - ticks }]
    })
    changed.clear()
    ledger.save(rows)
    if (ticks >= sweepAt) sweep(now, ticks)
  }
  function sweep(now: number, ticks: number): void {
    sweepAt = ticks + SWEEP_MS
    for (const [key, { endsAt }] of windows) if (endsAt <= ticks) windows.delete(key)
    ledger.forget(now)
  }
  const usedOf = ({ key }: Bucket, ticks: number) => {
    const window = windows.get(key)
    return window === undefined || window.endsAt <= ticks ? null : window
  }
  function charge(bucket: Bucket, ticks: number): Window {
    const { key, perMs } = bucket
    const window = usedOf(bucket, ticks) ?? { used: 0, perMs, endsAt: ticks + perMs }
    window.used++
    windows.set(key, window)
    changed.add(key)
    return window
  }
  const peek = (buckets: readonly Bucket[]) => {
    const [now, ticks] = [clock.now(), clock.ticks()]
    return buckets.map(bucket => {
      const window = usedOf(bucket, ticks)
      const leftMs = window === null ? bucket.perMs : window.endsAt - ticks
      return stateOf(bucket, { used: window?.used ?? 0, leftMs }, now)
    })
  }
  return {
    peek,
    look: async buckets => peek(buckets),
    async take(buckets) {
      const ticks = clock.ticks()
      const full = buckets.findIndex(bucket => (usedOf(bucket, ticks)?.used ?? 0) >= bucket.limit)
      if (full !== -1) return { refusedBy: full, states: peek(buckets), giveBack: nothingToGive }
      const charged = buckets.map(bucket => charge(bucket, ticks))
      const states = peek(buckets)
      writing ??= breatheTogether().then(write)
      await writing
      return {
        ...{ refusedBy: null, states },
        giveBack(index) {
          const [window, bucket] = [charged[index] as Window, buckets[index] as Bucket]
          // Of a window that is over this changes nothing any more.
          window.used--
          changed.add(bucket.key)
          writing ??= breatheTogether().then(write)
          return peek([bucket])[0] as BucketState
        },
      }
    },
    async close() {
      write()
      ledger.close()
    },
  }
}

type Doors = { readonly clock: Clock; readonly log: Log }

/** `endsAt` is in ticks. */
type Window = { used: number; readonly perMs: number; readonly endsAt: number }

/** How often windows that are over are cleared away. */
const SWEEP_MS = MINUTE
