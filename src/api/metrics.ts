import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { verdictCounters } from '../accounts/credits/ledger-entries.ts'
import { getTotalUsage } from '../accounts/credits/usage.ts'
import { ACCOUNT_METRICS } from '../accounts/telemetry.ts'
import { listMembers } from '../cluster/members.ts'
import { CLUSTER_METRICS } from '../cluster/telemetry.ts'
import type { Database } from '../db/database.ts'
import { isDomainKey } from '../engine/probe/domain-blocks.ts'
import { ENGINE_METRICS } from '../engine/telemetry.ts'
import { JOB_METRICS } from '../jobs/telemetry.ts'
import { type Clock, SECOND, withTimeout } from '../platform/clock.ts'
import { errorMessage } from '../platform/error.ts'
import { formatDuration } from '../platform/format.ts'
import { writeLog } from '../platform/log.ts'
import { countOpenDeliveries } from '../webhooks/delivery-store.ts'
import { WEBHOOK_METRICS } from '../webhooks/telemetry.ts'
import type { LimitKind } from './middleware/rate-limit-buckets.ts'
import type { MonitoringDeps, ServiceDeps } from './service.ts'
import { API_LOG, API_METRICS } from './telemetry.ts'

/** Prometheus metrics of a process. */
export interface Metrics {
  /** Counts an answered request. `route` is a template, never the requested path. */
  answered(o: { method: string; route: string; status: number; tookMs: number }): void
  /** Counts a request that was refused by a limit. */
  refused(
    limit:
      | LimitKind
      | ('credits' | 'crowd' | 'concurrent-jobs' | 'stored-rows' | 'stored-feedback' | 'disk'),
  ): void
  /** Counts a refused request without an entry in the audit log. */
  auditOmitted(): void
  /** All metrics in the text format of Prometheus. */
  text(): Promise<string>
  readonly contentType: string
}

/** Metrics that `ev serve` has in addition to `ev worker`. */
type ServiceCounts = Pick<ServiceDeps, 'deliveries'> & {
  /** Verification requests in flight. */
  readonly verifying: () => number
}

export function createMetrics(deps: MonitoringDeps, service: ServiceCounts | null = null): Metrics {
  const registry = new Registry()
  const registers = [registry]
  const requests = new Counter({
    ...API_METRICS.requests,
    registers,
  })
  const durations = new Histogram({
    ...API_METRICS.durations,
    buckets: [0.001, 0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30],
    registers,
  })
  const refusals = new Counter({
    ...API_METRICS.refusals,
    registers,
  })
  const omissions = new Counter({
    ...API_METRICS.auditOmissions,
    registers,
  })
  buildInfo(deps, registers)
  gauges(deps, registers)
  egressMetrics(deps, registers)
  dnsMetrics(deps, registers)
  if (service !== null) {
    verifyingGauge(service, registers)
    diskMetrics(deps, registers)
    webhookMetrics(deps, service, registers)
  }
  /**
   * Default metrics start with the first scrape, since they monitor the event loop from then on.
   */
  let isWatched = false
  return {
    answered({ method, route, status, tookMs }) {
      requests.inc({ method, route, status }, 1)
      durations.observe({ method, route }, tookMs / 1_000)
    },
    refused: limit => refusals.inc({ limit }),
    auditOmitted: () => omissions.inc(),
    async text() {
      if (!isWatched) collectDefaultMetrics({ register: registry })
      isWatched = true
      return registry.metrics()
    },
    contentType: registry.contentType,
  }
}

/** Gauges that are read at each scrape. */
function gauges(deps: MonitoringDeps, registers: Registry[]): void {
  const { worker, database } = deps
  const stored = databaseReader(deps)
  new Gauge({
    ...JOB_METRICS.jobs,
    registers,
    collect() {
      this.set(worker.status().jobs)
    },
  })
  new Gauge({
    ...JOB_METRICS.queueEntries,
    registers,
    collect() {
      const { waiting, running } = worker.status()
      this.set({ state: 'waiting' }, waiting)
      this.set({ state: 'running' }, running)
    },
  })
  new Gauge({
    ...ACCOUNT_METRICS.verdicts,
    registers,
    collect() {
      for (const [reason, count] of verdictCounters(database)) this.set({ reason }, count)
    },
  })
  new Gauge({
    ...ACCOUNT_METRICS.verifications,
    registers,
    async collect() {
      this.reset()
      for (const { class: ofClass, verifications, cached } of await stored(getTotalUsage, [])) {
        this.set({ class: ofClass, cached: 'true' }, cached)
        this.set({ class: ofClass, cached: 'false' }, verifications - cached)
      }
    },
  })
  new Gauge({
    ...CLUSTER_METRICS.members,
    registers,
    async collect() {
      this.reset()
      for (const { role } of await stored(listMembers, [])) this.inc({ role })
    },
  })
}

