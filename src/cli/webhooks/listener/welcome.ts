import { cleanText } from '../../../base/text.ts'
import type { Authority } from './authority.ts'
import type { Registration } from './registration.ts'
import type { ListenWish } from './wish.ts'

export type Welcome = {
  readonly url: string
  readonly wish: ListenWish
  readonly authority: Authority
  /** Null: it made no webhook. */
  readonly registration: Registration | null
}

/** Says where events are taken, and what the service needs to bring them there. */
export function welcome({ url, wish, authority, registration }: Welcome): string {
  const file = quoted(authority.file)
  const lines = [
    `Listening on ${url} ${whose(registration)}`,
    'To reach it, “ev serve” must be started with',
    `  --webhook-allow-ranges ${wish.dialled} --webhook-ca-file ${file}`,
    'or with this in its environment:',
    `  EV_WEBHOOK_ALLOW_RANGES=${wish.dialled} EV_WEBHOOK_CA_FILE=${file}`,
    ...(authority.isNew
      ? ['The certificate in that file is new: an “ev serve” that has it must be started again.']
      : []),
    ...(registration === null ? [] : tryIt(registration, wish, file)),
  ]
  return `${lines.join('\n')}\n\n`
}

const whose = (registration: Registration | null) =>
  registration === null
    ? 'for events that are signed with the secret in EV_WEBHOOK_SECRET. Ctrl-C ends it.'
    : `for all events of the account “${cleanText(registration.account.name)}”. Ctrl-C ends it and removes its webhook, ${registration.id}.`

const tryIt = ({ id }: Registration, { dialled }: ListenWish, file: string) => [
  'To try it:',
  `  ev webhooks test ${id} --webhook-allow-ranges ${dialled} --webhook-ca-file ${file}`,
  `What does not arrive is told by “ev webhooks deliveries ${id}”.`,
]

/** As a shell reads it. */
const quoted = (path: string) =>
  /^[\w./:@+-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`
