import { sql } from 'kysely'
import { type Account, findAccount } from '../accounts/account-store.ts'
import { type Database, write } from '../db/database.ts'
import { CLASSES } from '../engine/verdict/verdict.ts'
import { type Clock, DAY, MINUTE, SECOND } from '../platform/clock.ts'
import { formatNumber, pluralize } from '../platform/format.ts'
import type { Log } from '../platform/log.ts'
import { startLoop } from '../platform/loop.ts'
import { sanitizeText } from '../platform/text.ts'
import { type DueMail, MailSender, type MailTimings } from '../webhooks/mail-sender.ts'
import { createLogTransport, type Mail, type Notify } from '../webhooks/mail-transport.ts'
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
  readonly timings?: MailTimings
}

export const DEFAULT_JOB_MAIL_TIMINGS: MailTimings = {
  pollMs: 10 * SECOND,
  retryMs: 5 * MINUTE,
  giveUpMs: 7 * DAY,
}

/** Sends the mails about finished jobs that were submitted with `notify`. */
export function startJobMails(deps: JobMailsDeps): { stop(): Promise<void> } {
  const { clock, log, timings = DEFAULT_JOB_MAIL_TIMINGS } = deps
  const events = { retried: JOB_LOG.mailRetried, givenUp: JOB_LOG.mailGivenUp }
  const sender = new MailSender({ ...deps, ...events, timings })
  return startLoop({
    failed: JOB_LOG.mailPollFailed,
    everyMs: timings.pollMs,
    clock,
    log,
    run: async signal => {
      for (const due of await listDue(deps.database, deps.database.steadyClock.now())) {
        if (signal.aborted) return
        await sender.send(toMail(deps, due), signal)
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

const toMail = ({ database, log, notify, baseUrl }: JobMailsDeps, due: Job): DueMail => ({
  id: due.id,
  fields: { jobId: due.id, accountId: due.account_id },
  claim: until => moveDue(database, due.id, due.mail_due_at, until),
  async send() {
    const account = await findAccount(database, due.account_id ?? '')
    const transport = account?.email == null ? createLogTransport(log) : notify
    await transport.send(jobMail(due, account, baseUrl))
  },
  record: until => moveDue(database, due.id, until, null),
})

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
