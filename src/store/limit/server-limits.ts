import { breatheTogether, type Clock, MINUTE } from '../../base/clock.ts'
import { messageOf } from '../../base/error.ts'
import type { Log } from '../../base/log.ts'
import { TtlMap } from '../../base/ttl-map.ts'
import type { Database } from '../database.ts'
import {
  type Counted,
  count,
  look,
  type Outcome,
  type Standing,
  sweep,
  type Wish,
} from './count.ts'
import {
  type Bucket,
  type BucketState,
  type LimitStore,
  nothingToGive,
  stateOf,
  type Taken,
} from './limits.ts'

/**
 * Counts on a PostgreSQL server, exactly over all processes that share it, by its clock. All that ask in one turn of the
 * event loop, and while others are counted, are counted together in one transaction. Where the server cannot be had,
 * nobody is let in: `take` rejects.
 */
export function serverLimits(database: Database, { clock, log }: Doors): LimitStore {
  const known = new TtlMap<Known>({ sizeMax: KNOWN_MAX, clock })
  const gathered: Waiting[] = []
  let running: Promise<void> | null = null
  let sweepAt = clock.ticks() + SWEEP_MS

  const add = (wish: Waiting) => {
    gathered.push(wish)
    running ??= run()
  }
  async function run(): Promise<void> {
    await breatheTogether()
    while (gathered.length > 0) await settle(gathered.splice(0, BATCH_MAX))
    running = null
  }
  async function settle(batch: readonly Waiting[]): Promise<void> {
    try {
      const counts = await count(database, batch)
      remember(counts)
      for (const [n, wish] of batch.entries()) wish.resolve(counts.outcomes[n] as Outcome)
      await sweepNowAndThen()
    } catch (error) {
      // Who came meanwhile would wait as long for the same.
      for (const wish of [...batch, ...gathered.splice(0)]) wish.reject(error)
    }
  }
  function remember({ windows, now }: Counted): void {
    const ticks = clock.ticks()
    for (const [key, { used, endsAt }] of windows) {
      const leftMs = endsAt - now
      if (leftMs > 0) known.set(key, { used, endsAt: ticks + leftMs }, leftMs)
    }
  }
  async function sweepNowAndThen(): Promise<void> {
    if (clock.ticks() < sweepAt) return
    sweepAt = clock.ticks() + SWEEP_MS
    await sweep(database).catch(error =>
      log.warn('old limits cannot be cleared away', { why: messageOf(error) }),
    )
  }
  const peek = (buckets: readonly Bucket[]) => {
    const [now, ticks] = [clock.now(), clock.ticks()]
    return buckets.map(bucket => {
      const { used, endsAt } = known.get(bucket.key) ?? { used: 0, endsAt: ticks + bucket.perMs }
      return stateOf(bucket, { used, leftMs: endsAt - ticks }, now)
    })
  }
  /** Not waited for: what cannot be given back ends with its window. */
  function giveBack(bucket: Bucket, endsAt: number): BucketState {
    const window = known.get(bucket.key)
    if (window !== undefined) window.used--
    const told = (error: unknown) =>
      log.warn('a limit could not be given back', { why: messageOf(error) })
    add({ buckets: [], back: { key: bucket.key, endsAt }, resolve: () => {}, reject: told })
    return peek([bucket])[0] as BucketState
  }
  return {
    peek,
    async look(buckets) {
      return statesOf(clock, buckets, await look(database, buckets))
    },
    async take(buckets): Promise<Taken> {
      const { promise, resolve, reject } = Promise.withResolvers<Outcome>()
      add({ buckets, back: null, resolve, reject })
      const { refusedBy, standing } = await promise
      const states = statesOf(clock, buckets, standing)
      if (refusedBy !== null) return { refusedBy, states, giveBack: nothingToGive }
      return {
        ...{ refusedBy, states },
        giveBack: index => giveBack(buckets[index] as Bucket, (standing[index] as Standing).endsAt),
      }
    },
    async close() {
      while (running !== null) await running
    },
  }
}

type Doors = { readonly clock: Clock; readonly log: Log }

/** As this process heard of it last; `endsAt` is in ticks. */
type Known = { used: number; readonly endsAt: number }

type Waiting = Wish & {
  readonly resolve: (outcome: Outcome) => void
  readonly reject: (error: unknown) => void
}

/** More in one transaction would keep their rows from other servers for long. */
const BATCH_MAX = 1_000
/** For display alone: what is forgotten shows as whole. */
const KNOWN_MAX = 100_000
/** How often windows that are over are cleared away. */
const SWEEP_MS = MINUTE

const statesOf = (clock: Clock, buckets: readonly Bucket[], standing: readonly Standing[]) => {
  const now = clock.now()
  return buckets.map((bucket, n) => stateOf(bucket, standing[n] as Standing, now))
}
