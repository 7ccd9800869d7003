import { Batcher } from '../../platform/batcher.ts'
import { type Clock, MINUTE } from '../../platform/clock.ts'
import { errorMessage } from '../../platform/error.ts'
import type { Log } from '../../platform/log.ts'
import type { Bucket, BucketState, LimitStore, Taken } from './types.ts'
import type { BucketUsage, ChargeRequest, Outcome, WindowStore } from './windows.ts'

export type LimiterDeps = { readonly clock: Clock; readonly log: Log }

/**
 * Counts requests exactly, however many ask at once. All that ask in one turn of the event loop, and while others are
 * counted, are counted together, before anybody of them is answered. Where they cannot be counted, nobody is let in:
 * `take` rejects.
 */
export function createLimiter(store: WindowStore, { clock, log }: LimiterDeps): LimitStore {
  /** Charges by key that are to be taken back, and still stand in their window. */
  const backs = new Map<string, number>()
  let sweepAt = clock.monotonicNow() + SWEEP_MS
  let sweeping: Promise<void> = Promise.resolve()

  const batcher = new Batcher<ChargeRequest, Outcome>({
    ...{ clock, sizeMax: BATCH_MAX },
    async run(requests) {
      const outcomes = await store.count(requests)
      sweepIfDue()
      return outcomes
    },
    // What came meanwhile would wait as long for the same.
    onFailure: () => 'reject-all',
  })
  function sweepIfDue(): void {
    if (clock.monotonicNow() < sweepAt) return
    sweepAt = clock.monotonicNow() + SWEEP_MS
    sweeping = store
      .sweep()
      .catch(error => log.warn('old limits cannot be cleared away', { why: errorMessage(error) }))
  }
  const statesOf = (buckets: readonly Bucket[], status: readonly BucketUsage[]) => {
    const now = clock.now()
    return buckets.map((bucket, n) => stateOf(bucket, status[n] as BucketUsage, now))
  }
  const peek = (buckets: readonly Bucket[]) => {
    const now = clock.now()
    return buckets.map(bucket => {
      const { used, leftMs } = store.known(bucket.key) ?? { used: 0, leftMs: bucket.perMs }
      return stateOf(bucket, { used: used - (backs.get(bucket.key) ?? 0), leftMs }, now)
    })
  }
  /** Not waited for: what cannot be given back ends with its window. */
  function giveBack(bucket: Bucket, { endsAt }: BucketUsage): BucketState {
    const { key } = bucket
    const isCounted = store.known(key)?.endsAt === endsAt
    if (isCounted) backs.set(key, (backs.get(key) ?? 0) + 1)
    const state = peek([bucket])[0] as BucketState
    batcher
      .add({ buckets: [], back: { key, endsAt } })
      .catch(error => log.warn('a limit could not be given back', { why: errorMessage(error) }))
      .finally(() => {
        if (isCounted) backs.set(key, (backs.get(key) ?? 0) - 1)
        if (backs.get(key) === 0) backs.delete(key)
      })
    return state
  }
  return {
    peek,
    look: async buckets => statesOf(buckets, await store.look(buckets)),
    async take(buckets): Promise<Taken> {
      const { refusedBy, status } = await batcher.add({ buckets, back: null })
      const states = statesOf(buckets, status)
      if (refusedBy !== null) return { refusedBy, states, giveBack: nothingToGive }
      return {
        ...{ refusedBy, states },
        giveBack: index => giveBack(buckets[index] as Bucket, status[index] as BucketUsage),
      }
    },
    async close() {
      await batcher.close()
      await sweeping
      store.close()
    },
  }
}

/** More in one transaction would keep their rows from other servers for long. */
const BATCH_MAX = 1_000
/** How often windows that are over are cleared away. */
const SWEEP_MS = MINUTE

const stateOf = (
  { limit }: Bucket,
  { used, leftMs }: Pick<BucketUsage, 'used' | 'leftMs'>,
  now: number,
): BucketState => ({ limit, remaining: Math.max(0, limit - used), resetAt: now + leftMs })

function nothingToGive(): never {
  throw new Error('what was refused was not charged')
}
