/** Requests of one kind by one client: at most `limit` in `perMs`. */
export type Bucket = {
  readonly key: string
  readonly limit: number
  readonly perMs: number
  /** What the request counts as, at most `limit`; 1 if omitted. */
  readonly cost?: number
}

export const costOf = ({ cost = 1 }: Pick<Bucket, 'cost'>): number => cost

export type BucketState = {
  readonly limit: number
  readonly remaining: number
  /** Epoch ms. */
  readonly resetAt: number
}

export type Charge = {
  /** Index of the first bucket without room; null if all were charged. */
  readonly refusedBy: number | null
  /** In the order of the buckets, after the charge. */
  readonly states: readonly BucketState[]
  /** Refunds the charge of one bucket and returns its new state. */
  giveBack(index: number): BucketState
}

/** Counts requests in windows of fixed length, which start with their first request. */
export interface LimitStore {
  /**
   * Charges all buckets, or none if one of them has no room. Resolves once the counts survive a
   * crash of the process.
   */
  charge(buckets: readonly Bucket[]): Promise<Charge>
  /** The states this process has seen last, for display. */
  peek(buckets: readonly Bucket[]): readonly BucketState[]
  /** The current states, including charges by other processes. */
  read(buckets: readonly Bucket[]): Promise<readonly BucketState[]>
  /** Writes pending counts. */
  close(): Promise<void>
}

/** A request to charge `buckets`, or to refund one charge of a window. */
export type ChargeRequest = {
  readonly buckets: readonly Bucket[]
  readonly refund: Refund | null
}

type Refund = { readonly key: string; readonly endsAt: number; readonly cost: number }

/** A window of requests; `endsAt` is by the clock of the store. */
export type Window = { used: number; readonly perMs: number; readonly endsAt: number }

/**
 * The state of a bucket after a request was counted; `leftMs` is the remaining time, which is valid
 * on any clock.
 */
export type BucketUsage = {
  readonly used: number
  readonly endsAt: number
  readonly leftMs: number
}

export type ChargeResult = {
  readonly refusedBy: number | null
  readonly status: readonly BucketUsage[]
}

/** Windows by key, and the current time by the clock of the store. */
export type Windows = { readonly windows: ReadonlyMap<string, Window>; readonly now: number }

/** Storage of the windows, in PostgreSQL or in memory with a file. */
export interface WindowStore {
  /**
   * The state of a bucket that this process has seen last; null if it is unknown or its window has
   * ended.
   */
  cached(key: string): BucketUsage | null
  /**
   * Counts requests in order, each in all of its buckets or in none; results are in the same order.
   * Resolves once the counts survive a crash of the process. They are not flushed to disk, so a
   * power cut may lose them.
   */
  count(requests: readonly ChargeRequest[]): Promise<readonly ChargeResult[]>
  /** The current state of buckets. */
  read(buckets: readonly Bucket[]): Promise<readonly BucketUsage[]>
  deleteExpired(): Promise<void>
  close(): void
}

/**
 * Applies charges and refunds to windows in order. Returns the results and the keys that changed.
 */
export function applyCharges(requests: readonly ChargeRequest[], { windows, now }: Windows) {
  const changed = new Set<string>()
  const outcomes = requests.map(({ buckets, refund }): ChargeResult => {
    if (refund !== null && applyRefund(refund, windows)) changed.add(refund.key)
    const own = buckets.map(({ key }) => windows.get(key) as Window)
    const full = buckets.findIndex(
      (bucket, n) => (own[n] as Window).used + costOf(bucket) > bucket.limit,
    )
    if (full === -1) {
      for (const [n, bucket] of buckets.entries()) {
        ;(own[n] as Window).used += costOf(bucket)
        changed.add(bucket.key)
      }
    }
    return { refusedBy: full === -1 ? null : full, status: own.map(one => toUsage(one, now)) }
  })
  return { outcomes, changed }
}

/** A refund for a window that has ended does nothing. */
function applyRefund({ key, endsAt, cost }: Refund, windows: ReadonlyMap<string, Window>): boolean {
  const window = windows.get(key)
  if (window === undefined || window.endsAt !== endsAt || window.used === 0) return false
  window.used = Math.max(0, window.used - cost)
  return true
}

/**
 * Returns the stored window, or a new one that starts now if it has ended. The remaining time never
 * exceeds the window, even if the clock was set back.
 */
export function windowAt(stored: Window | undefined, requestedMs: number, now: number): Window {
  if (stored === undefined || stored.endsAt <= now) {
    return { used: 0, perMs: requestedMs, endsAt: now + requestedMs }
  }
  const { used, perMs, endsAt } = stored
  return { used, perMs, endsAt: Math.min(endsAt, now + perMs) }
}

export const toUsage = ({ used, endsAt }: Window, now: number): BucketUsage => ({
  used,
  endsAt,
  leftMs: endsAt - now,
})
