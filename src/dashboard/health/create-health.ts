import { stat } from 'node:fs/promises'
import { html } from 'hono/html'
import { liveMembers } from '../../cluster/members.ts'
import { readRates } from '../../cluster/rate-control/rows.ts'
import type { Database } from '../../db/database.ts'
import { type Check, type DoctorDeps, runChecks } from '../../doctor/doctor.ts'
import { isDomainKey } from '../../engine/probe/domain-blocks.ts'
import type { EgressPool } from '../../engine/probe/egress-pool.ts'
import type { EgressProber } from '../../engine/probe/egress-prober.ts'
import type { RateController } from '../../engine/rate-control/controller.ts'
import type { ReadDisk } from '../../jobs/upload/store-upload.ts'
import type { JobWorker } from '../../jobs/worker/start-worker.ts'
import { bytesOnServer } from '../../maintenance/size.ts'
import { type Clock, MINUTE, SECOND } from '../../platform/clock.ts'
import { errorMessage } from '../../platform/error.ts'
import { formatNumber } from '../../platform/format.ts'
import type { Log } from '../../platform/log.ts'
import { countNotices } from '../../webhooks/alerts/alert-store.ts'
import type { Deliveries } from '../../webhooks/delivery/start-deliveries.ts'
import { countOpenDeliveries } from '../../webhooks/delivery-store.ts'
import type { Html } from '../page/html.ts'
import { time } from '../page/text.ts'
import type {
  EgressStatus,
  Examination,
  HealthSource,
  OperatorStatus,
  OperatorsStatus,
  PeerBlock,
  ProcessStatus,
} from './source.ts'

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

/** Every page of the operator asks; a sentence that comes so much late is early enough. */
const REPORT_TTL_MS = 5 * SECOND
/** Fewer addresses turned away are no reason to tell it on every page: it is a connection's worth. */
const TURNED_AWAY_MIN = 20

/** What stands on every page of the operator: that nobody can be reached, or that many addresses are not asked for; null: nothing. */
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
  if (closed !== undefined) return closedSentence(closed, egresses.length > 1)
  const refusing = shown.find(
    one => isBlocked(one, now) && (one.refusal?.skipped ?? 0) >= TURNED_AWAY_MIN,
  )
  return refusing === undefined ? null : refusedSentence(refusing)
}

function closedSentence({ name, closedSince, port }: EgressStatus, isOneOfMany: boolean): Html {
  const whence = isOneOfMany ? `from the egress “${name}”` : 'from here'
  return html`No mail server can be reached on port ${port} ${whence} since ${time(closedSince)}. ${MORE}`
}

const refusedSentence = ({ title, refusal }: OperatorStatus): Html =>
  html`${title} refuses us since ${time(refusal?.since ?? null)}: ${formatNumber(refusal?.skipped ?? 0)} addresses ended as unknown since then. ${MORE}`

const MORE = html`<a href="/doctor">Health</a> says why, and what to do.`

type DoctorCacheDeps = {
  readonly clock: Clock
  readonly log: Log
  /** The doctor at work; an abort ends it soon. */
  readonly examine: (signal: AbortSignal) => AsyncIterable<Check>
}

/** Has the doctor come when somebody looks. */
interface DoctorCache {
  look(): Examination
  again(): void
  /** Ends what is under way; nothing begins any more. */
  close(): Promise<void>
}

/** What was found longer ago is looked for anew. */
const OLD_MS = 10 * MINUTE
/** Mail servers and block lists are asked each time, and should not be asked for a click. */
const BEGIN_EVERY_MS = MINUTE

/** One run at a time, behind whoever looks. */
export function createDoctorCache({ clock, log, examine }: DoctorCacheDeps): DoctorCache {
  const closing = new AbortController()
  let known: Examination = { checks: [], at: null, isRunning: false, fault: null }
  let startedAt = Number.NEGATIVE_INFINITY
  let endedAt = Number.NEGATIVE_INFINITY
  let running: Promise<void> = Promise.resolve()

  const run = async () => {
    const checks: Check[] = []
    const isFirst = known.at === null
    try {
      for await (const check of examine(closing.signal)) {
        checks.push(check)
        if (isFirst) known = { ...known, checks: [...checks] }
      }
      endedAt = clock.monotonicNow()
      known = { checks, at: clock.now(), isRunning: false, fault: null }
    } catch (error) {
      log.error('the examination of this machine failed', { why: errorMessage(error) })
      known = { ...known, isRunning: false, fault: errorMessage(error) }
    }
  }
  const again = () => {
    const isSoon = clock.monotonicNow() - startedAt < BEGIN_EVERY_MS
    if (known.isRunning || isSoon || closing.signal.aborted) return
    startedAt = clock.monotonicNow()
    known = { ...known, isRunning: true }
    running = run()
  }
  return {
    again,
    look() {
      if (clock.monotonicNow() - endedAt > OLD_MS) again()
      return known
    },
    close() {
      closing.abort()
      return running
    },
  }
}

/** Operators that refuse egresses by which this process does not ask; those of other processes, which have no page. */
export async function blocksElsewhere(
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
  /** What people call an operator. */
  readonly titleOf: (operator: string) => string
}

/** As many as somebody reads; a service that verifies much has asked thousands. */
export const OPERATORS_SHOWN = 50

/** The operators that were asked lately: those in trouble first, then the busiest. */
export function operatorsStatus({ egressPool, smtpPort, titleOf }: OperatorsDeps): OperatorsStatus {
  const probers = egressPool.names.map(name => egressPool.prober(name))
  const { first, left } = firstOf(probers)
  return {
    egresses: probers.map(({ egressName: name, closedSince }) => {
      return { name, closedSince, port: smtpPort }
    }),
    shown: first.map(({ operator, rate, egress }) => ({
      ...rate.status(operator),
      ...{ egress, title: titleOf(operator) },
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

/** There may be 20,000 of each egress, which are gone through in passing: no list of all is made or sorted. */
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

/** A refusal that still holds, and that nobody else asks around. */
const isBlocked = ({ refusal, othersAsk }: OperatorStatus, now: number): boolean =>
  refusal !== null && refusal.until > now && !othersAsk
