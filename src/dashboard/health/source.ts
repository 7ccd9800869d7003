import type { Member } from '../../cluster/members.ts'
import type { DoctorChecks } from '../../doctor/doctor-cache.ts'
import type { MachineStatus } from '../../engine/machine-status.ts'
import type { RateStatus } from '../../engine/rate-control/controller.ts'
import type { RecipientOutcome } from '../../engine/smtp/classify-reply.ts'
import type { Html } from '../page/html.ts'

/** Data of the Health page. Implementations do no work until a method is called. */
export interface HealthSource {
  /** Returns the latest doctor checks and refreshes them in the background if they are stale. */
  doctorChecks(): DoctorChecks
  /** Starts the doctor checks, unless they are running or started within the last minute. */
  rerunChecks(): void
  /** Returns whether this machine can verify addresses. Cheap to call. */
  machine(): MachineStatus
  /** Returns the operators probed recently: those with problems first, then the busiest. */
  operators(): OperatorsStatus
  queue(): QueueStatus
  workers(): Promise<WorkerStatus>
  /** Returns the processes that share the database; empty on SQLite. */
  members(): Promise<readonly Member[]>
  /** Returns blocks of egresses of other processes; those of this process are in `operators`. */
  peerBlocks(): Promise<readonly PeerBlock[]>
  process(): Promise<ProcessStatus>
  /** Returns the alert for every page of an admin, null if there is none. Cheap to call. */
  alert(): Html | null
}

export type OperatorsStatus = {
  readonly egresses: readonly EgressStatus[]
  readonly shown: readonly OperatorStatus[]
  /** Number of further operators probed recently. */
  readonly left: number
}

/** Whether mail servers are reachable from one egress. */
export type EgressStatus = {
  readonly name: string
  /** Since when no mail server can be reached, epoch ms; null if they can. */
  readonly closedSince: number | null
  readonly port: number
}

/** Rate control state of one operator at one egress. */
export type OperatorStatus = RateStatus & {
  /** Display name, such as `Outlook.com`. */
  readonly title: string
  readonly egress: string
  /** Whether another egress probes it during a block. */
  readonly othersAsk: boolean
}

/** Times are epoch ms. */
export type PeerBlock = {
  /** Display name, such as `Outlook.com`. */
  readonly title: string
  readonly egress: string
  readonly since: number
  readonly until: number
  /** Its reply: untrusted text, not sanitized. */
  readonly answer: RecipientOutcome
}

type QueueStatus = {
  /** Active jobs, as the metric `ev_jobs`. */
  readonly jobs: number
  /** Queue tasks, as `ev_queue_entries`: one per allowed connection and per list being imported. */
  readonly waiting: number
  readonly running: number
}

type WorkerStatus = {
  /** Maximum number of concurrent connections of lists to mail servers. */
  readonly concurrency: number
  /** Webhook requests in flight. */
  readonly requestsInFlight: number
  /** As the metric `ev_webhook_deliveries_open`. */
  readonly deliveriesOpen: number
  /** Alert emails about webhooks that are not sent yet. */
  readonly noticesOpen: number
}

export type ProcessStatus = {
  readonly version: string
  readonly upMs: number
  readonly memoryBytes: number
  /** Size of the database with its write-ahead log; null if unknown. */
  readonly databaseBytes: number | null
  /** Free space on the disk of the data directory; null if unknown. */
  readonly freeBytes: number | null
}
