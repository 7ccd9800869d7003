import { type Clock, sleep } from '../../base/clock.ts'
import { messageOf } from '../../base/error.ts'
import type { Log } from '../../base/log.ts'
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
  const stopping = new AbortController()
  const { signal } = stopping
  const desk = { ...parts, timings, signal, troubledSince: new Map<string, number>() }
  const run = async () => {
    while (!signal.aborted) {
      try {
        await sendDue(desk)
      } catch (error) {
        log.error('notices about webhooks could not be looked after', { why: messageOf(error) })
      }
      await sleep(clock, timings.lookMs, signal)
    }
  }
  const running = run()
  return {
    stop() {
      stopping.abort()
      notify.close()
      return running
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
  const giveUpAt = clock.ticks() + timings.retryMs
  for (;;) {
    try {
      await write(database, trx => noticeSent(trx, claim, told, clock.now()))
      return
    } catch (error) {
      if (!isOfStorage(error) || signal.aborted || clock.ticks() > giveUpAt) throw error
      await sleep(clock, timings.noteRetryMs, signal)
    }
  }
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
