import type { IpLimits, Plan } from '../account/plan.ts'
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Priority } from '../base/priority.ts'
import type { Random } from '../base/random.ts'
import type { SecretBox } from '../base/seal.ts'
import type { Resolver } from '../dns/resolver.ts'
import type { Engine } from '../engine/engine.ts'
import type { Database } from '../store/database.ts'
import type { LimitStore } from '../store/limit/limits.ts'
import type { UsageLedger } from '../work/books/books.ts'
import type { Deliveries } from '../work/deliver/deliveries.ts'
import type { WebhookTransport } from '../work/post/post.ts'
import type { ReadDisk } from '../work/upload/disk.ts'
import type { JobWorker } from '../work/worker.ts'
import type { HttpTimings } from './http-timings.ts'

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
