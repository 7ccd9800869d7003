/** Requests of one kind by one asker: at most `limit` in `perMs`. */
export type Bucket = { readonly key: string; readonly limit: number; readonly perMs: number }

/** How a bucket stands. */
export type BucketState = {
  readonly limit: number
  readonly remaining: number
  /** Epoch ms. */
  readonly resetAt: number
}

export type Taken = {
  /** Which bucket is used up, the first of them; null: each was charged. */
  readonly refusedBy: number | null
  /** In the order of the buckets, after the charge. */
  readonly states: readonly BucketState[]
  /** Takes the charge of one bucket back; gives how that stands then. */
  giveBack(index: number): BucketState
}

/** Counts requests in windows of fixed length, which begin with their first request. */
export interface LimitStore {
  /** Charges all buckets, or none when one of them is used up. Resolves when the counts outlive the process. */
  take(buckets: readonly Bucket[]): Promise<Taken>
  /** As they stood when this process heard of them last, for display. */
  peek(buckets: readonly Bucket[]): readonly BucketState[]
  /** As they stand now, whoever charged them. */
  look(buckets: readonly Bucket[]): Promise<readonly BucketState[]>
  /** Writes what is not written yet. */
  close(): Promise<void>
}
