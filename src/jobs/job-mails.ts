import { sql } from 'kysely'
import { type Account, findAccount } from '../accounts/account-store.ts'
import { type Database, write } from '../db/database.ts'
import { CLASSES } from '../engine/verdict/verdict.ts'
import { type Clock, DAY, MINUTE, SECOND } from '../platform/clock.ts'
import { errorMessage } from '../platform/error.ts'
import { formatNumber, pluralize } from '../platform/format.ts'
import { type Log, writeLog } from '../platform/log.ts'
import { startLoop } from '../platform/loop.ts'
import { sanitizeText } from '../platform/text.ts'
import { createLogTransport, type Mail, type Notify } from '../webhooks/mail-transport.ts'
import { recordSent } from '../webhooks/record-sent.ts'
import { getListName, type Job } from './job-store.ts'
import { JOB_LOG } from './telemetry.ts'

type JobMailsDeps = {
  readonly database: Database
  /** Closed by its owner. */
  readonly notify: Notify
  readonly clock: Clock
  readonly log: Log
  /** Base URL of the service, without a trailing slash. */
  readonly baseUrl: string
  readonly timings?: JobMailTimings
}

/** Intervals of the mails about finished jobs, in ms. */
export type JobMailTimings = {
  /** Interval of the poll for due mails; they are not urgent. */
  readonly pollMs: number
  /** Wait before a mail is sent again that failed, or whose sender crashed. */
  readonly retryMs: number
  /** Time after the first failed attempt after which a mail is no longer retried. */
  readonly giveUpMs: number
}

export const DEFAULT_JOB_MAIL_TIMINGS: JobMailTimings = {
  pollMs: 10 * SECOND,
  retryMs: 5 * MINUTE,
  giveUpMs: 7 * DAY,
}

/** Sends the mails about finished jobs that were submitted with `notify`. */
export function startJobMails(deps: JobMailsDeps): { stop(): Promise<void> } {
  const { clock, log, timings = DEFAULT_JOB_MAIL_TIMINGS } = deps
  const failingSince = new Map<string, number>()
  return startLoop({
    failed: JOB_LOG.mailPollFailed,
    everyMs: timings.pollMs,
    clock,
    log,
    run: async signal => {
      for (const due of await listDue(deps.database, deps.database.steadyClock.now())) {
        if (signal.aborted) return
        await sendOne({ ...deps, timings, signal, failingSince }, due)
      }
    },
  })
}

/** Maximum mails per poll. The rest follow with the next poll. */
const MAILS_MAX = 100

const listDue = ({ reader }: Database, now: number): Promise<Job[]> =>
  reader
    .selectFrom('job')
    .selectAll()
    // Written literally, so that the partial index is used.
    .where('mail_due_at', 'is not', null)
    .where('mail_due_at', '<=', now)
    .where('finished_at', 'is not', null)
    .orderBy('mail_due_at')
    .limit(MAILS_MAX)
    .execute()

type MailContext = JobMailsDeps & {
  readonly timings: JobMailTimings
  readonly signal: AbortSignal
  /** By job: since when its mail has failed to be sent, monotonic time. */
  readonly failingSince: Map<string, number>
}

/**
 * Claims a mail by postponing it, so that only one of several servers sends it. After a crash
 * between sending and recording, it is sent again with the same Message-ID.
 */
async function sendOne(context: MailContext, due: Job): Promise<void> {
  const { database, clock, log, timings, signal, failingSince } = context
  const claimMs = timings.retryMs
  const until = database.steadyClock.now() + claimMs
  if (!(await moveDue(database, due.id, due.mail_due_at, until))) return
  try {
    const account = await findAccount(database, due.account_id ?? '')
    const transport = account?.email == null ? createLogTransport(log) : context.notify
    await transport.send(jobMail(due, account, context.baseUrl))
  } catch (error) {
    if (signal.aborted) return
    const since = failingSince.get(due.id) ?? clock.monotonicNow()
    failingSince.set(due.id, since)
    const willRetry = clock.monotonicNow() - since < timings.giveUpMs
    const fields = { jobId: due.id, accountId: due.account_id, why: errorMessage(error) }
    writeLog(log, willRetry ? JOB_LOG.mailRetried : JOB_LOG.mailGivenUp, fields)
    if (willRetry) return
  }
  failingSince.delete(due.id)
  const record = () => moveDue(database, due.id, until, null)
  await recordSent(record, { clock, signal, claimMs })
}

/** Changes when a mail is due. Returns false if another server has changed it. */
async function moveDue(
  database: Database,
  jobId: string,
  from: number | null,
  to: number | null,
): Promise<boolean> {
  const { numUpdatedRows } = await write(database, trx =>
    trx
      .updateTable('job')
      .set({ mail_due_at: to })
      .where('id', '=', jobId)
      .where('mail_due_at', '=', sql<number>`${from}`)
      .executeTakeFirstOrThrow(),
  )
  return numUpdatedRows === 1n
}

function jobMail(due: Job, account: Account | null, baseUrl: string): Mail {
  const { id, state, total, done, account_id } = due
  const name = sanitizeText(getListName(due) ?? '', NAME_LENGTH_MAX)
  const list = name === '' ? `list ${id}` : `list "${name}"`
  const rows = pluralize(total, 'row')
  const url = `${baseUrl}/lists/${id}`
  const counts = CLASSES.map(
    kind => `  ${kind.padEnd(COLUMN_WIDTH)}${formatNumber(due[kind]).padStart(COLUMN_WIDTH)}`,
  )
  const sentence =
    state === 'completed'
      ? `The ${list} is completed: ${rows}.`
      : `The ${list} ended with an error after ${formatNumber(done)} of ${rows}. You can resume it.`
  const text = [
    `${sentence}${due.sandbox === 1 ? ' The results are simulated.' : ''}`,
    counts.join('\n'),
    `Results: ${url}`,
    `Job ${id} of account ${account_id} "${sanitizeText(account?.name ?? '')}". It was submitted with "notify".`,
  ]
  return {
    to: account?.email ?? '',
    subject: `ev: ${list} ${state === 'completed' ? 'is completed' : 'has failed'} (${rows})`,
    text: `${text.join('\n\n')}\n`,
    // The same for each attempt, so that mail systems can drop a repeated one.
    messageId: `<${id}.${due.finished_at}@${new URL(baseUrl).hostname}>`,
    brief: { jobId: id, accountId: account_id, state, url },
  }
}

/** Fits the longest class. */
const COLUMN_WIDTH = 14
const NAME_LENGTH_MAX = 80
