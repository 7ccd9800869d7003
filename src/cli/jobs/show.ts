import { type Account, findAccount } from '../../accounts/account-store.ts'
import { type Rest, restOf, type Waiting } from '../../jobs/job-list.ts'
import { type Job, progressOf } from '../../jobs/job-store.ts'
import { formatDuration } from '../../platform/format.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { CliContext } from '../context.ts'
import { readConfig } from '../settings.ts'
import { table } from '../table.ts'
import { jobObject } from './job-object.ts'
import {
  databasesOf,
  isAtWork,
  isOfService,
  type JobStatus,
  jobContext,
  jobStatus,
  withJob,
} from './job-status.ts'
import type { ListFlags } from './list.ts'
import { isoTimeOrNull, timeText } from './time-text.ts'

/** Runs `ev jobs show` and returns the exit code. */
export async function showCommand(
  context: CliContext,
  id: string,
  flags: ListFlags,
): Promise<number> {
  const config = readConfig(context, flags)
  return withJob(context, config, id, async (database, job) => {
    const status = jobStatus(job, await jobContext(database, config))
    const rest = await restOf(database, job.id)
    const account = job.account_id === null ? null : await findAccount(database, job.account_id)
    context.stdout.write(
      flags.json
        ? `${JSON.stringify({ ...jobObject(job, status), ...restObject(rest) }, null, 2)}\n`
        : text(context, job, status, rest, account),
    )
    return 0
  })
}

function restObject({ queued, probing, waiting }: Rest) {
  return {
    not_looked_at: queued,
    being_asked: probing,
    waiting: waiting.map(({ operator, items, dueAt }) => ({
      operator,
      items,
      due_at: isoTimeOrNull(dueAt),
    })),
  }
}

function text(
  context: CliContext,
  job: Job,
  status: JobStatus,
  rest: Rest,
  account: Account | null,
): string {
  const { list, output } = databasesOf(job)
  const facts: [string, string | null][] = [
    ['state', `${status}${whatToDo(job, status)}`],
    [isOfService(job) ? 'name' : 'list', list],
    ['output', output],
    ['type', isOfService(job) ? job.type : null],
    ['account', account === null ? null : sanitizeText(account.name)],
    ['rows', `${job.total}, of which ${job.duplicates} are duplicates`],
    ['done', `${job.done} (${progressOf(job)} %)`],
    ['deliverable', `${job.deliverable}`],
    ['risky', `${job.risky}`],
    ['undeliverable', `${job.undeliverable}`],
    ['unknown', `${job.unknown}`],
    ['created', timeText(job.created_at)],
    ['finished', job.finished_at === null ? null : timeText(job.finished_at)],
    ['written', job.written_at === null ? null : timeText(job.written_at)],
    ...(status === 'cancelled' ? [] : restFacts(rest, status)),
  ]
  const lines = facts
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `  ${name.padEnd(14)} ${value}\n`)
  const waiting = status === 'cancelled' ? '' : waitingText(context, rest.waiting)
  return `${job.id}\n${lines.join('')}${waiting}`
}

function whatToDo(job: Job, status: JobStatus): string {
  const { id } = job
  if (isOfService(job)) return status === 'stopped' ? '; the next “ev serve” goes on' : ''
  if (status === 'stopped') return `; “ev jobs resume ${id}” goes on`
  return status === 'unwritten' ? `; “ev jobs resume ${id}” writes its output` : ''
}

function restFacts({ queued, probing }: Rest, status: JobStatus): [string, string | null][] {
  return [
    ['not looked at', queued === 0 ? null : `${queued}`],
    [isAtWork(status) ? 'being asked' : 'to ask again', probing === 0 ? null : `${probing}`],
  ]
}

/** Operators shown; a list of customers may have thousands. */
const OPERATORS_MAX = 20

function waitingText(context: CliContext, waiting: readonly Waiting[]): string {
  if (waiting.length === 0) return ''
  const now = context.clock.now()
  const rows = waiting
    .slice(0, OPERATORS_MAX)
    .map(({ operator, items, dueAt }) => [sanitizeText(operator), `${items}`, dueText(dueAt, now)])
  const more = waiting.length - rows.length
  const columns = [
    { title: 'WAITING AT' },
    { title: 'ITEMS', align: 'right' },
    { title: 'DUE' },
  ] as const
  return `\n${table(columns, rows)}${more > 0 ? `and ${more} more operators\n` : ''}`
}

const dueText = (dueAt: number, now: number) =>
  dueAt <= now ? 'now' : `in ${formatDuration(dueAt - now)}, at ${timeText(dueAt)}`
