import type { Breakdown } from '../jobs/results/breakdown.ts'
import type { ChangeCount } from '../jobs/reverify/changes.ts'
import type { Capacity } from './capacity.ts'
import type { StatisticsCache } from './jobs/breakdowns.ts'
import type { Outlooks } from './jobs/outlook.ts'
import type { LastUsed } from './last-used.ts'
import type { Metrics } from './metrics.ts'
import type { Guard } from './middleware/guard.ts'
import type { ServiceDeps } from './service.ts'
import type { Streams } from './streams.ts'

/**
 * Everything that the API is built from: what the process supplies, and what its routes share. Each
 * file picks what it uses; `compose/api.ts` builds it.
 */
export type ApiDeps = ServiceDeps & {
  readonly metrics: Metrics
  readonly capacity: Capacity
  /** Idempotency-Keys of requests in flight, with the IDs of their API keys. */
  readonly inFlightKeys: Set<string>
  readonly streams: Streams
  readonly lastUsed: LastUsed
  readonly breakdowns: StatisticsCache<Breakdown>
  readonly changes: StatisticsCache<readonly ChangeCount[]>
  readonly outlooks: Outlooks
  readonly guard: Guard
}
