import { createStatisticsCache, type StatisticsCache } from './jobs/breakdowns.ts'
import { createWaitReports, type WaitReports } from './jobs/wait-report.ts'
import { AdmissionQueue } from './middleware/admission-queue.ts'
import { createLastUsed, type LastUsed } from './middleware/last-used.ts'
import { createMetrics, type Metrics } from './monitoring/metrics.ts'
import type { Service } from './service.ts'
import { Streams } from './streams.ts'

/** What all paths of one service share while it runs. */
export type State = {
  readonly metrics: Metrics
  /** Requests that verify something now. */
  verifying: number
  readonly admissions: AdmissionQueue
  /** Requests with an Idempotency-Key that are being answered now. */
  readonly answering: Set<string>
  readonly streams: Streams
  /** When keys were last used. */
  readonly touches: LastUsed
  readonly breakdowns: StatisticsCache
  readonly waitReports: WaitReports
}

const states = new WeakMap<Service, State>()

export function stateOf(service: Service): State {
  const known = states.get(service)
  if (known !== undefined) return known
  const state: State = {
    metrics: createMetrics(service, {
      deliveries: service.deliveries,
      verifying: () => state.verifying,
    }),
    verifying: 0,
    admissions: new AdmissionQueue(service.clock),
    answering: new Set(),
    streams: new Streams(),
    touches: createLastUsed(service),
    breakdowns: createStatisticsCache(service),
    waitReports: createWaitReports(service),
  }
  states.set(service, state)
  return state
}
