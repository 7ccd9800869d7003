import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { verdictCounters } from '../../accounts/credits/ledger-entries.ts'
import { totalUsage } from '../../accounts/credits/usage.ts'
import { liveMembers } from '../../cluster/members.ts'
import type { Database } from '../../db/database.ts'
import { errorMessage } from '../../platform/error.ts'
import { countOpenDeliveries } from '../../webhooks/delivery-store.ts'
import type { LimitKind } from '../middleware/rate-limit-buckets.ts'
import type { Service } from '../service.ts'
import { inTime } from './in-time.ts'
import type { MonitoringDeps } from './monitored.ts'

/** What a process counts about itself, for Prometheus. */
export interface Metrics {
  /** A request that was answered; `route` is a template, never what was asked for. */
  answered(o: { method: string; route: string; status: number; tookMs: number }): void
  /** A request that a limit refused. */
  refused(limit: LimitKind | 'credits' | 'crowd' | 'concurrent-jobs' | 'stored-rows' | 'disk'): void
  /** All of it in the text format of Prometheus. */
  text(): Promise<string>
  readonly contentType: string
}

/** What an `ev serve` counts beyond an `ev worker`. */
export type ServiceCounts = Pick<Service, 'deliveries'> & {
  /** Requests that verify something now. */
  readonly verifying: () => number
}

export function createMetrics(deps: MonitoringDeps, service: ServiceCounts | null = null): Metrics {
  const registry = new Registry()
  const registers = [registry]
  const requests = new Counter({
    name: 'ev_http_requests_total',
    help: 'Requests that were answered, by route and status',
    labelNames: ['method', 'route', 'status'] as const,
    registers,
  })
  const durations = new Histogram({
    name: 'ev_http_request_duration_seconds',
    help: 'Time from a request to the begin of its answer, by route',
    labelNames: ['method', 'route'] as const,
    buckets: [0.001, 0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30],
    registers,
  })
  const refusals = new Counter({
    name: 'ev_limit_refusals_total',
    help: 'Requests that a limit refused, by limit',
    labelNames: ['limit'] as const,
    registers,
  })
  gauges(deps, registers)
  dnsMetrics(deps, registers)
  if (service !== null) {
    verifyingGauge(service, registers)
    diskMetrics(deps, registers)
    webhookMetrics(deps, service, registers)
  }
  /** Built at the first look: it watches the event loop from then on. */
  let isWatched = false
  return {
    answered({ method, route, status, tookMs }) {
      requests.inc({ method, route, status }, 1)
      durations.observe({ method, route }, tookMs / 1_000)
    },
    refused: limit => refusals.inc({ limit }),
    async text() {
      if (!isWatched) collectDefaultMetrics({ register: registry })
      isWatched = true
      return registry.metrics()
    },
    contentType: registry.contentType,
  }
}

/** What is looked up when somebody asks. */
function gauges(deps: MonitoringDeps, registers: Registry[]): void {
  const { worker, database } = deps
  const stored = storedReader(deps)
  new Gauge({
    name: 'ev_jobs',
    help: 'Jobs that are worked on',
    registers,
    collect() {
      this.set(worker.status().jobs)
    },
  })
  new Gauge({
    name: 'ev_queue_entries',
    help: 'Entries of the queue, by whether they wait or run',
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
    help: 'Addresses that were verified since the start, by reason',
    labelNames: ['reason'] as const,
    registers,
    collect() {
      for (const [reason, count] of verdictCounters(database)) this.set({ reason }, count)
    },
  })
  new Gauge({
    name: 'ev_verifications',
    help: 'Addresses that were verified in all, by class, and how many of these from memory',
    labelNames: ['class', 'cached'] as const,
    registers,
    async collect() {
      this.reset()
      for (const { class: ofClass, verifications, cached } of await stored(totalUsage, [])) {
        this.set({ class: ofClass, cached: 'true' }, cached)
        this.set({ class: ofClass, cached: 'false' }, verifications - cached)
      }
    },
  })
  new Gauge({
    name: 'ev_members',
    help: 'Processes that share the database and are alive, by role; none where it is one that cannot be shared',
    labelNames: ['role'] as const,
    registers,
    async collect() {
      this.reset()
      for (const { role } of await stored(liveMembers, [])) this.inc({ role })
    },
  })
}

function verifyingGauge({ verifying }: ServiceCounts, registers: Registry[]): void {
  new Gauge({
    name: 'ev_verifications_in_flight',
    help: 'Requests that verify something now',
    registers,
    collect() {
      this.set(verifying())
    },
  })
}

function dnsMetrics({ engine }: MonitoringDeps, registers: Registry[]): void {
  new Gauge({
    name: 'ev_dns_check_failed',
    help: '1 while the DNS server fails its check and lists wait, else 0',
    registers,
    collect() {
      this.set(engine.resolverCheck?.failure == null ? 0 : 1)
    },
  })
}

function diskMetrics({ disk }: MonitoringDeps, registers: Registry[]): void {
  new Gauge({
    name: 'ev_disk_low',
    help: '1 while the disk of the data directory is almost full and new lists are refused, else 0',
    registers,
    async collect() {
      this.set((await disk()).isLow ? 1 : 0)
    },
  })
}

/** Reads what is stored; while that cannot be had, all the rest is told nevertheless. */
function storedReader({ database, clock, log }: MonitoringDeps) {
  return async <T>(read: (database: Database) => Promise<T>, otherwise: T): Promise<T> => {
    try {
      return await inTime(clock, read(database))
    } catch (error) {
      log.warn('metrics of what is stored are left out', { why: errorMessage(error) })
      return otherwise
    }
  }
}

function webhookMetrics(
  deps: MonitoringDeps,
  { deliveries }: ServiceCounts,
  registers: Registry[],
): void {
  const stored = storedReader(deps)
  new Counter({
    name: 'ev_webhook_attempts_total',
    help: 'Requests to webhooks since the start, by what came of them: the event arrived, is sent again later, or was given up',
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
    name: 'ev_webhook_requests_under_way',
    help: 'Requests to webhooks that are under way now',
    registers,
    collect() {
      this.set(deliveries.status().inFlight)
    },
  })
  new Gauge({
    name: 'ev_webhook_deliveries_open',
    help: 'Events that are still to arrive at a webhook, each counted for each of them; with those that wait until theirs is switched on',
    registers,
    async collect() {
      const open = await stored<number | null>(countOpenDeliveries, null)
      if (open === null) this.remove()
      else this.set(open)
    },
  })
}
