import { DAY } from '../platform/clock.ts'
import { pluralize } from '../platform/format.ts'
import { sanitizeText } from '../platform/text.ts'
import type { DueAlert } from './alert-store.ts'
import { RETENTION_MS } from './delivery-state.ts'
import type { Mail } from './mail-transport.ts'

/** Context of the steps in an alert. */
type RenderContext = {
  /** Base URL of the API, without a trailing slash. */
  readonly baseUrl: string
  /** Epoch ms. */
  readonly now: number
}

/** Renders the mail about one webhook: the problem and the steps to fix it, by CLI or HTTP. */
export const alertEmail = (notice: DueAlert, to: string, context: RenderContext): Mail => ({
  to,
  subject: renderSubject(notice),
  text: `${[...describeProblem(notice), ...describeSteps(notice, context)].join('\n\n')}\n`,
  brief: toLogFields(notice, context),
})

/** The fields of the log line for an alert. */
function toLogFields(
  { webhookId, accountId, lastError, disabledReason }: DueAlert,
  { now }: RenderContext,
) {
  const steps = [
    `ev webhooks deliveries ${webhookId} --status failed`,
    ...(disabledReason === null ? [] : [`ev webhooks enable ${webhookId}`]),
    `ev webhooks retry --since ${formatSince(now)} ${webhookId}`,
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

function renderSubject(notice: DueAlert): string {
  const { webhookId, failedEvents, disabledReason } = notice
  const host = sanitizeText(parseUrl(notice)?.host ?? '')
  const lost = `${pluralize(failedEvents, 'event')} could not be delivered`
  if (disabledReason === null) return `ev: ${lost} to ${host} (${webhookId})`
  const more = failedEvents === 0 ? '' : `, ${lost}`
  return `ev: the webhook to ${host} was disabled${more} (${webhookId})`
}

function describeProblem(notice: DueAlert): string[] {
  const { webhookId, accountId, accountName, failedEvents, lastError, disabledReason } = notice
  const owner = `account ${accountId} "${sanitizeText(accountName)}"`
  const lost = `${pluralize(failedEvents, 'event')} could not be delivered since the last alert. ${failedEvents === 1 ? 'It is' : 'They are'} not retried automatically.`
  return [
    `Webhook ${webhookId} of ${owner}:\n\n  ${shownUrl(notice)}`,
    ...(failedEvents === 0 ? [] : [lost]),
    ...(lastError === null ? [] : [`Last error: ${sanitizeText(lastError, ERROR_LENGTH_MAX)}`]),
    ...(disabledReason === null
      ? []
      : [
          `The webhook was disabled. ${sanitizeText(disabledReason, ERROR_LENGTH_MAX)}\nNothing is sent to it until you enable it. Open deliveries wait for up to ${KEPT_DAYS} days.`,
        ]),
  ]
}

/** Long enough for any error message with a cause in it. */
const ERROR_LENGTH_MAX = 500

const KEPT_DAYS = RETENTION_MS / DAY

function describeSteps(
  { webhookId, disabledReason }: DueAlert,
  { baseUrl, now }: RenderContext,
): string[] {
  const path = `${baseUrl}/v1/webhooks/${webhookId}`
  const since = formatSince(now)
  return [
    'What to do (with the CLI, or over HTTP with an API key):',
    formatStep('List the failed deliveries.', [
      `ev webhooks deliveries ${webhookId} --status failed`,
      `GET ${path}/deliveries?status=failed`,
    ]),
    formatStep('Fix the receiver and send a test event.', [
      `ev webhooks test ${webhookId}`,
      `POST ${path}/test`,
    ]),
    ...(disabledReason === null
      ? []
      : [
          formatStep('Enable the webhook.', [
            `ev webhooks enable ${webhookId}`,
            `PATCH ${path} {"active": true}`,
          ]),
        ]),
    formatStep('Retry the failed deliveries.', [
      `ev webhooks retry --since ${since} ${webhookId}`,
      `POST ${path}/recover {"since": "${since}T00:00:00Z"}`,
    ]),
    `Failed deliveries are kept for ${KEPT_DAYS} days and can be retried until then.`,
  ]
}

const formatSince = (now: number) =>
  new Date(now - SINCE_MS).toISOString().slice(0, 'yyyy-mm-dd'.length)

/**
 * Covers everything that is kept: an event that failed a week ago was created some days earlier,
 * because the last of six attempts comes late.
 */
const SINCE_MS = RETENTION_MS + 7 * DAY

const formatStep = (text: string, commands: readonly string[]) =>
  [`- ${text}`, ...commands.map(command => `    ${command}`)].join('\n')

/** Without the query, which often contains secrets. */
function shownUrl(notice: DueAlert): string {
  const url = parseUrl(notice)
  return url === null ? '–' : sanitizeText(`${url.origin}${url.pathname}`, URL_LENGTH_MAX)
}

const URL_LENGTH_MAX = 500

const parseUrl = ({ url }: DueAlert) => (URL.canParse(url) ? new URL(url) : null)
