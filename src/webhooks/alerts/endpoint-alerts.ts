import { type Database, isStorageError, write } from '../../db/database.ts'
import { type Clock, DAY, MINUTE, SECOND } from '../../platform/clock.ts'
import { errorMessage } from '../../platform/error.ts'
import { pluralize } from '../../platform/format.ts'
import type { Log } from '../../platform/log.ts'
import { startLoop } from '../../platform/loop.ts'
import { retry } from '../../platform/retry.ts'
import { sanitizeText } from '../../platform/text.ts'
import { RETENTION_MS } from '../delivery-state.ts'
import {
  type DueNotice,
  dueNotices,
  type NoticeAt,
  noticeSent,
  postponeNotice,
} from './alert-store.ts'
import { logNotify, type Mail, type Notify } from './mail-transport.ts'

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

/** What whoever reads it has at hand. */
type Place = {
  /** Our address for clients, without a slash at its end. */
  readonly baseUrl: string
  /** Epoch ms. */
  readonly now: number
}

/** The mail about one webhook: what is wrong, and what to do, by the command line or by HTTP. */
export const alertEmail = (notice: DueNotice, to: string, place: Place): Mail => ({
  to,
  subject: subjectOf(notice),
  text: `${[...alert(notice), ...remedies(notice, place)].join('\n\n')}\n`,
  brief: summaryOf(notice, place),
})

/** In a log a notice is one line among others. */
function summaryOf({ webhookId, accountId, lastError, disabledReason }: DueNotice, { now }: Place) {
  const steps = [
    `ev webhooks deliveries ${webhookId} --status failed`,
    ...(disabledReason === null ? [] : [`ev webhooks enable ${webhookId}`]),
    `ev webhooks retry --since ${sinceOf(now)} ${webhookId}`,
  ]
  const [error, reason] = [lastError, disabledReason].map(text =>
    text === null ? undefined : sanitizeText(text, ERROR_LENGTH_MAX),
  )
  return {
    webhookId,
    accountId,
    lastError: error,
    disabledReason: reason,
    steps: steps.join(' · '),
  }
}

function subjectOf(notice: DueNotice): string {
  const { webhookId, failedEvents, disabledReason } = notice
  const host = sanitizeText(urlOf(notice)?.host ?? '')
  const lost = `${pluralize(failedEvents, 'event')} could not be delivered`
  if (disabledReason === null) return `ev: ${lost} to ${host} (${webhookId})`
  const more = failedEvents === 0 ? '' : `, ${lost}`
  return `ev: the webhook to ${host} was switched off${more} (${webhookId})`
}

function alert(notice: DueNotice): string[] {
  const { webhookId, accountId, accountName, failedEvents, lastError, disabledReason } = notice
  const whose = `the account ${accountId} “${sanitizeText(accountName)}”`
  const lost = `${pluralize(failedEvents, 'event')} could not be delivered to it since the last notice; nothing more is tried for ${failedEvents === 1 ? 'it' : 'them'} by itself.`
  return [
    `This is about the webhook ${webhookId} of ${whose}:\n\n  ${shownUrl(notice)}`,
    ...(failedEvents === 0 ? [] : [lost]),
    ...(lastError === null ? [] : [`The last error: ${sanitizeText(lastError, ERROR_LENGTH_MAX)}`]),
    ...(disabledReason === null
      ? []
      : [
          `It was switched off. ${sanitizeText(disabledReason, ERROR_LENGTH_MAX)}\nNothing is sent to it until it is switched on again. What is on its way waits for that, for ${KEPT_DAYS} days.`,
        ]),
  ]
}

/** As long as any sentence of ours with a reason from elsewhere in it. */
const ERROR_LENGTH_MAX = 500

const KEPT_DAYS = RETENTION_MS / DAY

function remedies({ webhookId, disabledReason }: DueNotice, { baseUrl, now }: Place): string[] {
  const path = `${baseUrl}/v1/webhooks/${webhookId}`
  const since = sinceOf(now)
  return [
    'What to do (each step by the command line, or by HTTP with an API key):',
    step('Look at what was sent, and what came of it.', [
      `ev webhooks deliveries ${webhookId} --status failed`,
      `GET ${path}/deliveries?status=failed`,
    ]),
    step('Mend the receiver, and try it out.', [
      `ev webhooks test ${webhookId}`,
      `POST ${path}/test`,
    ]),
    ...(disabledReason === null
      ? []
      : [
          step('Switch the webhook on again.', [
            `ev webhooks enable ${webhookId}`,
            `PATCH ${path} {"active": true}`,
          ]),
        ]),
    step('Send again what failed.', [
      `ev webhooks retry --since ${since} ${webhookId}`,
      `POST ${path}/recover {"since": "${since}T00:00:00Z"}`,
    ]),
    `Events that failed are kept for ${KEPT_DAYS} days, and can be sent again until then.`,
  ]
}

const sinceOf = (now: number) =>
  new Date(now - SINCE_MS).toISOString().slice(0, 'yyyy-mm-dd'.length)

/** All that is kept: what failed as long ago as that was made some days before, as the last of six attempts comes late. */
const SINCE_MS = RETENTION_MS + 7 * DAY

const step = (what: string, ways: readonly string[]) =>
  [`- ${what}`, ...ways.map(way => `    ${way}`)].join('\n')

/** Without its query, which often holds what only the receiver should know. */
function shownUrl(notice: DueNotice): string {
  const url = urlOf(notice)
  return url === null ? '–' : sanitizeText(`${url.origin}${url.pathname}`, URL_LENGTH_MAX)
}

const URL_LENGTH_MAX = 500

const urlOf = ({ url }: DueNotice) => (URL.canParse(url) ? new URL(url) : null)
