import { html } from 'hono/html'
import { PROVIDERS, type ProviderName } from '../../feedback/providers/providers.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { notice } from '../page/notice.ts'
import { capitalize } from '../page/text.ts'

/** What to do at an email provider. */
type Setup = {
  /** Steps before the source is created, which give its key. */
  readonly before: readonly string[]
  /** Steps with the URL of the source. */
  readonly after: readonly string[]
  /** Documentation of the provider. */
  readonly docs: string
}

const BASIC_AUTH = 'the username ev and the password of the source'

const SETUPS: Readonly<Record<ProviderName, Setup>> = {
  ses: {
    before: ['In Amazon SNS, create a topic of the type Standard and copy its ARN.'],
    after: [
      'In Amazon SES, open the identity, tab Notifications, and set the topic for bounce, complaint and delivery feedback. Or add the topic to the event destinations of a configuration set, with the same three events.',
      'In Amazon SNS, create a subscription of the topic: protocol HTTPS, the URL as the endpoint, raw message delivery off. ev confirms it within seconds.',
    ],
    docs: 'https://docs.aws.amazon.com/ses/latest/dg/configure-sns-notifications.html',
  },
  sendgrid: {
    before: [
      'In Settings > Mail Settings > Event Webhooks, create a webhook with signature verification and copy the verification key.',
    ],
    after: [
      'Set the URL as the Post URL of the webhook.',
      'Select the events Delivered, Bounced and Spam Reports.',
    ],
    docs: 'https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/getting-started-event-webhook-security-features',
  },
  mailgun: {
    before: ['In Send > Sending > Webhooks, copy the HTTP webhook signing key.'],
    after: ['Add the URL for Delivered Messages, Permanent Failure and Spam Complaints.'],
    docs: 'https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks',
  },
  postmark: {
    before: [],
    after: [
      `In the message stream, tab Webhooks, add a webhook with the URL. Under Basic auth credentials, enter ${BASIC_AUTH}.`,
      'Select the events Delivery, Bounce and Spam Complaint.',
    ],
    docs: 'https://postmarkapp.com/developer/webhooks/webhooks-overview',
  },
  sparkpost: {
    before: [],
    after: [
      `In Configuration > Webhooks, create a webhook with the URL. As authentication, select Basic Auth and enter ${BASIC_AUTH}.`,
      'Select the events Delivery, Bounce, Out of Band and Spam Complaint.',
    ],
    docs: 'https://developers.sparkpost.com/api/webhooks/',
  },
}

/** Returns the name of the key of a provider, for forms. */
export const keyLabel = (provider: ProviderName): string =>
  capitalize(PROVIDERS[provider].key?.name ?? 'password')

/** Renders the steps before the source is created; nothing if there are none. */
export const stepsBefore = (provider: ProviderName): Html => steps(SETUPS[provider].before)

/** Renders the steps with the URL of the source. */
export const stepsAfter = (provider: ProviderName): Html => html`
  ${steps(SETUPS[provider].after)}
  <p>For details, see the <a href="${SETUPS[provider].docs}" rel="noreferrer">documentation of ${PROVIDERS[provider].title}</a>.</p>`

function steps([first, ...rest]: readonly string[]): Html {
  if (first === undefined) return NOTHING
  if (rest.length === 0) return html`<p>${first}</p>`
  return html`<ol>${[first, ...rest].map(step => html`<li>${step}</li>`)}</ol>`
}

/** Warns about a URL that no provider can reach. */
export const urlWarning = (baseUrl: string): Html =>
  baseUrl.startsWith('https://')
    ? NOTHING
    : notice(
        'warn',
        html`The URL of this service is ${baseUrl}. Providers need an https URL that is reachable from the internet: set it
          with <code class="nowrap">--base-url</code>.`,
      )
