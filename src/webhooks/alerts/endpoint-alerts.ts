import { type Database, isStorageError, write } from '../../db/database.ts'
import { type Clock, MINUTE, SECOND } from '../../platform/clock.ts'
import { errorMessage } from '../../platform/error.ts'
import type { Log } from '../../platform/log.ts'
import { startLoop } from '../../platform/loop.ts'
import { retry } from '../../platform/retry.ts'
import { RETENTION_MS } from '../delivery-state.ts'
import { alertEmail } from './alert-email.ts'
import {
  type DueNotice,
  dueNotices,
  type NoticeAt,
  noticeSent,
  postponeNotice,
} from './alert-store.ts'
import { logNotify, type Notify } from './mail-transport.ts'

export type EndpointAlertsDeps = {
  readonly database: Database
  readonly notify: Notify
  readonly clock: Clock
  readonly log: Log
  /** Our address for clients, without a slash at its end. */
  readonly baseUrl: string
  /** Who is told where an account has no address of its own; null: the log. */
  readonly notifyTo: string | null
  readonly timings?: AlertTimings
}

export type EndpointAlerts = {
  /** Gives up the mail that is on its way, and closes the way: what was not sent goes out after the next start. */
  stop(): Promise<void>
}

/** Tells the owners of webhooks what could not be delivered, and what was switched off. */
export function startEndpointAlerts(deps: EndpointAlertsDeps): EndpointAlerts {
  const { clock, log, notify, timings = DEFAULT_ALERT_TIMINGS } = deps
  const failingSince = new Map<string, number>()
  const loop = startLoop({
    ...{ name: 'sending notices about webhooks', everyMs: timings.pollMs, clock, log },
    run: signal => sendDue({ ...deps, timings, signal, failingSince }),
  })
  return {
    stop() {
      const stopped = loop.stop()
      notify.close()
      return stopped
    },
  }
}

type Desk = EndpointAlertsDeps & {
  readonly signal: AbortSignal
  readonly timings: AlertTimings
  /** By webhook: since when its notice has not been taken, in ticks of the clock. */
  readonly failingSince: Map<string, number>
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
    if (desk.signal.aborted || canRetry(desk, notice, error)) return
  }
  desk.failingSince.delete(webhookId)
  await noteSent(desk, notice, claim)
}

/** Tried again where the database is away for a moment: when the claim is over, the same mail would go out once more. */
async function noteSent(desk: Desk, notified: DueNotice, claim: NoticeAt): Promise<void> {
  const { database, clock, signal, timings } = desk
  const until = clock.monotonicNow() + timings.retryMs
  const o = { clock, signal, until, delayMs: timings.noteRetryMs, isRetryable: isStorageError }
  await retry(() => write(database, trx => noticeSent(trx, claim, notified, clock.now())), o)
}

/** To the account's own address, else to whoever the settings name, else to the log. */
function hand({ notify, log, baseUrl, notifyTo, clock }: Desk, notice: DueNotice): Promise<void> {
  const to = notice.email ?? notifyTo
  const way = to === null ? logNotify(log) : notify
  return way.send(alertEmail(notice, to ?? '', { baseUrl, now: clock.now() }))
}

function canRetry({ clock, log, failingSince, timings }: Desk, notice: DueNotice, error: unknown) {
  const { webhookId, accountId } = notice
  const since = failingSince.get(webhookId) ?? clock.monotonicNow()
  failingSince.set(webhookId, since)
  const mayTry = clock.monotonicNow() - since < timings.giveUpMs
  const then = mayTry ? 'it is tried again' : 'it is given up'
  log.warn(`a notice about a webhook could not be sent: ${then}`, {
    ...{ webhookId, accountId, why: errorMessage(error) },
  })
  return mayTry
}

/** Intervals of the notices about webhooks, in ms. */
export type AlertTimings = {
  /** How often due notices are looked for; a notice is not urgent. */
  readonly pollMs: number
  /** Wait before a mail server that did not take a notice is asked again. */
  readonly retryMs: number
  /** After this a notice is not tried again: the events that it tells of are deleted by then. */
  readonly giveUpMs: number
  /** Wait before it is tried again to write that a notice went out. */
  readonly noteRetryMs: number
}

export const DEFAULT_ALERT_TIMINGS: AlertTimings = {
  pollMs: 10 * SECOND,
  retryMs: 5 * MINUTE,
  giveUpMs: RETENTION_MS,
  noteRetryMs: SECOND,
}
