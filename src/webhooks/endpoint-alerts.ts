import { type Database, write } from '../db/database.ts'
import { type Clock, MINUTE, SECOND } from '../platform/clock.ts'
import { type Log, writeLog } from '../platform/log.ts'
import { startLoop } from '../platform/loop.ts'
import { alertEmail } from './alert-email.ts'
import { claimAlert, type DueAlert, listDueAlerts, markAlertSent } from './alert-store.ts'
import { RETENTION_MS } from './delivery-state.ts'
import { type DueMail, MailSender, type MailTimings } from './mail-sender.ts'
import { createLogTransport, type Notify } from './mail-transport.ts'
import { WEBHOOK_LOG } from './telemetry.ts'

type EndpointAlertsDeps = {
  readonly database: Database
  readonly notify: Notify
  readonly clock: Clock
  readonly log: Log
  /** Base URL of the API, without a trailing slash. */
  readonly baseUrl: string
  /** Recipient for accounts without an address of their own; null: the log. */
  readonly notifyTo: string | null
  readonly timings?: MailTimings
}

type EndpointAlerts = {
  /**
   * Aborts the mail in flight and closes the transport. Unsent alerts go out after the next start.
   */
  stop(): Promise<void>
}

/** Sends alerts about failed deliveries and disabled webhooks to the owners of the webhooks. */
export function startEndpointAlerts(deps: EndpointAlertsDeps): EndpointAlerts {
  const { clock, log, notify, timings = DEFAULT_ALERT_TIMINGS } = deps
  const events = { retried: WEBHOOK_LOG.alertRetried, givenUp: WEBHOOK_LOG.alertGivenUp }
  const sender = new MailSender({ ...deps, ...events, timings })
  const loop = startLoop({
    failed: WEBHOOK_LOG.alertPollFailed,
    everyMs: timings.pollMs,
    clock,
    log,
    run: async signal => {
      const { steadyClock } = deps.database
      for (const notice of await listDueAlerts(deps.database, steadyClock.now())) {
        if (signal.aborted) return
        await sender.send(toMail(deps, notice), signal)
      }
    },
  })
  return {
    stop() {
      const stopped = loop.stop()
      notify.close()
      return stopped
    },
  }
}

/** The mail goes to the address of the account, else to the configured one, else to the log. */
function toMail(
  { database, clock, log, notify, baseUrl, notifyTo }: EndpointAlertsDeps,
  notice: DueAlert,
): DueMail {
  const { webhookId, accountId, failedEvents } = notice
  return {
    id: webhookId,
    fields: { webhookId, accountId },
    claim: until => write(database, trx => claimAlert(trx, notice, until)),
    async send() {
      const to = notice.email ?? notifyTo
      const transport = to === null ? createLogTransport(log) : notify
      await transport.send(alertEmail(notice, to ?? '', { baseUrl, now: clock.now() }))
      writeLog(log, WEBHOOK_LOG.alertSent, { webhookId, accountId, failedEvents })
    },
    record: dueAt =>
      write(database, trx =>
        markAlertSent(trx, { webhookId, dueAt }, notice, database.steadyClock.now()),
      ),
  }
}

export const DEFAULT_ALERT_TIMINGS: MailTimings = {
  pollMs: 10 * SECOND,
  retryMs: 5 * MINUTE,
  // Its events are deleted by then.
  giveUpMs: RETENTION_MS,
}
