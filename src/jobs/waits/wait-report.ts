import { activeMembers } from '../../cluster/membership.ts'
import { readProbeStops } from '../../cluster/rate-control/rows.ts'
import type { Database } from '../../db/database.ts'
import type { Engine } from '../../engine/engine.ts'
import type { ProbeStop } from '../../engine/rate-control/rules.ts'
import type { FailedLookups } from '../../engine/scheduler/scheduler.ts'
import { isoTime, pluralize } from '../../platform/format.ts'
import { sanitizeText, toSentence } from '../../platform/text.ts'
import { jobsWaitingFor } from '../item-claims.ts'
import { type Job, parseJobOptions } from '../job-store.ts'
import type { WaitingInMemory } from '../worker/worker-deps.ts'
import { type WaitingRows, waitingRows } from './backlog.ts'
import { probingMs, typicalMs } from './estimate.ts'

/** Why rows of a job wait. */
export const WAIT_REASONS = [
  ...(['dns_check', 'no_worker', 'queued', 'refused', 'throttled', 'unknown_users'] as const),
  ...(['retrying', 'postponed', 'dns_retry', 'rate_limited'] as const),
]

type WaitReason = (typeof WAIT_REASONS)[number]

/** Rows of a job that wait for the same cause. */
export type Wait = {
  /** Null if the cause is not an operator. */
  readonly operator: string | null
  readonly rows: number
  readonly reason: WaitReason
  /** Earliest time of the next attempt, epoch ms; null if it is not known. */
  readonly until: number | null
  /** Number of other lists with rows for this operator, which take turns with this one. */
  readonly otherLists: number
  /** The failure of the DNS check. */
  readonly failure?: string
}

/** Describes a wait in one sentence; `timeText` formats its time. */
export function describeWait(wait: Wait, timeText: (at: number) => string = isoTime): string {
  const time = wait.until === null ? '' : timeText(wait.until)
  const cause = describeCause(wait).replace('{time}', time)
  if (wait.reason === 'dns_retry') return `${pluralize(wait.rows, 'address')}: ${cause}`
  if (wait.operator === null) return cause
  return `${pluralize(wait.rows, 'address')} at ${sanitizeText(wait.operator)}: ${cause}`
}

function describeCause({ reason, failure, otherLists }: Wait): string {
  if (reason === 'dns_check' && failure !== undefined) {
    return `${toSentence(failure)} Next check at {time}.`
  }
  if (reason !== 'rate_limited' || otherLists === 0) return CAUSES[reason]
  return `they are probed at the rate that the provider accepts, in turn with ${pluralize(otherLists, 'other list')}.`
}

const CAUSES: Readonly<Record<WaitReason, string>> = {
  dns_check: 'The DNS server fails its check. Next check at {time}.',
  no_worker: 'No worker is running. The list continues when one starts.',
  queued: 'The list starts when a worker is free.',
  refused: 'the provider blocks this service. Next attempt at {time}.',
  throttled: 'the provider asked to slow down. Next attempt at {time}.',
  unknown_users:
    'the provider rejected many recipients in a row as unknown. Next attempt at {time}.',
  retrying: 'the mail server deferred them. Next attempt at {time}.',
  postponed: 'the next attempt is due at {time}.',
  dns_retry: 'the lookup of their domains failed. Next attempt at {time}.',
  rate_limited: 'they are probed at the rate that the provider accepts.',
}

/** The outlook of an unfinished job. */
export type WaitReport = {
  /** Rows that wait until a known time: for a retry, or until a pause or a block ends. */
  readonly waitingRows: number
  /** Estimated time until they have their results, in ms; 0 if there are none. */
  readonly waitingMs: number
  /** Estimated time for the other rows at typical rates, in ms; null if it is not known. */
  readonly movingMs: number | null
  /** Whether no row has a known end, as while no worker is running. */
  readonly isOpenEnded: boolean
  /** Why rows wait, the most important cause first. */
  readonly waits: readonly Wait[]
}

