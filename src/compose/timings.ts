import { DEFAULT_HTTP_TIMINGS, type HttpTimings } from '../api/service.ts'
import { DEFAULT_WRITER_TIMINGS, type WriterTimings } from '../cluster/background-writer.ts'
import {
  type ClusterTimings,
  checkClusterTimings,
  DEFAULT_CLUSTER_TIMINGS,
} from '../cluster/membership.ts'
import {
  checkRateTimings,
  DEFAULT_RATE_TIMINGS,
  type RateTimings,
} from '../cluster/rate-control/stored-state.ts'
import { DEFAULT_POOL_TIMINGS, type PoolTimings } from '../db/postgres/connect-backoff.ts'
import { DEFAULT_JOB_MAIL_TIMINGS } from '../jobs/job-mails.ts'
import { DEFAULT_SCHEDULE_TIMINGS, type ScheduleTimings } from '../jobs/schedules/run-schedules.ts'
import { DEFAULT_WORKER_TIMINGS, type WorkerTimings } from '../jobs/worker/worker-timings.ts'
import { HOUR } from '../platform/clock.ts'
import { checkQueueTimings, DEFAULT_QUEUE_TIMINGS, type QueueTimings } from '../queue/queue.ts'
import { DEFAULT_DELIVERY_TIMINGS, type DeliveryTimings } from '../webhooks/attempt.ts'
import { DEFAULT_ALERT_TIMINGS } from '../webhooks/endpoint-alerts.ts'
import type { MailTimings } from '../webhooks/mail-sender.ts'

/**
 * Intervals and timeouts of a service, by module. They are not settings: only tests change them.
 */
export type Timings = {
  readonly queue: QueueTimings
  readonly cluster: ClusterTimings
  readonly rates: RateTimings
  readonly catchAll: WriterTimings
  readonly pool: PoolTimings
  readonly worker: WorkerTimings
  readonly deliveries: DeliveryTimings
  readonly notices: MailTimings
  readonly jobMails: MailTimings
  readonly schedules: ScheduleTimings
  readonly http: HttpTimings
  /** Interval of the retention job, ms. */
  readonly retentionEveryMs: number
}

export const DEFAULT_TIMINGS: Timings = {
  queue: DEFAULT_QUEUE_TIMINGS,
  cluster: DEFAULT_CLUSTER_TIMINGS,
  rates: DEFAULT_RATE_TIMINGS,
  catchAll: DEFAULT_WRITER_TIMINGS,
  pool: DEFAULT_POOL_TIMINGS,
  worker: DEFAULT_WORKER_TIMINGS,
  deliveries: DEFAULT_DELIVERY_TIMINGS,
  notices: DEFAULT_ALERT_TIMINGS,
  jobMails: DEFAULT_JOB_MAIL_TIMINGS,
  schedules: DEFAULT_SCHEDULE_TIMINGS,
  http: DEFAULT_HTTP_TIMINGS,
  retentionEveryMs: HOUR,
}

/** Throws if intervals are inconsistent. */
export function checkTimings({ queue, cluster, rates }: Timings): void {
  checkQueueTimings(queue)
  checkClusterTimings(cluster)
  checkRateTimings(rates)
}
