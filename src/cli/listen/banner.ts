import { sanitizeText } from '../../platform/text.ts'
import type { Registration } from './registration.ts'
import type { ListenOptions } from './webhook-input.ts'

export type Banner = {
  readonly url: string
  readonly wish: ListenOptions
  /** Null: it made no webhook. */
  readonly registration: Registration | null
}

/** Says where events are taken, and what the service needs to bring them there. */
export function printBanner({ url, wish, registration }: Banner): string {
  const lines = [
    `Listening on ${url} ${whose(registration)}`,
    'To reach it, “ev serve” must be started with',
    `  --webhook-allow-ranges ${wish.dialled}`,
    'or with this in its environment:',
    `  EV_WEBHOOK_ALLOW_RANGES=${wish.dialled}`,
    ...(registration === null ? [] : tryIt(registration, wish)),
  ]
  return `${lines.join('\n')}\n\n`
}

const whose = (registration: Registration | null) =>
  registration === null
    ? 'for events that are signed with the secret in EV_WEBHOOK_SECRET. Ctrl-C ends it.'
    : `for all events of the account “${sanitizeText(registration.account.name)}”. Ctrl-C ends it and removes its webhook, ${registration.id}.`

const tryIt = ({ id }: Registration, { dialled }: ListenOptions) => [
  'To try it:',
  `  ev webhooks test ${id} --webhook-allow-ranges ${dialled}`,
  `What does not arrive is told by “ev webhooks deliveries ${id}”.`,
]