/** The report of a job none of whose rows wait, as far as is known. */
export const NO_WAITS: WaitReport = {
  waitingRows: 0,
  waitingMs: 0,
  movingMs: null,
  isOpenEnded: false,
  waits: [],
}

type WaitDeps = {
  readonly database: Database
  /** Null in a process that does not probe, which knows no rates. */
  readonly engine: Engine | null
  /** Default: no rows wait in the memory of this process. */
  readonly inMemory?: (jobId: string) => WaitingInMemory
}

/** Maximum number of causes that a report lists. */
const WAITS_MAX = 5

/** Derives why a job waits, and for how long, from what is stored and what this process knows. */
export async function buildWaitReport(deps: WaitDeps, job: Job): Promise<WaitReport> {
  const { database, engine } = deps
  const now = getWallTime(database)
  // Rows of a job that is being finished do not wait any longer.
  const isWaiting = job.state === 'processing' && job.finish_requested_at === null
  const rows = isWaiting ? await waitingRows(database, job.id) : []
  const { counts, failedLookups } = deps.inMemory?.(job.id) ?? NONE_IN_MEMORY
  const lookups = isWaiting ? failedLookups : null
  const all = addInMemory(rows, counts, now)
  const stops = await findStops(deps, all)
  const ofOperators = mergeWaits(all.map(row => toWait(row, stops.get(row.operator) ?? null)))
  const waits = [
    ...(await jobWaits(deps, job)),
    ...(lookups === null ? [] : [toLookupWait(lookups, now)]),
    ...(await Promise.all(
      ofOperators.slice(0, WAITS_MAX).map(wait => withOtherLists(database, job.id, wait)),
    )),
  ].slice(0, WAITS_MAX)
  const dueAt = ({ operator, lastDueAt }: WaitingRows) =>
    Math.max(lastDueAt, stops.get(operator)?.until ?? 0)
  const { waiting = [], moving = [] } = Object.groupBy(all, row =>
    dueAt(row) > now ? 'waiting' : 'moving',
  )
  const dueMs = Math.max(lookups?.lastInMs ?? 0, ...waiting.map(row => dueAt(row) - now))
  const estimates = engine === null ? null : { database, engine }
  const waitingMs = Math.max(dueMs, (estimates && (await estimateMs(estimates, job, waiting))) || 0)
  const unrouted = Math.max(0, job.total - job.done - countRows(all) - (lookups?.rows ?? 0))
  return {
    waits,
    waitingRows: countRows(waiting) + (lookups?.rows ?? 0),
    waitingMs,
    movingMs: estimates && (await estimateMs(estimates, job, moving, unrouted)),
    isOpenEnded: waits.some(({ reason }) => reason === 'no_worker' || reason === 'dns_check'),
  }
}

const NONE_IN_MEMORY: WaitingInMemory = { counts: new Map(), failedLookups: null }

const toLookupWait = ({ rows, firstInMs }: FailedLookups, now: number): Wait => ({
  operator: null,
  rows,
  reason: 'dns_retry',
  until: now + firstInMs,
  otherLists: 0,
})

const countRows = (rows: readonly WaitingRows[]) => rows.reduce((sum, { count }) => sum + count, 0)

/** The current time of the clock by which due times are shown, epoch ms. */
const getWallTime = ({ steadyClock }: Database) => steadyClock.toWallTime(steadyClock.now())

/** Adds rows in memory to those of the database; they are due. */
function addInMemory(
  stored: readonly WaitingRows[],
  inMemory: ReadonlyMap<string, number>,
  now: number,
): WaitingRows[] {
  const rows = new Map(stored.map(row => [`${row.operator} ${row.cause}`, row]))
  for (const [operator, count] of inMemory) {
    const due = { operator, cause: 'due' as const, count: 0, firstDueAt: now, lastDueAt: now }
    const row = rows.get(`${operator} due`) ?? due
    rows.set(`${operator} due`, { ...row, count: row.count + count })
  }
  return [...rows.values()].sort((a, b) => b.count - a.count)
}

