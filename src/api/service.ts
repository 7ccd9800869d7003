import type { UsageLedger } from '../accounts/credits/usage-ledger.ts'
import type { IpLimits, Plan } from '../accounts/plan.ts'
import type { LimitStore } from '../accounts/rate-limits/windows.ts'
import type { Database } from '../db/database.ts'
import type { Resolver } from '../engine/dns/resolver.ts'
import type { Engine } from '../engine/engine.ts'
import type { MachineStatus } from '../engine/machine-status.ts'
import type { ActionPolicy } from '../engine/verdict/action.ts'
import type { FeedbackKnowledge } from '../feedback/knowledge.ts'
import type { ExternalAges } from '../jobs/import/external-results.ts'
import type { ReadDisk } from '../jobs/import/store-upload.ts'
import type { JobWorker } from '../jobs/worker/worker-deps.ts'
import { DEFAULT_MCP_TIMINGS, type McpTimings } from '../mcp/backend.ts'
import type { Download } from '../outbound/download.ts'
import { type Clock, SECOND } from '../platform/clock.ts'
import type { Log } from '../platform/log.ts'
import type { Priority } from '../platform/priority.ts'
import type { Random } from '../platform/random.ts'
import type { SecretBox } from '../platform/secret-box.ts'
import type { Deliveries } from '../webhooks/start-deliveries.ts'
import type { WebhookTransport } from '../webhooks/transport.ts'

/** What the process supplies to the API; built in `compose/service.ts`, and by tests with fakes. */
export type ServiceDeps = {
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly database: Database
  /** For single verifications and short lists; the sandbox is handled above it. */
  readonly engine: Engine
  /** Applies the feedback of accounts to results. */
  readonly feedback: FeedbackKnowledge
  readonly worker: JobWorker
  /** Gives requests priority over jobs. */
  readonly priority: Priority
  /** History, usage and credits. */
  readonly ledger: UsageLedger
  readonly limits: LimitStore
  readonly secretBox: SecretBox
  readonly resolver: Resolver
  /** Downloads lists from URLs. */
  readonly download: Download
  /** Sends test events to webhook endpoints. */
  readonly transport: WebhookTransport
  /** Reads whether this machine can verify addresses. */
  readonly machine: () => MachineStatus
  /** Reads the free space of the disk of the data directory. */
  readonly disk: ReadDisk
  readonly deliveries: Pick<Deliveries, 'wake' | 'status'>
  readonly settings: ServiceSettings
  /** True from the first signal to stop: no new work is accepted. */
  readonly isStopping: () => boolean
  readonly timings?: HttpTimings
}

export type ServiceSettings = {
  /** Without a trailing slash. */
  readonly baseUrl: string
  readonly version: string
  readonly plans: ReadonlyMap<string, Plan>
  readonly ipLimits: IpLimits
  /** False disables rate limits (`--limits off`); credits still apply. */
  readonly limits: boolean
  /** Ranges of proxies with a trusted X-Forwarded-For. */
  readonly trustProxy: readonly string[]
  /**
   * Whether a request from a loopback address is from this machine. With a public URL and without
   * `trustProxy` it can also be from a proxy that sends none of its headers.
   */
  readonly trustLoopback: boolean
  /** Non-public ranges that webhook URLs may use. */
  readonly webhookAllowRanges: readonly string[]
  readonly metricsToken: string | null
  /** Whether the API of Reacher is served too. */
  readonly reacherApi: boolean
  readonly dataDir: string
  /** Age of the results of other services that rows may keep. */
  readonly externalAges: ExternalAges
  /** Decides about the actions of results for accounts without a policy. */
  readonly actionPolicy: ActionPolicy
}

/** Intervals of the API, in ms. */
export type HttpTimings = {
  /** Poll interval of a request that waits for a job: other processes may change it. */
  readonly pollMs: number
  /** Minimum interval of progress events; two a second are as many as a person reads. */
  readonly progressMs: number
  readonly mcp: McpTimings
}

export const DEFAULT_HTTP_TIMINGS: HttpTimings = {
  pollMs: SECOND,
  progressMs: SECOND / 2,
  mcp: DEFAULT_MCP_TIMINGS,
}

/** Dependencies of health and metrics: those of `ev serve`, or of `ev worker`, which has no API. */
export type MonitoringDeps = Pick<
  ServiceDeps,
  'clock' | 'random' | 'log' | 'database' | 'engine' | 'worker' | 'machine' | 'disk' | 'isStopping'
> & {
  readonly settings: Pick<ServiceSettings, 'baseUrl' | 'version' | 'trustProxy' | 'metricsToken'>
}
