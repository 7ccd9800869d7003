import { createLimiter, type LimiterDeps } from './limiter.ts'
import { openLedger } from './persisted-windows.ts'
import type { Bucket, LimitStore } from './types.ts'
import { settle, usageOf, type Window, type WindowStore, windowAt } from './windows.ts'

/** Limits of one process, on a file of its own. */
export const openLimits = (file: string, doors: LimiterDeps): LimitStore =>
  createLimiter(fileWindows(file, doors), doors)

/**
 * Windows in memory, as no other process counts: where the disk is full, they hold nevertheless. They end by the
 * monotonic clock, so that a wall clock that is set anew locks nobody out. What changed is written to `file`.
 */
function fileWindows(file: string, { clock, log }: LimiterDeps): WindowStore {
  const ledger = openLedger(file, log)
  const windows = new Map<string, Window>()
  const startedAt = clock.monotonicNow()
  for (const { key, perMs, used, leftMs } of ledger.load(clock.now())) {
    windows.set(key, { used, perMs, endsAt: startedAt + leftMs })
  }
  const save = (changed: Iterable<string>) => {
    const offsetMs = clock.now() - clock.monotonicNow()
    const rows = [...changed].map(key => {
      const { used, perMs, endsAt } = windows.get(key) as Window
      return { key, used, perMs, endsAt: offsetMs + endsAt }
    })
    ledger.save(rows)
  }
  const current = (key: string, now: number) => {
    const window = windows.get(key)
    return window === undefined || window.endsAt <= now ? null : window
  }
  const currentOrNew = ({ key, perMs }: Bucket, now: number) =>
    current(key, now) ?? windowAt(undefined, perMs, now)
  return {
    known(key) {
      const now = clock.monotonicNow()
      const window = current(key, now)
      return window && usageOf(window, now)
    },
    async count(requests) {
      const now = clock.monotonicNow()
      const locked = new Map<string, Window>()
      for (const { buckets, back } of requests) {
        for (const bucket of buckets) {
          if (!locked.has(bucket.key)) locked.set(bucket.key, currentOrNew(bucket, now))
        }
        const window = back && current(back.key, now)
        if (back !== null && window !== null) locked.set(back.key, window)
      }
      const { outcomes, changed } = settle(requests, { windows: locked, now })
      for (const key of changed) windows.set(key, locked.get(key) as Window)
      if (changed.size > 0) save(changed)
      return outcomes
    },
    async look(buckets) {
      const now = clock.monotonicNow()
      return buckets.map(bucket => usageOf(currentOrNew(bucket, now), now))
    },
    async sweep() {
      const now = clock.monotonicNow()
      for (const [key, { endsAt }] of windows) if (endsAt <= now) windows.delete(key)
      ledger.forget(clock.now())
    },
    close: () => ledger.close(),
  }
}
