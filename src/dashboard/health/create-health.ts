import { stat } from 'node:fs/promises'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { type DoctorWorld, examine } from '../../doctor/doctor.ts'
import { bytesOnServer } from '../../store/care/size.ts'
import { liveMembers } from '../../store/cluster/members.ts'
import type { Database } from '../../store/database.ts'
import { countOpenDeliveries } from '../../store/event/deliveries.ts'
import { countNotices } from '../../store/event/notices.ts'
import type { Deliveries } from '../../work/deliver/deliveries.ts'
import type { ReadDisk } from '../../work/upload/disk.ts'
import type { JobWorker } from '../../work/worker.ts'
import { refusalsElsewhere } from './elsewhere.ts'
import { createExaminer } from './examiner.ts'
import { type OperatorsParts, operatorsStatus } from './operator/operators.ts'
import type { HealthSource, ProcessStatus } from './source.ts'
import { createTrouble } from './trouble.ts'

export type HealthParts = OperatorsParts & {
  readonly clock: Clock
  readonly log: Log
  readonly database: Database
  readonly worker: Pick<JobWorker, 'status'>
  readonly deliveries: Pick<Deliveries, 'status'>
  /** Called each time the doctor comes: he remembers no answers of the DNS from the last time. */
  readonly doctor: () => DoctorWorld & { close(): void }
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
export function createHealth(parts: HealthParts): HealthSource & { close(): Promise<void> } {
  const { clock, log, database, worker, deliveries, settings } = parts
  const examiner = createExaminer({
    ...{ clock, log },
    async *examine(signal) {
      const doctor = parts.doctor()
      try {
        yield* examine(doctor, signal)
      } finally {
        doctor.close()
      }
    },
  })
  const operators = () => operatorsStatus(parts)
  const startedAt = clock.ticks()
  return {
    ...{ operators, trouble: createTrouble(operators, clock) },
    examine: () => examiner.look(),
    examineAgain: () => examiner.again(),
    queue: () => worker.status(),
    workers: async () => ({
      concurrency: settings.concurrency,
      requestsUnderWay: deliveries.status().underWay,
      deliveriesOpen: await countOpenDeliveries(database),
      noticesOpen: await countNotices(database),
    }),
    members: () => liveMembers(database),
    elsewhere: () => refusalsElsewhere(database, parts),
    process: () => processStatus(parts, clock.ticks() - startedAt),
    close: () => examiner.close(),
  }
}

async function processStatus(parts: HealthParts, upMs: number): Promise<ProcessStatus> {
  const { version, databaseUrl } = parts.settings
  return {
    ...{ version, upMs, memoryBytes: parts.memoryBytes() },
    databaseBytes:
      (await bytesOnServer(parts.database)) ??
      (await databaseBytes(databaseUrl.replace(/^sqlite:/, ''))),
    freeBytes: (await parts.disk()).freeBytes,
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
