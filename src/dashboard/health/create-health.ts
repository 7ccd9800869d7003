import { stat } from 'node:fs/promises'
import { html } from 'hono/html'
import { listMembers } from '../../cluster/members.ts'
import { readRates } from '../../cluster/rate-control/rows.ts'
import type { Database } from '../../db/database.ts'
import { fileOf } from '../../db/database-url.ts'
import type { DoctorCache } from '../../doctor/doctor-cache.ts'
import type { MachineStatus } from '../../engine/machine-status.ts'
import { isDomainKey } from '../../engine/probe/domain-blocks.ts'
import type { EgressPool } from '../../engine/probe/egress-pool.ts'
import type { EgressProber } from '../../engine/probe/egress-prober.ts'
import type { RateController } from '../../engine/rate-control/controller.ts'
import type { ReadDisk } from '../../jobs/import/store-upload.ts'
import type { JobWorker } from '../../jobs/worker/worker-deps.ts'
import { bytesOnServer } from '../../maintenance/inspect.ts'
import { type Clock, SECOND } from '../../platform/clock.ts'
import { formatNumber } from '../../platform/format.ts'
import { countPendingAlerts } from '../../webhooks/alert-store.ts'
import { countOpenDeliveries } from '../../webhooks/delivery-store.ts'
import type { Deliveries } from '../../webhooks/start-deliveries.ts'
import type { Html } from '../page/html.ts'
import { time } from '../page/text.ts'
import type {
  EgressStatus,
  HealthSource,
  OperatorStatus,
  OperatorsStatus,
  PeerBlock,
  ProcessStatus,
} from './source.ts'

