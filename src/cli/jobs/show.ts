import { type Account, findAccount } from '../../accounts/account-store.ts'
import { CLASSES } from '../../engine/verdict/verdict.ts'
import { getRemainingWork, type RemainingWork, type WaitingOperator } from '../../jobs/job-list.ts'
import {
  getProgress,
  type Job,
  parseMetadata,
  parseOrigin,
  parseWebhookId,
} from '../../jobs/job-store.ts'
import { estimateTimeLeft } from '../../jobs/waits/time-left.ts'
import { buildWaitReport, describeWait, type Wait } from '../../jobs/waits/wait-report.ts'
import { SECOND } from '../../platform/clock.ts'
import { formatDuration, formatEstimate, formatNumber, pluralize } from '../../platform/format.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { CliContext } from '../context.ts'
import { isoTimeOrNull, printJson, timeText } from '../print.ts'
import { readConfig } from '../settings.ts'
import { keyValues, table } from '../table.ts'
import { widthOf } from '../width.ts'
import {
  isActive,
  isOfService,
  type JobStatus,
  jobContext,
  jobStatus,
  listAndOutput,
  withJob,
} from './job-status.ts'
import { jobObject, type ListFlags } from './list.ts'

/** Runs `ev jobs show` and returns the exit code. */
export async function showCommand(
  context: CliContext,
  id: string,
  flags: ListFlags,
): Promise<number> {
  const config = readConfig(context, flags)
  return withJob(context, config, id, async (database, job) => {
    const status = jobStatus(job, await jobContext(database, config))
    const rest = await getRemainingWork(database, job.id)
    const report = await buildWaitReport({ database, engine: null }, job)
    const leftMs = isActive(status) ? estimateTimeLeft(job, null, report) : null
    const account = job.account_id === null ? null : await findAccount(database, job.account_id)
    if (flags.json) {
      const seconds_left = leftMs === null ? null : Math.ceil(leftMs / SECOND)
      printJson(context, { ...jobObject(job, status), ...restObject(rest), seconds_left })
    } else
      context.stdout.write(
        text(context, { job, status, rest, account, leftMs, waits: report.waits }),
      )
    return 0
  })
}

function restObject({ queued, probing, waiting }: RemainingWork) {
  return {
    queued,
    in_flight: probing,
    waiting: waiting.map(({ operator, items, dueAt }) => ({
      operator,
      items,
      due_at: isoTimeOrNull(dueAt),
    })),
  }
}

type Shown = {
  readonly job: Job
  readonly status: JobStatus
  readonly rest: RemainingWork
  readonly account: Account | null
  /** Null if it is not known. */
  readonly leftMs: number | null
  readonly waits: readonly Wait[]
}

function text(context: CliContext, { job, status, rest, account, leftMs, waits }: Shown): string {
  const { list, output } = listAndOutput(job)
  const width = widthOf(context, context.stdout)
  const figureWidth = formatNumber(job.total).length
  const count = (value: number) => formatNumber(value).padStart(figureWidth)
  const facts: [string, string | null][] = [
    ['state', `${status}${nextStep(job, status)}`],
    [isOfService(job) ? 'name' : 'list', list],
    ['output', output],
    ['metadata', metadataText(job)],
    ['webhook', parseWebhookId(job)],
    ['re-verifies', parseOrigin(job).previousJobId],
    ['schedule', parseOrigin(job).scheduleId],
    ['type', isOfService(job) ? job.type : null],
    ['account', account === null ? null : sanitizeText(account.name)],
    ['rows', `${count(job.total)}${duplicatesText(job)}`],
    ['finished', `${count(job.done)} (${getProgress(job)}%)`],
    ['time left', leftMs === null ? null : formatEstimate(leftMs)],
    ...CLASSES.map((klass): [string, string] => [klass, count(job[klass])]),
    ['created at', timeText(job.created_at)],
    ['finished at', job.finished_at === null ? null : timeText(job.finished_at)],
    ['written at', job.written_at === null ? null : timeText(job.written_at)],
    ...(status === 'cancelled' ? [] : restFacts(rest, status, count)),
    ...(isActive(status) ? waits.map(waitFact) : []),
  ]
  const lines = keyValues(facts, { width, nameWidth: 15 })
  const waiting = status === 'cancelled' ? '' : waitingText(context, rest.waiting)
  return `${job.id}\n${lines}${waiting}`
}

const duplicatesText = ({ duplicates }: Job) =>
  duplicates === 0 ? '' : `, of which ${pluralize(duplicates, 'duplicate')}`

function metadataText(job: Job): string | null {
  const pairs = Object.entries(parseMetadata(job)).map(([key, value]) => `${key}=${value}`)
  return pairs.length === 0 ? null : sanitizeText(pairs.join(', '))
}

function nextStep(job: Job, status: JobStatus): string {
  const { id } = job
  if (isOfService(job)) return status === 'stopped' ? '; the next "ev serve" continues it' : ''
  if (status === 'stopped') return `; to continue it, run "ev jobs resume ${id}"`
  return status === 'unwritten' ? `; to write its output, run "ev jobs resume ${id}"` : ''
}

function restFacts(
  { queued, probing }: RemainingWork,
  status: JobStatus,
  count: (value: number) => string,
): [string, string | null][] {
  return [
    ['queued', queued === 0 ? null : count(queued)],
    [isActive(status) ? 'in flight' : 'to retry', probing === 0 ? null : count(probing)],
  ]
}

const waitFact = (wait: Wait): [string, string] => ['waiting', describeWait(wait, timeText)]

/** Maximum number of operators shown; a large list may have thousands. */
const OPERATORS_MAX = 20

function waitingText(context: CliContext, waiting: readonly WaitingOperator[]): string {
  if (waiting.length === 0) return ''
  const now = context.clock.now()
  const rows = waiting
    .slice(0, OPERATORS_MAX)
    .map(({ operator, items, dueAt }) => [
      sanitizeText(operator),
      formatNumber(items),
      dueText(dueAt, now),
    ])
  const more = waiting.length - rows.length
  const columns = [
    { title: 'PROVIDER' },
    { title: 'WAITING', align: 'right' },
    { title: 'NEXT ATTEMPT' },
  ] as const
  return `\n${table(columns, rows, widthOf(context, context.stdout))}${more > 0 ? `and ${pluralize(more, 'more provider')}\n` : ''}`
}

const dueText = (dueAt: number, now: number) =>
  dueAt <= now ? 'now' : `in ${formatDuration(dueAt - now)}, at ${timeText(dueAt)}`
