import type { Member } from '../../cluster/members.ts'
import type { Check } from '../../doctor/doctor.ts'
import type { RateStatus } from '../../engine/rate-control/controller.ts'
import type { RecipientOutcome } from '../../engine/smtp/classify-reply.ts'
import type { Html } from '../page/html.ts'

/** What whoever runs the service should know; built in `wire-service.ts`. Nothing of it is looked up before it is asked for. */
export interface HealthSource {
  /** What the doctor found. Where that is old, he begins anew behind it; who looks never waits. */
  examine(): Examination
  /** The doctor begins anew, unless he did within the last minute or is at it. */
  rerunChecks(): void
  /** Operators that were asked lately: those in trouble first, then the busiest. */
  operators(): OperatorsStatus
  queue(): QueueStatus
  workers(): Promise<WorkerStatus>
  /** The processes that share the database; none where it cannot be shared. */
  members(): Promise<readonly Member[]>
  /** Operators that refuse egresses of other processes alone; those of this one are among `operators`. */
  elsewhere(): Promise<readonly PeerBlock[]>
  process(): Promise<ProcessStatus>
  /** A sentence for every page of the operator: what is in trouble now; null: nothing. Cheap. */
  trouble(): Html | null
}

/** What the doctor found. */
export type Examination = {
  /** Of the last time that he came to an end; the first time, as far as he is. */
  readonly checks: readonly Check[]
  /** When he came to an end, epoch ms; null: not yet. */
  readonly at: number | null
  readonly isRunning: boolean
  /** Why he did not come to an end the last time; null: he did. */
  readonly fault: string | null
}

export type OperatorsStatus = {
  readonly egresses: readonly EgressStatus[]
  readonly shown: readonly OperatorStatus[]
  /** How many more were asked lately. */
  readonly left: number
}

/** Whether one source identity reaches mail servers at all. */
export type EgressStatus = {
  readonly name: string
  /** Since when no mail server can be reached, epoch ms; null: nobody says so. */
  readonly closedSince: number | null
  readonly port: number
}

/** How one operator is asked by one egress. */
export type OperatorStatus = RateStatus & {
  /** For people: `Outlook.com`. */
  readonly title: string
  readonly egress: string
  /** Another egress asks it meanwhile. */
  readonly othersAsk: boolean
}

/** Times are epoch ms. */
export type PeerBlock = {
  /** For people: `Outlook.com`. */
  readonly title: string
  readonly egress: string
  readonly since: number
  readonly until: number
  /** What it said, foreign and unclean. */
  readonly answer: RecipientOutcome
}

export type QueueStatus = {
  /** Jobs that are worked on, as `ev_jobs`. */
  readonly jobs: number
  /** Entries of the queue, as `ev_queue_entries`: one for each connection that an operator allows, and for each list that is read. */
  readonly waiting: number
  readonly running: number
}

export type WorkerStatus = {
  /** Connections to mail servers that lists may have open at the same time. */
  readonly concurrency: number
  /** As `ev_webhook_requests_under_way`. */
  readonly requestsInFlight: number
  /** As `ev_webhook_deliveries_open`. */
  readonly deliveriesOpen: number
  /** Notices about webhooks that are to be sent. */
  readonly noticesOpen: number
}

export type ProcessStatus = {
  readonly version: string
  readonly upMs: number
  readonly memoryBytes: number
  /** The database with what is not yet moved into it; null where it cannot be seen. */
  readonly databaseBytes: number | null
  /** Free on the disk of the data directory; null where it cannot be seen. */
  readonly freeBytes: number | null
}
