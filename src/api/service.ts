import type { UsageLedger } from '../accounts/credits/usage-ledger.ts'
import type { IpLimits, Plan } from '../accounts/plan.ts'
import type { LimitStore } from '../accounts/rate-limits/types.ts'
import type { Database } from '../db/database.ts'
import type { Resolver } from '../engine/dns/resolver.ts'
import type { Engine } from '../engine/engine.ts'
import type { ReadDisk } from '../jobs/upload/store-upload.ts'
import type { JobWorker } from '../jobs/worker/start-worker.ts'
import type { Clock } from '../platform/clock.ts'
import type { Log } from '../platform/log.ts'
import type { Priority } from '../platform/priority.ts'
import type { Random } from '../platform/random.ts'
import type { SecretBox } from '../platform/secret-box.ts'
import type { Deliveries } from '../webhooks/delivery/start-deliveries.ts'
import type { WebhookTransport } from '../webhooks/transport/transport.ts'
import type { HttpTimings } from './timings.ts'

/** What the paths of the service work with; built in `wire-service.ts`, and by tests with fakes. */
export type Service = {
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly database: Database
  /** For single verifications and short lists; knows no sandbox. */
  readonly engine: Engine
  readonly worker: JobWorker
  /** Lets jobs give way to requests. */
  readonly priority: Priority
  /** History, usage and credits. */
  readonly ledger: UsageLedger
  readonly limits: LimitStore
  readonly secretBox: SecretBox
  readonly resolver: Resolver
  /** For the one request that tries an endpoint out. */
  readonly transport: WebhookTransport
  /** The disk of the data directory. */
  readonly disk: ReadDisk
  readonly deliveries: Pick<Deliveries, 'wake' | 'status'>
  readonly settings: ServiceSettings
  /** True from the first signal to stop: nothing new is begun. */
  readonly isStopping: () => boolean
  readonly timings?: HttpTimings
}

export type ServiceSettings = {
  /** Without a slash at its end. */
  readonly baseUrl: string
  readonly version: string
  /** By name. */
  readonly plans: ReadonlyMap<string, Plan>
  readonly ipLimits: IpLimits
  /** False: no rate limits (`--limits off`); credits still count. */
  readonly limits: boolean
  /** Ranges of proxies whose X-Forwarded-For is believed. */
  readonly trustProxy: readonly string[]
  /** Non-public addresses that webhooks may name. */
  readonly webhookAllowRanges: readonly string[]
  readonly metricsToken: string | null
  readonly dataDir: string
}