function verifyingGauge({ verifying }: ServiceCounts, registers: Registry[]): void {
  new Gauge({
    ...API_METRICS.verificationsInFlight,
    registers,
    collect() {
      this.set(verifying())
    },
  })
}

function buildInfo({ settings }: MonitoringDeps, registers: Registry[]): void {
  new Gauge({
    ...API_METRICS.buildInfo,
    registers,
  }).set({ version: settings.version, node: process.versions.node }, 1)
}

/**
 * Operators that are not in the built-in table or in the config file: their names are domains of
 * customer lists, and each new label value is a time series that Prometheus keeps.
 */
const OTHER_OPERATORS = 'other'

function egressMetrics({ engine }: MonitoringDeps, registers: Registry[]): void {
  const probers = () => engine.egressPool.names.map(name => engine.egressPool.prober(name))
  new Gauge({
    ...ENGINE_METRICS.portReachable,
    registers,
    collect() {
      this.reset()
      for (const { egressName: egress, closedSince, hasConnected } of probers()) {
        if (closedSince !== null) this.set({ egress }, 0)
        else if (hasConnected) this.set({ egress }, 1)
      }
    },
  })
  new Gauge({
    ...ENGINE_METRICS.connections,
    registers,
    collect() {
      for (const prober of probers()) {
        const counts = [...prober.rateControllers()].map(
          ([name, rate]) => rate.status(name).sessions,
        )
        const sum = counts.reduce((all, count) => all + count, 0)
        this.set({ egress: prober.egressName }, sum)
      }
    },
  })
  new Gauge({
    ...ENGINE_METRICS.operatorsBlocking,
    registers,
    collect() {
      this.reset()
      for (const prober of probers()) {
        const egress = prober.egressName
        this.set({ egress, operator: OTHER_OPERATORS }, 0)
        for (const [name, rate] of prober.rateControllers()) {
          if (!rate.isRefused || isDomainKey(name)) continue
          // Lists are shared between egresses at known operators only.
          const operator = engine.egressPool.sharesLists(name) ? name : OTHER_OPERATORS
          this.inc({ egress, operator })
        }
      }
    },
  })
}

function dnsMetrics({ engine }: MonitoringDeps, registers: Registry[]): void {
  new Gauge({
    ...ENGINE_METRICS.dnsCheckFailed,
    registers,
    collect() {
      this.set(engine.resolverCheck?.failure == null ? 0 : 1)
    },
  })
}

function diskMetrics({ disk }: MonitoringDeps, registers: Registry[]): void {
  new Gauge({
    ...JOB_METRICS.diskLow,
    registers,
    async collect() {
      this.set((await disk()).isLow ? 1 : 0)
    },
  })
}

/**
 * Reads from the database. If that fails, returns a fallback, so that all other metrics are still
 * served.
 */
function databaseReader({ database, clock, log }: MonitoringDeps) {
  return async <T>(read: (database: Database) => Promise<T>, fallback: T): Promise<T> => {
    try {
      return await inTime(clock, read(database))
    } catch (error) {
      writeLog(log, API_LOG.databaseMetricsOmitted, { why: errorMessage(error) })
      return fallback
    }
  }
}

function webhookMetrics(
  deps: MonitoringDeps,
  { deliveries }: ServiceCounts,
  registers: Registry[],
): void {
  const stored = databaseReader(deps)
  new Counter({
    ...WEBHOOK_METRICS.attempts,
    registers,
    collect() {
      const { delivered, retried, failed } = deliveries.status()
      this.reset()
      for (const [outcome, count] of Object.entries({ delivered, retried, failed })) {
        this.inc({ outcome }, count)
      }
    },
  })
  new Gauge({
    ...WEBHOOK_METRICS.requestsInFlight,
    registers,
    collect() {
      this.set(deliveries.status().inFlight)
    },
  })
  new Gauge({
    ...WEBHOOK_METRICS.deliveriesOpen,
    registers,
    async collect() {
      const open = await stored<number | null>(countOpenDeliveries, null)
      if (open === null) this.remove()
      else this.set(open)
    },
  })
}

/** Monitoring systems poll every few seconds and treat a longer silence as a failure. */
const TIMEOUT_MS = 3 * SECOND

/** Resolves with the result of `work`; throws if it takes longer than the timeout. */
export const inTime = <T>(clock: Clock, work: Promise<T>): Promise<T> =>
  withTimeout(clock, work, {
    timeoutMs: TIMEOUT_MS,
    message: `no answer within ${formatDuration(TIMEOUT_MS)}`,
  })
