import { Batcher } from '../../platform/batcher.ts'
import { type Clock, MINUTE } from '../../platform/clock.ts'
import { errorMessage } from '../../platform/error.ts'
import { type Log, writeLog } from '../../platform/log.ts'
import { ACCOUNT_LOG } from '../telemetry.ts'
import {
  type Bucket,
  type BucketState,
  type BucketUsage,
  type Charge,
  type ChargeRequest,
  type ChargeResult,
  costOf,
  type LimitStore,
  type WindowStore,
} from './windows.ts'

export type LimiterDeps = { readonly clock: Clock; readonly log: Log }

/**
 * Counts requests exactly under any concurrency. Requests that arrive in one turn of the event
 * loop, or while a batch is being counted, form one batch and are answered after it. If counting
 * fails, no request is admitted: `charge` rejects.
 */
export function createLimiter(store: WindowStore, { clock, log }: LimiterDeps): LimitStore {
  /** The sum of refunds by key that are requested but not yet written. */
  const refunds = new Map<string, number>()
  let deleteExpiredAt = clock.monotonicNow() + CLEANUP_INTERVAL_MS
  let deletion: Promise<void> = Promise.resolve()

  const batcher = new Batcher<ChargeRequest, ChargeResult>({
    clock,
    sizeMax: BATCH_MAX,
    async run(requests) {
      const outcomes = await store.count(requests)
      deleteExpiredIfDue()
      return outcomes
    },
    // Requests that arrived since then would fail after the same wait.
    onFailure: () => 'reject-all',
  })
  function deleteExpiredIfDue(): void {
    if (clock.monotonicNow() < deleteExpiredAt) return
    deleteExpiredAt = clock.monotonicNow() + CLEANUP_INTERVAL_MS
    deletion = store
      .deleteExpired()
      .catch(error => writeLog(log, ACCOUNT_LOG.windowsNotDeleted, { why: errorMessage(error) }))
  }
  const toStates = (buckets: readonly Bucket[], status: readonly BucketUsage[]) => {
    const now = clock.now()
    return buckets.map((bucket, n) => toState(bucket, status[n] as BucketUsage, now))
  }
  const peek = (buckets: readonly Bucket[]) => {
    const now = clock.now()
    return buckets.map(bucket => {
      const { used, leftMs } = store.cached(bucket.key) ?? { used: 0, leftMs: bucket.perMs }
      return toState(bucket, { used: used - (refunds.get(bucket.key) ?? 0), leftMs }, now)
    })
  }
  /** Not awaited: a charge that cannot be refunded ends with its window. */
  function giveBack(bucket: Bucket, { endsAt }: BucketUsage): BucketState {
    const { key } = bucket
    const cost = costOf(bucket)
    const isCounted = store.cached(key)?.endsAt === endsAt
    if (isCounted) refunds.set(key, (refunds.get(key) ?? 0) + cost)
    const state = peek([bucket])[0] as BucketState
    batcher
      .add({ buckets: [], refund: { key, endsAt, cost } })
      .catch(error => writeLog(log, ACCOUNT_LOG.chargeNotRefunded, { why: errorMessage(error) }))
      .finally(() => {
        if (isCounted) refunds.set(key, (refunds.get(key) ?? 0) - cost)
        if (refunds.get(key) === 0) refunds.delete(key)
      })
    return state
  }
  return {
    peek,
    read: async buckets => toStates(buckets, await store.read(buckets)),
    async charge(buckets): Promise<Charge> {
      const { refusedBy, status } = await batcher.add({ buckets, refund: null })
      const states = toStates(buckets, status)
      if (refusedBy !== null) return { refusedBy, states, giveBack: rejectRefund }
      return {
        refusedBy,
        states,
        giveBack: index => giveBack(buckets[index] as Bucket, status[index] as BucketUsage),
      }
    },
    async close() {
      await batcher.close()
      await deletion
      store.close()
    },
  }
}

/** A larger transaction would lock its rows against other servers for too long. */
const BATCH_MAX = 1_000
/** Interval between deletions of expired windows. */
const CLEANUP_INTERVAL_MS = MINUTE

const toState = (
  { limit }: Bucket,
  { used, leftMs }: Pick<BucketUsage, 'used' | 'leftMs'>,
  now: number,
): BucketState => ({ limit, remaining: Math.max(0, limit - used), resetAt: now + leftMs })

function rejectRefund(): never {
  throw new Error('a rejected request was not charged')
}
