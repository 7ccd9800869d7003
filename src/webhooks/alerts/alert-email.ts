import { DAY } from '../../platform/clock.ts'
import { pluralize } from '../../platform/format.ts'
import { sanitizeText } from '../../platform/text.ts'
import { RETENTION_MS } from '../delivery-state.ts'
import type { DueNotice } from './alert-store.ts'
import type { Mail } from './mail-transport.ts'

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
