import { type Database, write } from '../db/database.ts'
import { type Clock, MINUTE, SECOND } from '../platform/clock.ts'
import { errorMessage } from '../platform/error.ts'
import { type Log, writeLog } from '../platform/log.ts'
import { startLoop } from '../platform/loop.ts'
import { alertEmail } from './alert-email.ts'
import { claimAlert, type DueAlert, listDueAlerts, markAlertSent } from './alert-store.ts'
import { RETENTION_MS } from './delivery-state.ts'
import { createLogTransport, type Notify } from './mail-transport.ts'
import { recordSent } from './record-sent.ts'
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
  readonly timings?: AlertTimings
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
  const failingSince = new Map<string, number>()
  const loop = startLoop({
    failed: WEBHOOK_LOG.alertPollFailed,
    everyMs: timings.pollMs,
    clock,
    log,
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

type AlertContext = EndpointAlertsDeps & {
  readonly signal: AbortSignal
  readonly timings: AlertTimings
  /** By webhook: since when its alert has failed to be sent, monotonic time. */
  readonly failingSince: Map<string, number>
}

async function sendDue(context: AlertContext): Promise<void> {
  for (const notice of await listDueAlerts(context.database, context.database.steadyClock.now())) {
    if (context.signal.aborted) return
    await sendOne(context, notice)
  }
}

/**
 * Claims an alert before sending it: only one of several servers sends it, and if the result cannot
 * be written, the mail is not repeated every ten seconds.
 */
async function sendOne(context: AlertContext, notice: DueAlert): Promise<void> {
  const { database, clock, log, signal } = context
  const { webhookId, accountId, failedEvents } = notice
  const claimMs = context.timings.retryMs
  const claim = { webhookId, dueAt: database.steadyClock.now() + claimMs }
  if (!(await write(database, trx => claimAlert(trx, notice, claim.dueAt)))) return
  try {
    await send(context, notice)
    writeLog(log, WEBHOOK_LOG.alertSent, { webhookId, accountId, failedEvents })
  } catch (error) {
    if (signal.aborted || canRetry(context, notice, error)) return
  }
  context.failingSince.delete(webhookId)
  const record = () =>
    write(database, trx => markAlertSent(trx, claim, notice, database.steadyClock.now()))
  await recordSent(record, { clock, signal, claimMs })
}

/** Sends to the address of the account, else to the configured one, else to the log. */
function send(
  { notify, log, baseUrl, notifyTo, clock }: AlertContext,
  notice: DueAlert,
): Promise<void> {
  const to = notice.email ?? notifyTo
  const transport = to === null ? createLogTransport(log) : notify
  return transport.send(alertEmail(notice, to ?? '', { baseUrl, now: clock.now() }))
}

function canRetry(
  { clock, log, failingSince, timings }: AlertContext,
  notice: DueAlert,
  error: unknown,
) {
  const { webhookId, accountId } = notice
  const since = failingSince.get(webhookId) ?? clock.monotonicNow()
  failingSince.set(webhookId, since)
  const willRetry = clock.monotonicNow() - since < timings.giveUpMs
  writeLog(log, willRetry ? WEBHOOK_LOG.alertRetried : WEBHOOK_LOG.alertGivenUp, {
    webhookId,
    accountId,
    why: errorMessage(error),
  })
  return willRetry
}

/** Intervals of webhook alerts, in ms. */
export type AlertTimings = {
  /** Interval of the poll for due alerts; they are not urgent. */
  readonly pollMs: number
  /** Wait before a failed alert is sent again. */
  readonly retryMs: number
  /** Time after which an alert is no longer retried: its events are deleted by then. */
  readonly giveUpMs: number
}

export const DEFAULT_ALERT_TIMINGS: AlertTimings = {
  pollMs: 10 * SECOND,
  retryMs: 5 * MINUTE,
  giveUpMs: RETENTION_MS,
}
