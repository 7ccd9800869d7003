import { openLedger } from './ledger.ts'
import { createLimiter, type LimiterDoors } from './limiter.ts'
import type { Bucket, LimitStore } from './limits.ts'
import { settle, standingOf, type Window, type WindowStore, windowAt } from './windows.ts'

/** Limits of one process, on a file of its own. */
export const openLimits = (file: string, doors: LimiterDoors): LimitStore =>
  createLimiter(fileWindows(file, doors), doors)

/**
 * Windows in memory, as no other process counts: where the disk is full, they hold nevertheless. They end by the
 * monotonic clock, so that a wall clock that is set anew locks nobody out. What changed is written to `file`.
 */
function fileWindows(file: string, { clock, log }: LimiterDoors): WindowStore {
  const ledger = openLedger(file, log)
  const windows = new Map<string, Window>()
  const startedAt = clock.ticks()
  for (const { key, perMs, used, leftMs } of ledger.load(clock.now())) {
    windows.set(key, { used, perMs, endsAt: startedAt + leftMs })
  }
  const save = (changed: Iterable<string>) => {
    const offsetMs = clock.now() - clock.ticks()
    const rows = [...changed].map(key => {
      const window = windows.get(key) as Window
      return { key, ...window, endsAt: offsetMs + window.endsAt }
    })
    ledger.save(rows)
  }
  const current = ({ key, perMs }: Pick<Bucket, 'key' | 'perMs'>, now: number) =>
    windowAt(windows.get(key), perMs, now)
  return {
    stored: { windows, now: startedAt },
    async count(wishes) {
      const now = clock.ticks()
      const locked = new Map<string, Window>()
      for (const bucket of wishes.flatMap(({ buckets }) => buckets)) {
        if (!locked.has(bucket.key)) locked.set(bucket.key, current(bucket, now))
      }
      for (const { key } of wishes.flatMap(({ back }) => back ?? [])) {
        if (!locked.has(key)) locked.set(key, current({ key, perMs: 0 }, now))
      }
      const { outcomes, changed } = settle(wishes, { windows: locked, now })
      for (const key of changed) windows.set(key, locked.get(key) as Window)
      if (changed.size > 0) save(changed)
      return { outcomes, windows: locked, now }
    },
    async look(buckets) {
      const now = clock.ticks()
      return buckets.map(bucket => standingOf(current(bucket, now), now))
    },
    async sweep() {
      const now = clock.ticks()
      for (const [key, { endsAt }] of windows) if (endsAt <= now) windows.delete(key)
      ledger.forget(clock.now())
    },
    close: () => ledger.close(),
  }
}
