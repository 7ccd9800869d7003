import type { Clock } from '../../base/clock.ts'
import { messageOf } from '../../base/error.ts'
import type { Log } from '../../base/log.ts'
import { startLoop } from '../../base/loop.ts'
import { retry } from '../../base/retry.ts'
import { type Database, isOfStorage, write } from '../../store/database.ts'
import {
  type DueNotice,
  dueNotices,
  type NoticeAt,
  noticeSent,
  postponeNotice,
} from '../../store/event/notices.ts'
import { logNotify } from './log-notify.ts'
import { noticeMail } from './notice-text.ts'
import { DEFAULT_NOTICE_TIMINGS, type NoticeTimings } from './notice-timings.ts'
import type { Notify } from './notify.ts'

export type NoticeParts = {
  readonly database: Database
  readonly notify: Notify
  readonly clock: Clock
  readonly log: Log
  /** Our address for clients, without a slash at its end. */
  readonly baseUrl: string
  /** Who is told where an account has no address of its own; null: the log. */
  readonly notifyTo: string | null
  readonly timings?: NoticeTimings
}

export type Notices = {
  /** Gives up the mail that is on its way, and closes the way: what was not sent goes out after the next start. */
  stop(): Promise<void>
}

/** Tells the owners of webhooks what could not be delivered, and what was switched off. */
export function startNotices(parts: NoticeParts): Notices {
  const { clock, log, notify, timings = DEFAULT_NOTICE_TIMINGS } = parts
  const troubledSince = new Map<string, number>()
  const loop = startLoop({
    ...{ name: 'sending notices about webhooks', everyMs: timings.lookMs, clock, log },
    run: signal => sendDue({ ...parts, timings, signal, troubledSince }),
  })
  return {
    stop() {
      const stopped = loop.stop()
      notify.close()
      return stopped
    },
  }
}

type Desk = NoticeParts & {
  readonly signal: AbortSignal
  readonly timings: NoticeTimings
  /** By webhook: since when its notice has not been taken, in ticks of the clock. */
  readonly troubledSince: Map<string, number>
}

async function sendDue(desk: Desk): Promise<void> {
  for (const notice of await dueNotices(desk.database, desk.clock.now())) {
    if (desk.signal.aborted) return
    await sendOne(desk, notice)
  }
}

/**
 * Puts a notice off before it is tried: so one server of several sends it, and where that cannot be written, nobody
 * gets the same mail every ten seconds.
 */
async function sendOne(desk: Desk, notice: DueNotice): Promise<void> {
  const { database, clock, log } = desk
  const { webhookId, accountId, failedEvents } = notice
  const claim = { webhookId, dueAt: clock.now() + desk.timings.retryMs }
  if (!(await write(database, trx => postponeNotice(trx, notice, claim.dueAt)))) return
  try {
    await hand(desk, notice)
    log.debug('told of a webhook', { webhookId, accountId, failedEvents })
  } catch (error) {
    if (desk.signal.aborted || mayTryAgain(desk, notice, error)) return
  }
  desk.troubledSince.delete(webhookId)
  await noteSent(desk, notice, claim)
}

/** Tried again where the database is away for a moment: when the claim is over, the same mail would go out once more. */
async function noteSent(desk: Desk, told: DueNotice, claim: NoticeAt): Promise<void> {
  const { database, clock, signal, timings } = desk
  const until = clock.ticks() + timings.retryMs
  const o = { clock, signal, until, delayMs: timings.noteRetryMs, isRetryable: isOfStorage }
  await retry(() => write(database, trx => noticeSent(trx, claim, told, clock.now())), o)
}

/** To the account's own address, else to whoever the settings name, else to the log. */
function hand({ notify, log, baseUrl, notifyTo, clock }: Desk, notice: DueNotice): Promise<void> {
  const to = notice.email ?? notifyTo
  const way = to === null ? logNotify(log) : notify
  return way.send(noticeMail(notice, to ?? '', { baseUrl, now: clock.now() }))
}

function mayTryAgain(
  { clock, log, troubledSince, timings }: Desk,
  notice: DueNotice,
  error: unknown,
) {
  const { webhookId, accountId } = notice
  const since = troubledSince.get(webhookId) ?? clock.ticks()
  troubledSince.set(webhookId, since)
  const mayTry = clock.ticks() - since < timings.giveUpMs
  const then = mayTry ? 'it is tried again' : 'it is given up'
  log.warn(`a notice about a webhook could not be sent: ${then}`, {
    ...{ webhookId, accountId, why: messageOf(error) },
  })
  return mayTry
}
