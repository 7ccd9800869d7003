import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { verdictCounters } from '../accounts/credits/ledger-entries.ts'
import { getTotalUsage } from '../accounts/credits/usage.ts'
import { listMembers } from '../cluster/members.ts'
import type { Database } from '../db/database.ts'
import { isDomainKey } from '../engine/probe/domain-blocks.ts'
import { type Clock, SECOND, withTimeout } from '../platform/clock.ts'
import { errorMessage } from '../platform/error.ts'
import { formatDuration } from '../platform/format.ts'
import { writeLog } from '../platform/log.ts'
import { countOpenDeliveries } from '../webhooks/delivery-store.ts'
import type { LimitKind } from './middleware/rate-limit-buckets.ts'
import type { MonitoringDeps, ServiceDeps } from './service.ts'
import { API_LOG } from './telemetry.ts'

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
    name: 'ev_http_requests_total',
    help: 'Answered requests, by route and status',
    labelNames: ['method', 'route', 'status'] as const,
    registers,
  })
  const durations = new Histogram({
    name: 'ev_http_request_duration_seconds',
    help: 'Time from a request to the start of its response, by route',
    labelNames: ['method', 'route'] as const,
    buckets: [0.001, 0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30],
    registers,
  })
  const refusals = new Counter({
    name: 'ev_limit_refusals_total',
    help: 'Requests refused by a limit, by limit',
    labelNames: ['limit'] as const,
    registers,
  })
  const omissions = new Counter({
    name: 'ev_audit_entries_omitted_total',
    help: 'Requests refused for lack of rights that are not in the audit log, which has at most 20 of an account in an hour',
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
    name: 'ev_jobs',
    help: 'Jobs in progress',
    registers,
    collect() {
      this.set(worker.status().jobs)
    },
  })
  new Gauge({
    name: 'ev_queue_entries',
    help: 'Queue entries, by state',
    labelNames: ['state'] as const,
    registers,
    collect() {
      const { waiting, running } = worker.status()
      this.set({ state: 'waiting' }, waiting)
      this.set({ state: 'running' }, running)
    },
  })
  new Gauge({
    name: 'ev_verdicts',
    help: 'Addresses verified since the start of the process, by reason',
    labelNames: ['reason'] as const,
    registers,
    collect() {
      for (const [reason, count] of verdictCounters(database)) this.set({ reason }, count)
    },
  })
  new Gauge({
    name: 'ev_verifications',
    help: 'Addresses verified in total, by class and whether the answer was cached',
    labelNames: ['class', 'cached'] as const,
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
    name: 'ev_members',
    help: 'Live processes that share the database, by role; none if the database cannot be shared',
    labelNames: ['role'] as const,
    registers,
    async collect() {
      this.reset()
      for (const { role } of await stored(listMembers, [])) this.inc({ role })
    },
  })
}

function verifyingGauge({ verifying }: ServiceCounts, registers: Registry[]): void {
  new Gauge({
    name: 'ev_verifications_in_flight',
    help: 'Verification requests in flight',
    registers,
    collect() {
      this.set(verifying())
    },
  })
}

function buildInfo({ settings }: MonitoringDeps, registers: Registry[]): void {
  new Gauge({
    name: 'ev_build_info',
    help: 'Always 1, with the version of ev and of Node',
    labelNames: ['version', 'node'] as const,
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
    name: 'ev_smtp_port_reachable',
    help: '1 if mail servers are reachable on the SMTP port (25) from an egress, 0 if none is; none before the first connection',
    labelNames: ['egress'] as const,
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
    name: 'ev_smtp_connections',
    help: 'Open connections to mail servers, by egress',
    labelNames: ['egress'] as const,
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
    name: 'ev_operators_blocking',
    help: `Operators that block an egress now: 1 for each known one, and the number of all others as "${OTHER_OPERATORS}"`,
    labelNames: ['egress', 'operator'] as const,
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
    name: 'ev_dns_check_failed',
    help: '1 while the DNS server fails its check and lists wait, otherwise 0',
    registers,
    collect() {
      this.set(engine.resolverCheck?.failure == null ? 0 : 1)
    },
  })
}

function diskMetrics({ disk }: MonitoringDeps, registers: Registry[]): void {
  new Gauge({
    name: 'ev_disk_low',
    help: '1 while the disk of the data directory is almost full and new lists are refused, otherwise 0',
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
    name: 'ev_webhook_attempts_total',
    help: 'Webhook requests since the start of the process, by outcome: delivered, retried or failed',
    labelNames: ['outcome'] as const,
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
    name: 'ev_webhook_requests_in_flight',
    help: 'Webhook requests in flight',
    registers,
    collect() {
      this.set(deliveries.status().inFlight)
    },
  })
  new Gauge({
    name: 'ev_webhook_deliveries_open',
    help: 'Undelivered events, counted for each webhook endpoint, including disabled ones',
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
