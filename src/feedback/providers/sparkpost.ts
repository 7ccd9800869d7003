import type { FeedbackInput, FeedbackKind } from '../feedback.ts'
import { parseDiagnostic } from '../formats/diagnostic.ts'
import { parseTime } from '../formats/fields.ts'
import { checkBasicAuth } from './basic-auth.ts'
import { textAt, valueAt } from './json.ts'
import type { Provider } from './provider.ts'

/** SparkPost: batches of events, each `{"msys": {"message_event": {…}}}`. */
export const sparkpost: Provider = {
  title: 'SparkPost',
  body: 'array',
  key: null,
  receive(request) {
    checkBasicAuth(request)
    return {
      items: (request.body as readonly unknown[]).flatMap(one =>
        parseEvent(valueAt(one, 'msys', 'message_event')),
      ),
    }
  },
}

function parseEvent(event: unknown): FeedbackInput[] {
  const kind = KINDS.get(textAt(event, 'type') ?? '')
  const address = textAt(event, 'raw_rcpt_to') ?? textAt(event, 'rcpt_to')
  if (kind === undefined || address === undefined) return []
  const at = parseTime(textAt(event, 'timestamp'))
  const id = textAt(event, 'event_id')
  if (kind !== 'bounced') return [{ address, kind, occurredAt: at, id }]
  const bounceClass = textAt(event, 'bounce_class') ?? ''
  if (UNSENT.has(bounceClass)) return []
  const diagnostic = parseDiagnostic(textAt(event, 'raw_reason') ?? textAt(event, 'reason') ?? '')
  const code = diagnostic.code ?? Number(textAt(event, 'error_code') ?? Number.NaN)
  const isPermanent = bounceClass === UNDETERMINED ? null : INVALID_RECIPIENT.has(bounceClass)
  return [{ address, kind, ...diagnostic, code, occurredAt: at, id, isPermanent }]
}

/** `out_of_band` is a bounce after the server had accepted the message. */
const KINDS: ReadonlyMap<string, FeedbackKind> = new Map([
  ['bounce', 'bounced'],
  ['out_of_band', 'bounced'],
  ['delivery', 'delivered'],
  ['spam_complaint', 'complained'],
])

/** Bounce classes 10 (invalid recipient) and 30 (no RCPT). */
const INVALID_RECIPIENT = new Set(['10', '30'])
/** Bounce class 1: SparkPost could not classify the reply. */
const UNDETERMINED = '1'
/** Bounce classes of messages that SparkPost did not send: 25 (admin failure) and 26 (suppressed). */
const UNSENT = new Set(['25', '26'])
