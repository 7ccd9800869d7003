import { stat } from 'node:fs/promises'
import { liveMembers } from '../../cluster/members.ts'
import type { Database } from '../../db/database.ts'
import { type DoctorDeps, runChecks } from '../../doctor/doctor.ts'
import type { ReadDisk } from '../../jobs/upload/disk.ts'
import type { JobWorker } from '../../jobs/worker/worker.ts'
import { bytesOnServer } from '../../maintenance/size.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Log } from '../../platform/log.ts'
import { countNotices } from '../../webhooks/alerts/alert-store.ts'
import type { Deliveries } from '../../webhooks/delivery/deliveries.ts'
import { countOpenDeliveries } from '../../webhooks/delivery-store.ts'
import { createAlerts } from './alerts.ts'
import { createDoctorCache } from './doctor-cache.ts'
import { type OperatorsDeps, operatorsStatus } from './operators.ts'
import { blocksElsewhere } from './peers.ts'
import type { HealthSource, ProcessStatus } from './source.ts'

export type HealthDeps = OperatorsDeps & {
  readonly clock: Clock
  readonly log: Log
  readonly database: Database
  readonly worker: Pick<JobWorker, 'status'>
  readonly deliveries: Pick<Deliveries, 'status'>
  /** Called each time the doctor comes: he remembers no answers of the DNS from the last time. */
  readonly doctor: () => DoctorDeps & { close(): void }
  readonly memoryBytes: () => number
  /** The disk of the data directory. */
  readonly disk: ReadDisk
  readonly settings: {
    readonly version: string
    readonly concurrency: number
    /** `sqlite:FILE` */
    readonly databaseUrl: string
  }
}

/** Looks at the service for whoever runs it. */
export function createHealth(deps: HealthDeps): HealthSource & { close(): Promise<void> } {
  const { clock, log, database, worker, deliveries, settings } = deps
  const examiner = createDoctorCache({
    ...{ clock, log },
    async *examine(signal) {
      const doctor = deps.doctor()
      try {
        yield* runChecks(doctor, signal)
      } finally {
        doctor.close()
      }
    },
  })
  const operators = () => operatorsStatus(deps)
  const startedAt = clock.monotonicNow()
  return {
    ...{ operators, trouble: createAlerts(operators, clock) },
    examine: () => examiner.look(),
    rerunChecks: () => examiner.again(),
    queue: () => worker.status(),
    workers: async () => ({
      concurrency: settings.concurrency,
      requestsInFlight: deliveries.status().underWay,
      deliveriesOpen: await countOpenDeliveries(database),
      noticesOpen: await countNotices(database),
    }),
    members: () => liveMembers(database),
    elsewhere: () => blocksElsewhere(database, deps),
    process: () => processStatus(deps, clock.monotonicNow() - startedAt),
    close: () => examiner.close(),
  }
}

async function processStatus(deps: HealthDeps, upMs: number): Promise<ProcessStatus> {
  const { version, databaseUrl } = deps.settings
  return {
    ...{ version, upMs, memoryBytes: deps.memoryBytes() },
    databaseBytes:
      (await bytesOnServer(deps.database)) ??
      (await databaseBytes(databaseUrl.replace(/^sqlite:/, ''))),
    freeBytes: (await deps.disk()).freeBytes,
  }
}

/** The file, and the journal that is moved into it from time to time. */
async function databaseBytes(file: string): Promise<number | null> {
  const sizeOf = (path: string) =>
    stat(path).then(
      ({ size }) => size,
      () => null,
    )
  const [whole, journal] = await Promise.all([sizeOf(file), sizeOf(`${file}-wal`)])
  return whole === null ? null : whole + (journal ?? 0)
}
