import { Batcher } from '../../base/batcher.ts'
import { type Clock, MINUTE } from '../../base/clock.ts'
import { messageOf } from '../../base/error.ts'
import type { Log } from '../../base/log.ts'
import { TtlMap } from '../../base/ttl-map.ts'
import type { Bucket, BucketState, LimitStore, Taken } from './limits.ts'
import type { Outcome, Standing, WindowStore, Windows, Wish } from './windows.ts'

export type LimiterDoors = { readonly clock: Clock; readonly log: Log }

/**
 * Counts requests exactly, however many ask at once. All that ask in one turn of the event loop, and while others are
 * counted, are counted together, before anybody of them is answered. Where they cannot be counted, nobody is let in:
 * `take` rejects.
 */
export function createLimiter(store: WindowStore, { clock, log }: LimiterDoors): LimitStore {
  const known = new TtlMap<Known>({ sizeMax: KNOWN_MAX, clock })
  let sweepAt = clock.ticks() + SWEEP_MS
  let sweeping: Promise<void> = Promise.resolve()

  const batcher = new Batcher<Wish, Outcome>({
    ...{ clock, sizeMax: BATCH_MAX },
    async run(wishes) {
      const counted = await store.count(wishes)
      remember(counted)
      sweepIfDue()
      return counted.outcomes
    },
    // What came meanwhile would wait as long for the same.
    onFailure: () => 'reject-all',
  })
  function remember({ windows, now }: Windows): void {
    const ticks = clock.ticks()
    for (const [key, { used, endsAt }] of windows) {
      const leftMs = endsAt - now
      if (used > 0 && leftMs > 0)
        known.set(key, { used, id: endsAt, endsAt: ticks + leftMs }, leftMs)
    }
  }
  function sweepIfDue(): void {
    if (clock.ticks() < sweepAt) return
    sweepAt = clock.ticks() + SWEEP_MS
    sweeping = store
      .sweep()
      .catch(error => log.warn('old limits cannot be cleared away', { why: messageOf(error) }))
  }
  const statesOf = (buckets: readonly Bucket[], standing: readonly Standing[]) => {
    const now = clock.now()
    return buckets.map((bucket, n) => stateOf(bucket, standing[n] as Standing, now))
  }
  const peek = (buckets: readonly Bucket[]) => {
    const [now, ticks] = [clock.now(), clock.ticks()]
    return buckets.map(bucket => {
      const { used, endsAt } = known.get(bucket.key) ?? { used: 0, endsAt: ticks + bucket.perMs }
      return stateOf(bucket, { used, leftMs: endsAt - ticks }, now)
    })
  }
  /** Not waited for: what cannot be given back ends with its window. */
  function giveBack(bucket: Bucket, { endsAt }: Standing): BucketState {
    const window = known.get(bucket.key)
    if (window?.id === endsAt) window.used--
    batcher
      .add({ buckets: [], back: { key: bucket.key, endsAt } })
      .catch(error => log.warn('a limit could not be given back', { why: messageOf(error) }))
    return peek([bucket])[0] as BucketState
  }
  remember(store.stored)
  return {
    peek,
    look: async buckets => statesOf(buckets, await store.look(buckets)),
    async take(buckets): Promise<Taken> {
      const { refusedBy, standing } = await batcher.add({ buckets, back: null })
      const states = statesOf(buckets, standing)
      if (refusedBy !== null) return { refusedBy, states, giveBack: nothingToGive }
      return {
        ...{ refusedBy, states },
        giveBack: index => giveBack(buckets[index] as Bucket, standing[index] as Standing),
      }
    },
    async close() {
      await batcher.close()
      await sweeping
      store.close()
    },
  }
}

/** As this process heard of it last: `id` is the end of the window by the clock of its store, `endsAt` is in ticks. */
type Known = { used: number; readonly id: number; readonly endsAt: number }

/** More in one transaction would keep their rows from other servers for long. */
const BATCH_MAX = 1_000
/** For display alone: what is forgotten shows as whole. */
const KNOWN_MAX = 100_000
/** How often windows that are over are cleared away. */
const SWEEP_MS = MINUTE

const stateOf = (
  { limit }: Bucket,
  { used, leftMs }: Pick<Standing, 'used' | 'leftMs'>,
  now: number,
): BucketState => ({ limit, remaining: Math.max(0, limit - used), resetAt: now + leftMs })

function nothingToGive(): never {
  throw new Error('what was refused was not charged')
}