/** On PostgreSQL, all processes share their rates; otherwise only this process knows them. */
async function findStops(
  { database, engine }: WaitDeps,
  rows: readonly WaitingRows[],
): Promise<ReadonlyMap<string, ProbeStop>> {
  const operators = [...new Set(rows.map(({ operator }) => operator))]
  if (database.dialect === 'postgres') return readProbeStops(database, operators)
  return new Map(
    operators.flatMap(name => {
      const stop = engine?.probeStop(name) ?? null
      return stop === null ? [] : [[name, stop] as const]
    }),
  )
}

/** Causes that affect the job as a whole. */
async function jobWaits({ database, engine }: WaitDeps, job: Job): Promise<Wait[]> {
  const wait = (reason: WaitReason, until: number | null = null) => ({
    operator: null,
    rows: job.total - job.done,
    reason,
    until,
    otherLists: 0,
  })
  const { dialect } = database
  if (job.account_id !== null && dialect === 'postgres' && !(await hasWorker(database))) {
    return [wait('no_worker')]
  }
  const check = engine?.resolverCheck
  if (check?.failure && job.state === 'processing') {
    return [
      {
        ...wait('dns_check', getWallTime(database) + check.dueInMs),
        failure: check.failure.detail,
      },
    ]
  }
  return job.state === 'queued' ? [wait('queued')] : []
}

/** Whether a member of the cluster processes jobs. */
const hasWorker = async (database: Database): Promise<boolean> =>
  (await activeMembers(database)).some(({ egresses }) => egresses.length > 0)

function toWait(row: WaitingRows, stop: ProbeStop | null): Wait {
  const { operator, count: rows, cause, firstDueAt } = row
  const wait = (reason: WaitReason, until: number | null) => ({
    operator,
    rows,
    reason,
    until,
    otherLists: 0,
  })
  if (cause === 'retry') return wait('retrying', firstDueAt)
  if (stop !== null) {
    const reason = stop.why === 'unknown-users' ? 'unknown_users' : stop.why
    return wait(reason, stop.until)
  }
  return cause === 'due' ? wait('rate_limited', null) : wait('postponed', firstDueAt)
}

/**
 * Adds up the rows of an operator that wait for the same cause, as due and postponed ones do for a
 * pause. The most rows come first.
 */
function mergeWaits(waits: readonly Wait[]): Wait[] {
  const groups = Map.groupBy(waits, ({ operator, reason }) => `${reason} ${operator}`)
  const merged = [...groups.values()].map(group => ({
    ...(group[0] as Wait),
    rows: group.reduce((sum, { rows }) => sum + rows, 0),
  }))
  return merged.sort((a, b) => b.rows - a.rows)
}

async function withOtherLists(database: Database, jobId: string, wait: Wait): Promise<Wait> {
  if (wait.reason !== 'rate_limited' || wait.operator === null) return wait
  const ids = await jobsWaitingFor(database, wait.operator)
  return { ...wait, otherLists: ids.filter(id => id !== jobId).length }
}

type EstimateDeps = { readonly database: Database; readonly engine: Engine }

/** Estimates the time for rows at their operators, and for others that are not routed yet, in ms. */
async function estimateMs(
  { database, engine }: EstimateDeps,
  job: Job,
  rows: readonly WaitingRows[],
  unrouted = 0,
): Promise<number> {
  if (rows.length === 0 && unrouted === 0) return 0
  const byOperator = Map.groupBy(rows, ({ operator }) => operator)
  const demands = [...byOperator].map(([operator, groups]) => ({
    operator,
    addresses: countRows(groups),
  }))
  const probing = await probingMs({ database, engine, clock: database.clock }, job.id, demands)
  if (unrouted === 0) return probing
  return Math.max(probing, typicalMs(engine, unrouted, parseJobOptions(job)))
}