type HealthDeps = OperatorsDeps & {
  readonly clock: Clock
  readonly database: Database
  readonly worker: Pick<JobWorker, 'status'>
  readonly deliveries: Pick<Deliveries, 'status'>
  readonly doctorCache: DoctorCache
  readonly machine: () => MachineStatus
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

/** Creates the data source of the Health page. */
export function createHealth(deps: HealthDeps): HealthSource {
  const { clock, database, worker, deliveries, doctorCache, machine, settings } = deps
  const operators = () => operatorsStatus(deps)
  const startedAt = clock.monotonicNow()
  return {
    operators,
    machine,
    alert: createAlerts(operators, clock),
    doctorChecks: () => doctorCache.read(),
    rerunChecks: () => doctorCache.rerun(),
    queue: () => worker.status(),
    workers: async () => ({
      concurrency: settings.concurrency,
      requestsInFlight: deliveries.status().inFlight,
      deliveriesOpen: await countOpenDeliveries(database),
      noticesOpen: await countPendingAlerts(database),
    }),
    members: () => listMembers(database),
    peerBlocks: () => findPeerBlocks(database, deps),
    process: () => processStatus(deps, clock.monotonicNow() - startedAt),
  }
}

async function processStatus(deps: HealthDeps, upMs: number): Promise<ProcessStatus> {
  const { version, databaseUrl } = deps.settings
  return {
    version,
    upMs,
    memoryBytes: deps.memoryBytes(),
    databaseBytes:
      (await bytesOnServer(deps.database)) ?? (await databaseBytes(fileOf(databaseUrl))),
    freeBytes: (await deps.disk()).freeBytes,
  }
}

/** Returns the size of the database file and its write-ahead log; null if it cannot be read. */
async function databaseBytes(file: string): Promise<number | null> {
  const sizeOf = (path: string) =>
    stat(path).then(
      ({ size }) => size,
      () => null,
    )
  const [main, wal] = await Promise.all([sizeOf(file), sizeOf(`${file}-wal`)])
  return main === null ? null : main + (wal ?? 0)
}

/** Cache lifetime of the alert, which every page of an admin requests. */
const REPORT_TTL_MS = 5 * SECOND
/** About one connection's worth of addresses; fewer do not justify an alert on every page. */
const SKIPPED_MIN = 20

/**
 * Creates the alert shown on every page of an admin: no mail server can be reached, or an operator
 * blocks this service. It returns null if there is neither.
 */
export function createAlerts(operators: () => OperatorsStatus, clock: Clock): () => Html | null {
  let reported: Html | null = null
  let reportedAt = Number.NEGATIVE_INFINITY
  return () => {
    if (clock.monotonicNow() - reportedAt < REPORT_TTL_MS) return reported
    reportedAt = clock.monotonicNow()
    reported = alertsFrom(operators(), clock.now())
    return reported
  }
}

function alertsFrom({ egresses, shown }: OperatorsStatus, now: number): Html | null {
  const closed = egresses.find(({ closedSince }) => closedSince !== null)
  if (closed !== undefined) return unreachableAlert(closed, egresses.length > 1)
  const blocking = shown.find(
    one => isBlocked(one, now) && (one.refusal?.skipped ?? 0) >= SKIPPED_MIN,
  )
  return blocking === undefined ? null : blockedAlert(blocking)
}

function unreachableAlert({ name, closedSince, port }: EgressStatus, isOneOfMany: boolean): Html {
  const source = isOneOfMany ? ` from the egress "${name}"` : ''
  return html`No mail server has been reachable on port ${port}${source} since ${time(closedSince)}. ${MORE}`
}

const blockedAlert = ({ title, refusal }: OperatorStatus): Html =>
  html`${title} has been blocking this service since ${time(refusal?.since ?? null)}: ${formatNumber(refusal?.skipped ?? 0)} addresses are unknown because of it. ${MORE}`

const MORE = html`See <a href="/doctor">Health</a> for the cause and the fix.`

/**
 * Returns the blocks of egresses that only other processes use, read from the shared rate state.
 */
export async function findPeerBlocks(
  database: Database,
  { egressPool, titleOf }: Pick<OperatorsDeps, 'egressPool' | 'titleOf'>,
): Promise<readonly PeerBlock[]> {
  if (database.dialect === 'sqlite') return []
  const { now, records } = await readRates(database, { known: [], refusedSince: 0 })
  return records.flatMap(({ operator, egress, stored }) => {
    const { refusal } = stored.state
    if (refusal === null || refusal.until <= now || egressPool.names.includes(egress)) return []
    if (isDomainKey(operator)) return []
    const { at: since, until, answer } = refusal
    return [{ title: titleOf(operator), egress, since, until, answer }]
  })
}

type OperatorsDeps = {
  readonly egressPool: EgressPool
  readonly smtpPort: number
  /** Returns the display name of an operator. */
  readonly titleOf: (operator: string) => string
}

/** A busy service has probed thousands of operators; more than this does not fit a page. */
export const OPERATORS_SHOWN = 50

/** Returns the operators probed recently: those with problems first, then the busiest. */
export function operatorsStatus({ egressPool, smtpPort, titleOf }: OperatorsDeps): OperatorsStatus {
  const probers = egressPool.names.map(name => egressPool.prober(name))
  const { first, left } = firstOf(probers)
  return {
    egresses: probers.map(({ egressName: name, closedSince }) => {
      return { name, closedSince, port: smtpPort }
    }),
    shown: first.map(({ operator, rate, egress }) => ({
      ...rate.status(operator),
      egress,
      title: titleOf(operator),
      othersAsk: egressPool.availableFor(operator).some(name => name !== egress),
    })),
    left,
  }
}

type Ranked = {
  readonly urgency: number
  readonly operator: string
  readonly rate: RateController
  readonly egress: string
}

/** Selects the most urgent in one pass: each egress may have 20,000 operators, too many to sort. */
function firstOf(probers: readonly EgressProber[]): { first: readonly Ranked[]; left: number } {
  const first: Ranked[] = []
  let left = 0
  for (const prober of probers) {
    for (const [operator, rate] of prober.rateControllers()) {
      const { urgency } = rate
      if (first.length === OPERATORS_SHOWN && urgency <= (first.at(-1)?.urgency ?? 0)) {
        left++
        continue
      }
      const at = first.findIndex(one => one.urgency < urgency)
      const ranked = { urgency, operator, rate, egress: prober.egressName }
      first.splice(at === -1 ? first.length : at, 0, ranked)
      if (first.length > OPERATORS_SHOWN) left += first.splice(OPERATORS_SHOWN).length
    }
  }
  return { first, left }
}

/** Returns whether a block is active and no other egress takes over. */
const isBlocked = ({ refusal, othersAsk }: OperatorStatus, now: number): boolean =>
  refusal !== null && refusal.until > now && !othersAsk
