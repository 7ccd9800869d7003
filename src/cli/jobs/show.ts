import type { Command } from 'commander'
import { CLASSES } from '../../engine/verdict/reason.ts'
import { SECOND } from '../../platform/clock.ts'
import { formatDuration, formatEstimate, formatNumber, pluralize } from '../../platform/format.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { CliContext } from '../context.ts'
import { type DataFlags, worksOnData } from '../data-command.ts'
import { printJson, timeText } from '../print.ts'
import { isActive, isOfService, type JobView, type ShownJob } from '../remote/jobs.ts'
import { keyValues, table } from '../table.ts'
import { widthOf } from '../width.ts'
import { openJobs } from './backend.ts'

export function addShow(jobs: Command, context: CliContext): void {
  const show = jobs
    .command('show')
    .description('show the status of a job and what it is waiting for')
    .argument('<id>', 'ID of the job, or a unique prefix')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev jobs show job_4kq2\n  ev jobs show job_4kq2 --json')
    .action((id: string, flags) => showCommand(context, id, flags))
  worksOnData(show, context)
}

async function showCommand(context: CliContext, id: string, flags: DataFlags): Promise<void> {
  const shown = await (await openJobs(context, flags)).show(id)
  if (flags.json) {
    const { job, queued, inFlight, waiting, secondsLeft } = shown
    const rest = { queued, in_flight: inFlight, waiting, seconds_left: secondsLeft }
    printJson(context, { ...job, ...rest })
  } else context.stdout.write(text(context, shown))
}

function text(context: CliContext, shown: ShownJob): string {
  const { job, account, secondsLeft } = shown
  const { state } = job
  const width = widthOf(context, context.stdout)
  const figureWidth = formatNumber(job.total).length
  const count = (value: number) => formatNumber(value).padStart(figureWidth)
  const facts: [string, string | null][] = [
    ['state', `${state}${nextStep(job)}`],
    [isOfService(job) ? 'name' : 'list', job.list],
    ['output', job.output],
    ['metadata', metadataText(job)],
    ['webhook', job.webhook_id],
    ['re-verifies', job.previous_job_id],
    ['schedule', job.schedule_id],
    ['type', isOfService(job) ? job.type : null],
    ['account', account === null ? null : sanitizeText(account.name)],
    ['rows', `${count(job.total)}${duplicatesText(job)}`],
    ['finished', `${count(job.done)} (${job.progress}%)`],
    ['time left', secondsLeft === null ? null : formatEstimate(secondsLeft * SECOND)],
    ...CLASSES.map((klass): [string, string] => [klass, count(job[klass])]),
    ['created at', timeOrNull(job.created_at)],
    ['finished at', timeOrNull(job.finished_at)],
    ['written at', timeOrNull(job.written_at)],
    ...(state === 'cancelled' ? [] : restFacts(shown, count)),
    ...(isActive(state) ? shown.waits.map((wait): [string, string] => ['waiting', wait]) : []),
  ]
  const lines = keyValues(facts, { width, nameWidth: 15 })
  const waiting = state === 'cancelled' ? '' : waitingText(context, shown.waiting)
  return `${job.job_id}\n${lines}${waiting}`
}

const timeOrNull = (iso: string | null) => (iso === null ? null : timeText(Date.parse(iso)))

const duplicatesText = ({ duplicates }: JobView) =>
  duplicates === null || duplicates === 0 ? '' : `, of which ${pluralize(duplicates, 'duplicate')}`

function metadataText({ metadata }: JobView): string | null {
  const pairs = Object.entries(metadata).map(([key, value]) => `${key}=${value}`)
  return pairs.length === 0 ? null : sanitizeText(pairs.join(', '))
}

function nextStep(job: JobView): string {
  const { job_id: id, state } = job
  if (isOfService(job)) return state === 'stopped' ? '; the next "ev serve" continues it' : ''
  if (state === 'stopped') return `; to continue it, run "ev jobs resume ${id}"`
  return state === 'unwritten' ? `; to write its output, run "ev jobs resume ${id}"` : ''
}

function restFacts(
  { job, queued, inFlight }: ShownJob,
  count: (value: number) => string,
): [string, string | null][] {
  return [
    ['queued', queued === null || queued === 0 ? null : count(queued)],
    [
      isActive(job.state) ? 'in flight' : 'to retry',
      inFlight === null || inFlight === 0 ? null : count(inFlight),
    ],
  ]
}

/** Maximum number of operators shown; a large list may have thousands. */
const OPERATORS_MAX = 20

function waitingText(context: CliContext, waiting: ShownJob['waiting']): string {
  if (waiting.length === 0) return ''
  const now = context.clock.now()
  const rows = waiting
    .slice(0, OPERATORS_MAX)
    .map(({ operator, items, due_at }) => [
      sanitizeText(operator),
      formatNumber(items),
      due_at === null ? '–' : dueText(Date.parse(due_at), now),
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
