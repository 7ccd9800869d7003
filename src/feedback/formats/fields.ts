import { type FeedbackInput, type FeedbackKind, isEnhancedCode } from '../feedback.ts'
import { parseDiagnostic } from './diagnostic.ts'

/** Names of columns and JSON fields by meaning, without case and punctuation; the first wins. */
const NAMES = {
  address: ['email', 'address', 'recipient', 'emailaddress', 'rcptto', 'finalrecipient', 'to'],
  kind: [
    'kind',
    'event',
    'type',
    'recordtype',
    'outcome',
    'result',
    'action',
    'status',
    'bouncetype',
  ],
  code: ['code', 'smtpcode', 'statuscode', 'errorcode', 'replycode'],
  enhancedCode: [
    'enhancedcode',
    'enhancedstatuscode',
    'enhancedstatus',
    'dsn',
    'dsnstatus',
    'status',
  ],
  text: [
    ...['text', 'smtptext', 'diagnosticcode', 'diagnostic', 'reason', 'message', 'response'],
    ...['description', 'error', 'details'],
  ],
  occurredAt: [
    ...['occurredat', 'time', 'timestamp', 'date', 'bouncedat', 'bouncedate', 'createdat'],
    ...['eventtime', 'datetime', 'created'],
  ],
  id: ['id', 'eventid', 'sgeventid'],
} as const

type FieldName = keyof typeof NAMES

/** The candidates for each field by their position, best first. */
type FieldPositions = Readonly<Record<FieldName, readonly number[]>>

/** Finds the fields among the names of columns or JSON fields. */
export function findFields(names: readonly string[]): FieldPositions {
  const positions = new Map<string, number>()
  for (const [position, name] of names.entries()) {
    const plain = name.toLowerCase().replace(/[^a-z0-9]/g, '')
    if (!positions.has(plain)) positions.set(plain, position)
  }
  const find = (field: FieldName) =>
    NAMES[field].flatMap(name => {
      const position = positions.get(name)
      return position === undefined ? [] : [position]
    })
  return {
    address: find('address'),
    kind: find('kind'),
    code: find('code'),
    enhancedCode: find('enhancedCode'),
    text: find('text'),
    occurredAt: find('occurredAt'),
    id: find('id'),
  }
}

type FeedbackRecord = {
  readonly fields: FieldPositions
  readonly values: readonly string[]
  /** The address, if its column is known by its content. */
  readonly address?: string
}

/**
 * Converts a row to feedback; null if its kind is missing or none that counts, such as `open`.
 * `defaultKind` is used for rows without one.
 */
export function toFeedbackInput(
  record: FeedbackRecord,
  defaultKind: FeedbackKind | null,
): FeedbackInput | null {
  const find = (field: FieldName) => (fits: (value: string) => boolean) =>
    record.fields[field]
      .map(position => record.values[position]?.trim() ?? '')
      .find(value => value !== '' && fits(value))
  const any = () => true
  const kindText = find('kind')(value => KINDS.has(plainKind(value)))
  const kind = kindText === undefined ? null : KINDS.get(plainKind(kindText))
  const unknownKind = kind == null && find('kind')(value => !isEnhancedCode(value)) !== undefined
  const address = record.address?.trim() || find('address')(any)
  const resolved = kind?.kind ?? (unknownKind ? null : defaultKind)
  if (address === undefined || resolved === null) return null
  const diagnostic = parseDiagnostic(find('text')(any) ?? '')
  const code = find('code')(value => /^[245]\d\d$/.test(value))
  const enhancedCode = find('enhancedCode')(isEnhancedCode)
  return {
    address,
    kind: resolved,
    code: code === undefined ? diagnostic.code : Number(code),
    enhancedCode: enhancedCode ?? diagnostic.enhancedCode,
    text: diagnostic.text,
    occurredAt: parseTime(find('occurredAt')(any)),
    id: find('id')(any) ?? null,
    isPermanent: kind?.isPermanent ?? null,
  }
}

/** Epoch seconds or ms, or a date with time; null if it is missing or none. */
export function parseTime(value: string | undefined): number | null {
  const text = (value ?? '').trim()
  if (/^\d{9,11}(?:\.\d+)?$/.test(text)) return Math.round(Number(text) * 1_000)
  if (/^\d{12,14}$/.test(text)) return Number(text)
  const time = Date.parse(text.slice(0, 100))
  return Number.isNaN(time) ? null : time
}

const plainKind = (value: string) => value.toLowerCase().replace(/[^a-z]/g, '')

type Kind = { readonly kind: FeedbackKind; readonly isPermanent: boolean | null }
const kinds = (kind: FeedbackKind, isPermanent: boolean | null, ...names: string[]) =>
  names.map(name => [name, { kind, isPermanent }] as const)

/** Words of providers and exports for the kind of feedback. */
const KINDS: ReadonlyMap<string, Kind> = new Map([
  ...kinds('delivered', null, 'delivered', 'delivery', 'deliver', 'sent', 'opened', 'clicked'),
  ...kinds('bounced', null, 'bounced', 'bounce', 'failed', 'failure', 'undelivered', 'rejected'),
  ...kinds('bounced', true, 'hardbounce', 'hardbounced', 'hard', 'permanent', 'invalid'),
  ...kinds('bounced', false, 'softbounce', 'softbounced', 'soft', 'transient', 'temporary'),
  ...kinds('complained', null, 'complained', 'complaint', 'spamcomplaint', 'spamreport', 'spam'),
])
