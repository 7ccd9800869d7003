/** Requests of one kind by one client: at most `limit` in `perMs`. */
export type Bucket = { readonly key: string; readonly limit: number; readonly perMs: number }

/** The state of a bucket. */
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
