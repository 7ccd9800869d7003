import type { Bucket } from './types.ts'

/** A caller that asks to be charged, or `back`: a charge of a window that is to be taken back. */
export type ChargeRequest = {
  readonly buckets: readonly Bucket[]
  readonly back: { readonly key: string; readonly endsAt: number } | null
}

/** Requests since the first of them; `endsAt` is by the clock of the store. */
export type Window = { used: number; readonly perMs: number; readonly endsAt: number }

/** How a bucket stood when a wish had been counted; `leftMs` tells when it is over on whatever clock. */
export type BucketUsage = {
  readonly used: number
  readonly endsAt: number
  readonly leftMs: number
}

export type Outcome = { readonly refusedBy: number | null; readonly status: readonly BucketUsage[] }

/** The windows of some buckets, and the time, by the clock of the store. */
export type Windows = { readonly windows: ReadonlyMap<string, Window>; readonly now: number }

/** Where windows are kept. */
export interface WindowStore {
  /** How a bucket stood when this process heard of it last; null: that is not known, or its window is over. */
  known(key: string): BucketUsage | null
  /**
   * Counts wishes one after the other, each in all of its buckets or in none; outcomes are in their order. Resolves when the counts outlive the
   * process. A power cut may undo them: nobody waits for the disk.
   */
  count(requests: readonly ChargeRequest[]): Promise<readonly Outcome[]>
  /** How buckets stand now. */
  look(buckets: readonly Bucket[]): Promise<readonly BucketUsage[]>
  /** Deletes windows that are over. */
  sweep(): Promise<void>
  close(): void
}

/** Charges windows, and takes back from them, in the order of the wishes; gives what changed. */
export function settle(requests: readonly ChargeRequest[], { windows, now }: Windows) {
  const changed = new Set<string>()
  const outcomes = requests.map(({ buckets, back }): Outcome => {
    if (back !== null && takeBack(back, windows)) changed.add(back.key)
    const own = buckets.map(({ key }) => windows.get(key) as Window)
    const full = own.findIndex(({ used }, n) => used >= (buckets[n] as Bucket).limit)
    if (full === -1) {
      for (const window of own) window.used++
      for (const { key } of buckets) changed.add(key)
    }
    return { refusedBy: full === -1 ? null : full, status: own.map(one => usageOf(one, now)) }
  })
  return { outcomes, changed }
}

/** Of a window that is over nothing is left to be given back. */
function takeBack(
  { key, endsAt }: NonNullable<ChargeRequest['back']>,
  windows: ReadonlyMap<string, Window>,
): boolean {
  const window = windows.get(key)
  if (window === undefined || window.endsAt !== endsAt || window.used === 0) return false
  window.used--
  return true
}

/** A window that is over makes room for one that begins now. A clock that was set back makes none longer than it was meant to be. */
export function windowAt(stored: Window | undefined, requestedMs: number, now: number): Window {
  if (stored === undefined || stored.endsAt <= now) {
    return { used: 0, perMs: requestedMs, endsAt: now + requestedMs }
  }
  const { used, perMs, endsAt } = stored
  return { used, perMs, endsAt: Math.min(endsAt, now + perMs) }
}

export const usageOf = ({ used, endsAt }: Window, now: number): BucketUsage => ({
  used,
  endsAt,
  leftMs: endsAt - now,
})
