import type { ApiDeps } from '../api/api-deps.ts'
import { Capacity } from '../api/capacity.ts'
import { createStatisticsCache } from '../api/jobs/breakdowns.ts'
import { createOutlooks } from '../api/jobs/outlook.ts'
import { createLastUsed } from '../api/last-used.ts'
import { createLargeListLimit } from '../api/lists/limits.ts'
import { createMetrics } from '../api/metrics.ts'
import { createGuard } from '../api/middleware/guard.ts'
import { KeysInFlight } from '../api/middleware/idempotency.ts'
import { createRefusedRequests } from '../api/middleware/refused-requests.ts'
import { RouteTable } from '../api/middleware/route-table.ts'
import type { ServiceDeps } from '../api/service.ts'
import { Streams } from '../api/streams.ts'
import { countBreakdown } from '../jobs/results/breakdown.ts'
import { countChanges } from '../jobs/reverify/changes.ts'

/** Builds what the routes of the API share. */
export function composeApi(service: ServiceDeps): ApiDeps {
  const metrics = createMetrics(service, {
    deliveries: service.deliveries,
    verifying: () => capacity.verifying,
  })
  const capacity = new Capacity({ clock: service.clock, metrics })
  const guarded = {
    ...service,
    metrics,
    capacity,
    keysInFlight: new KeysInFlight(),
    routes: new RouteTable(),
    lastUsed: createLastUsed(service),
    refusedRequests: createRefusedRequests({ ...service, metrics }),
  }
  return {
    ...guarded,
    guard: createGuard(guarded),
    streams: new Streams(),
    limitLargeLists: createLargeListLimit(),
    breakdowns: createStatisticsCache(service, countBreakdown),
    changes: createStatisticsCache(service, countChanges),
    outlooks: createOutlooks(service),
  }
}
