import type { Context } from 'hono'
import type { Breakdown } from '../jobs/results/breakdown.ts'
import type { ChangeCount } from '../jobs/reverify/changes.ts'
import type { Capacity } from './capacity.ts'
import type { Env } from './context.ts'
import type { StatisticsCache } from './jobs/breakdowns.ts'
import type { Outlooks } from './jobs/outlook.ts'
import type { LastUsed } from './last-used.ts'
import type { Metrics } from './metrics.ts'
import type { Guard } from './middleware/guard.ts'
import type { KeysInFlight } from './middleware/idempotency.ts'
import type { RefusedRequests } from './middleware/refused-requests.ts'
import type { RouteTable } from './middleware/route-table.ts'
import type { ServiceDeps } from './service.ts'
import type { Streams } from './streams.ts'

/**
 * Everything that the API is built from: what the process supplies, and what its routes share. Each
 * file picks what it uses; `compose/api.ts` builds it.
 */
export type ApiDeps = ServiceDeps & {
  readonly metrics: Metrics
  readonly capacity: Capacity
  readonly keysInFlight: KeysInFlight
  /** Facts of the routes that the guard protects. */
  readonly routes: RouteTable
  readonly streams: Streams
  /** Refuses a large list while too many are in flight. Throws ApiError. */
  readonly limitLargeLists: (c: Context<Env>) => void
  readonly lastUsed: LastUsed
  readonly refusedRequests: RefusedRequests
  readonly breakdowns: StatisticsCache<Breakdown>
  readonly changes: StatisticsCache<readonly ChangeCount[]>
  readonly outlooks: Outlooks
  readonly guard: Guard
}
